"""Readers of data that few have: BEAR, EntityQuestions, PopQA, CounterFact and zsRE."""

from lama_core.plugins import Plugin

PLUGIN = Plugin(
    name="more_data",
    about="Data as BEAR, EntityQuestions, PopQA, CounterFact and zsRE publish them.",
    formats={  # in the order in which they are recognised
        "bear": "lama_more_data.bear:BEAR",
        "entity-questions": "lama_more_data.entity_questions:ENTITY_QUESTIONS",
        "popqa": "lama_more_data.popqa:POPQA",
        "counterfact": "lama_more_data.counterfact:COUNTERFACT",
        "zsre": "lama_more_data.zsre:ZSRE",
    },
)

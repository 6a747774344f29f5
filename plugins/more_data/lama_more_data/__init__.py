"""Readers of data that few have.

T-REx, multiple-choice analogy questions, BEAR, EntityQuestions, PopQA, CounterFact and zsRE.
"""

from lama_core.plugins import Plugin

PLUGIN = Plugin(
    name="more_data",
    about="Data as T-REx, SAT, BEAR, EntityQuestions, PopQA, CounterFact and zsRE publish them.",
    formats={  # in the order in which they are recognised
        "trex": "lama_more_data.trex:TREX",
        "questions": "lama_more_data.analogy_questions:QUESTIONS",
        "bear": "lama_more_data.bear:BEAR",
        "entity-questions": "lama_more_data.entity_questions:ENTITY_QUESTIONS",
        "popqa": "lama_more_data.popqa:POPQA",
        "counterfact": "lama_more_data.counterfact:COUNTERFACT",
        "zsre": "lama_more_data.zsre:ZSRE",
    },
)

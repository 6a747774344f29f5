"""The plug-in `entities`: what models believe about one thing."""

from lama_core.plugins import Plugin

PLUGIN = Plugin(
    name="entities",
    about="What models believe about a person, place or thing.",
    queries={"entity": "lama_entities.card:entity"},
    views={"beliefs": "lama_entities.beliefs:beliefs"},
    probes={"crawl": "lama_entities.crawl:crawl"},
    kinds={"crawl": "lama_entities.crawl:CRAWL"},
    functions={
        "crawl_export": "lama_entities.triples:crawl_export",
        "crawl_query": "lama_entities.triples:crawl_query",
    },
    commands={
        "crawl": "lama_entities.crawl_commands:crawl",
        "crawl-export": "lama_entities.crawl_commands:export",
        "crawl-query": "lama_entities.crawl_commands:query",
    },
    lessons={"11-beliefs": "lama_entities.lessons:BELIEFS"},
    tabs={"Entities": "lama_entities.tab:ENTITIES"},
    charts={"Beliefs": "lama_entities.beliefs_chart:BELIEFS"},
    pages={"crawls": "lama_entities.crawl_page:draw"},
    help={
        "entity": "Ask models for all they believe about one thing.",
        "crawl": "Follow a model's answers from some entities: what it believes about each.",
        "crawl-export": "Write a crawl as CSV, N-Triples or Turtle.",
        "crawl-query": "Ask a crawl a question in SPARQL.",
    },
)

"""The plug-in `entities`: what models believe about one thing."""

from lama_core.plugins import Plugin

PLUGIN = Plugin(
    name="entities",
    about="What models believe about a person, place or thing.",
    queries={"entity": "lama_entities.card:entity"},
    tabs={"Entities": "lama_entities.tab:ENTITIES"},
    help={"entity": "Ask models for all they believe about one thing."},
)

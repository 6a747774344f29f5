"""A plug-in for LAMA Explorer: the rows that it adds, as texts."""

from lama_core.plugins import Plugin

PLUGIN = Plugin(
    name="example",
    about="A row of each sort.",
    backends={"example-gpt2": "lama_example.backend:BACKEND"},
    sources={"ollama": "lama_example.source:OLLAMA"},
    formats={"example": "lama_example.triples:TRIPLES"},
    views={"example_lengths": "lama_example.lengths:example_lengths"},
    queries={"example_surprise": "lama_example.surprise:example_surprise"},
    tabs={"Surprise": "lama_example.tab:SURPRISE"},
    pages={"example": "lama_example.page:draw"},
)

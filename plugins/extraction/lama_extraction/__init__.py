"""The plug-in `extraction`: systems that find answers in texts, to compare models with."""

from lama_core.plugins import Plugin

PLUGIN = Plugin(
    name="extraction",
    about="LAMA's relation extractor, and question-answering models that read passages.",
    probes={"extract": "lama_extraction.plan:extract", "read": "lama_extraction.plan:read"},
    help={
        "extract": "Extract relations from sentences: LAMA's RE_n and RE_o.",
        "read": "Find answers in a text with question-answering models.",
    },
)

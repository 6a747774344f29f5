"""A scoring library for what language models know: cloze queries, analogies, probing runs."""

__version__ = "0.1.0"

"""Cloze queries, one at a time and as runs (Petroni et al. 2019)."""

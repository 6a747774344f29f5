"""Candidates: the words that are ranked at a blank, and how a model writes each of them."""

"""Lenses on a model's answer to a text: how the model reaches it. A file and a row each."""

"""Each query beside the plain one: whether a model hears a "not", or is led by a word before it."""

"""Models: the protocols, the backends, and where the weights come from.

Torch is imported in the backends only, and those when the first model is loaded.
"""

"""Models: the protocols, the backends, and where the weights come from.

Only the backends import torch; they are imported when the first model is loaded.
"""

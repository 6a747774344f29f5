"""Training of the embedded masked language model: corpus, masking, training, evaluation, export.

Nothing here is imported by the rest of the library except `counts`, which needs no torch.
"""

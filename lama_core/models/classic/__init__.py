"""ELMo, Transformer-XL and fairseq's convolutional language model, for inference.

No library runs these models of the papers any more. `models convert` makes their folders.
"""

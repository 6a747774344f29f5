"""ELMo, Transformer-XL and fairseq's convolutional language model, for inference.

The papers use these models, but no current library runs them. `models convert` converts the
released files to the format that this package reads.
"""

"""ELMo, Transformer-XL and fairseq's convolutional language model, for inference.

No current library runs these models, which the papers use. `models convert` makes folders in the
format that is read here from the released files.
"""

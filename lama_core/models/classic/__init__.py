"""The systems of the papers that no library runs any more, for inference: ELMo, Transformer-XL and
fairseq's convolutional language model, from folders that `models convert` made.
"""

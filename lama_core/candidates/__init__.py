"""What is ranked at a blank: lists of words, and how a model writes each of them."""

"""Whole answers of any number of tokens, ranked by the likelihood of the statement with them."""

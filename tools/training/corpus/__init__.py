"""The training text of the embedded model: its sources, and the corpus built from them."""

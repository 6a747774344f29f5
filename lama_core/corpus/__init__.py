"""The training text of the embedded model: its sources, fetched by name, and the corpus of them."""

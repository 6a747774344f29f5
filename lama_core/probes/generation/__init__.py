"""Free-form answers: a model answers questions, and its texts are matched with the gold answers."""

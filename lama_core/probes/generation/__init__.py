"""Free-form answers: a model is asked, and its text is matched with the right answers."""

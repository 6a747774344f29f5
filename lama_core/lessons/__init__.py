"""Lessons: TOML files that guide a reader through queries, predictions and finished runs."""

"""Lessons: TOML files that guide readers through queries, predictions and finished runs."""

"""Lessons: files of data that lead a reader through queries, predictions and finished runs."""

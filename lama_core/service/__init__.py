"""Answers to the app's visitors, computed in a separate process."""

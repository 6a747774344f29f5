"""Hugging Face models: forward passes, hidden states and token log-probabilities."""

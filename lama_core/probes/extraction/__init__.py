"""Systems that find answers in texts, for comparison with language models."""

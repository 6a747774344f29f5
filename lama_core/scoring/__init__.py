"""Scoring of a dataset's facts: queries, preparation, batches, ranks and executors."""

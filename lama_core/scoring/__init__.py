"""From a dataset and prompts to scores: questions, preparation, batches, ranks, executors."""

"""Training of the embedded masked LM: corpus, masking, training, evaluation and export."""

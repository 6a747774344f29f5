"""Training of the embedded masked language model: corpus, masking, training, measuring, export."""

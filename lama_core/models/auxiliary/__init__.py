"""Models for other tasks than filling blanks: readers, translators, embeddings of words."""

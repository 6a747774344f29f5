"""Models that fill no blanks: readers, translators, embeddings of words and word pairs."""

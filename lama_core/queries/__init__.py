"""The kinds of query: what a user types, such as one sentence, analogy, question or file."""

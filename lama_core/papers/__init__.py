"""The papers: their published numbers, and their tables done again."""

"""The papers: their published numbers, and the reproduction of their tables."""

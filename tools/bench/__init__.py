"""Benchmarks of the library: `python -m tools.bench`."""

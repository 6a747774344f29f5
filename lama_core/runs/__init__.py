"""Runs of every kind of probe: specification, execution, storage and comparison."""

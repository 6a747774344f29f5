"""Runs of any kind of probe: what they are, on disk and in the making."""

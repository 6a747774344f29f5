"""The kinds of probe, one folder each; code that they share is elsewhere."""

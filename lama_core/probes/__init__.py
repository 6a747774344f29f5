"""The kinds of probe: what is special to each, and only that."""

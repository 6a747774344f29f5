"""Tables and charts over finished runs: a file for each view, and `VIEWS`."""

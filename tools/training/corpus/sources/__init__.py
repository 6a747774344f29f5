"""A module for each source; it makes passages from the files in a package."""

"""One module a source; each gives passages from the members of a package."""

"""The documentation site: what mkdocs is told while it builds (`mkdocs.yml`)."""

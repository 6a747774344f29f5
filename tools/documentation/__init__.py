"""Hooks and extensions for the documentation site, named in `mkdocs.yml`."""

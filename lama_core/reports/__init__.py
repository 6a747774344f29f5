"""Results as files: HTML pages and tables."""

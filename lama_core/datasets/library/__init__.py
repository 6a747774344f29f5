"""The installed datasets, and the download and import of others."""

"""Releases in old formats, as folders that this plug-in or transformers reads."""

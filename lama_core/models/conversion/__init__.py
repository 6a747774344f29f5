"""Conversion of releases in old formats to folders of safetensors: `models convert`."""

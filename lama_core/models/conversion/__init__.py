"""Releases in old formats, made into folders of safetensors: `models convert`."""

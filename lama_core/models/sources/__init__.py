"""The catalogue of models, and the places from which their files are read or downloaded."""

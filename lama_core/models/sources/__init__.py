"""Where weights come from: the catalog of models, and where their files are read from."""

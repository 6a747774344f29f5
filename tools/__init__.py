"""Programs that build the project's assets and documentation; the library doesn't use them."""

"""What makes the project's own assets and measures it; the library knows nothing of it."""

"""What is here of the knowledge sources, and how more is fetched or imported."""

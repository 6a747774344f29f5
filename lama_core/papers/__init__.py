"""What published numbers need next to runs; the plug-in `papers` reproduces whole tables."""

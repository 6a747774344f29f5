"""Results that other tools made, read into runs: one reader a format, and one table of them."""

"""Whether a model hears a "not" (Kassner and Schütze 2020)."""

"""Negated and misprimed queries, compared with plain ones (Kassner and Schütze 2020)."""

"""Causal tracing of a relation's facts (Meng et al. 2022), averaged by token role."""

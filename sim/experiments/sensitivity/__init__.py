"""Sensitivity: what follows for a speedup when all uncertain constants are drawn at once."""

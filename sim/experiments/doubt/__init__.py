"""Doubt: what follows for a speedup when all doubtful constants are drawn at once."""

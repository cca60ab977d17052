"""Monte Carlo: distribution of a speedup when all uncertain constants are drawn together."""

"""A run: samples through a cluster, every result checked, everything measured."""

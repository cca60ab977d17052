"""A run: sends samples through a cluster, checks every result, and measures."""

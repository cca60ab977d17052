"""Which node owns which row, and models of caches with their replacement policies."""

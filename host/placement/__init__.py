"""Assignment of rows to nodes, and models of caches with their replacement policies."""

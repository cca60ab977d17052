"""Which node owns which row, and caches with exact LRU."""

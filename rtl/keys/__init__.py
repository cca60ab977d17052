"""Keys: their hash, which node owns them, and the set-associative table that finds them."""

"""Keys: their hash, their owner, and the set-associative table that finds them."""

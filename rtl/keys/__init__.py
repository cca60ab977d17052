"""Keys: their hash, and which node owns them."""

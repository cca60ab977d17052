"""The page of results: its content, and its HTML."""

"""The page of results: what it shows, and how it is rendered."""

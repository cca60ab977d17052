"""The evaluation: figures, claims, and the page of results."""

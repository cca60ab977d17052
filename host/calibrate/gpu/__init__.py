"""Measurements of a GPU, its host's software and the link between them."""

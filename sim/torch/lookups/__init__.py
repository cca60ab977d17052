"""Lookups of a PyTorch program: bags, tables, mini-batches, and their record."""

"""Samples: data sets and their readers, the generator, and statistics of keys."""

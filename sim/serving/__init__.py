"""Serving: requests that arrive one by one, their mini-batches, and their latency."""

"""Serving: requests that arrive one by one, mini-batches made of them, and how long each takes."""

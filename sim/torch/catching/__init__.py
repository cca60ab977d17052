"""Capture of a PyTorch program's operators, and the session that answers them."""

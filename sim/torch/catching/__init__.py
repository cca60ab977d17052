"""How operators of a PyTorch program are caught, and answered."""

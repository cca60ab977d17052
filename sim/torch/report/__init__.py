"""What a PyTorch program is told at its end: values, tables, a page."""

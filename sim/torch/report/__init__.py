"""Report of a PyTorch program: values, tables, a page."""

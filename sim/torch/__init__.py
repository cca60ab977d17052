"""PyTorch programs whose embedding bags go through the NICs: capture, values, times, report."""

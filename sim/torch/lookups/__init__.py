"""What a PyTorch program looks up: bags, tables, mini-batches, and their record."""

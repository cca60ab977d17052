"""The processes of a PyTorch program, put together as the nodes of one cluster."""

"""One NIC for the simulator: built, its registers, its packets at the edges, its stalls."""

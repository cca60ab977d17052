"""Where vectors and rows come from: NICs in RTL, and their optimizer."""

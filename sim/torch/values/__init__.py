"""Sources of vectors and rows: NICs in RTL, and their optimizer."""

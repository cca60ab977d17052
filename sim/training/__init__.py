"""Training of a DLRM on a cluster of NICs, or on the numpy reference alone."""

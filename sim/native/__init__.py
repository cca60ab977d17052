"""What a run computes beside its NICs, compiled: the results of :mod:`host`, bit for bit."""

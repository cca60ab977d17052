"""Readers of data sets, one per format; see :mod:`host.data.datasets`."""

"""Readers of data sets, one for each format; see :mod:`host.data.datasets`."""

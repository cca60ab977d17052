"""Readers of data sets: ``criteo``, ``movielens`` and ``trace``; see :mod:`host.datasets`."""

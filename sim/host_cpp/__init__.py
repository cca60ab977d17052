"""Compiled twins of Python modules, equal bit for bit: hosts, exchange, check of results."""

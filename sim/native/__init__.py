"""Compiled twins of Python modules: hosts, exchange, threads and checks, equal bit for bit."""

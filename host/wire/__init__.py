"""Packets of every message as numpy arrays, laid out as :mod:`rtl.formats` says."""

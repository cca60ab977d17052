"""Packets of every message as numpy arrays, in the layouts of :mod:`rtl.formats`."""

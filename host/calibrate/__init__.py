"""Measure a machine and write its profiles: ``python -m host.calibrate cpu|gpu``."""

"""``python -m host.calibrate cpu|gpu``: profiles measured on a machine; see :mod:`host.devices`."""

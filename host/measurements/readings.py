"""Shipped readings of :mod:`host.calibrate` on a GPU."""

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

__all__ = ["h100_us"]


@cache
def h100_us() -> Mapping[str, float]:
    """Return the medians of ``gpu_h100_readings.csv`` in microseconds, by name."""
    text = (files("host") / "measurements" / "gpu_h100_readings.csv").read_text(encoding="utf-8")
    return {row["name"]: float(row["value"]) for row in csv.DictReader(text.splitlines())
            if row["unit"] == "us"}

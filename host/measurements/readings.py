"""Shipped readings of :mod:`host.calibrate` on a GPU."""

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

__all__ = ["h100_rows", "h100_us"]

_FILES = ("gpu_h100_readings", "gpu_h100_en_readings", "gpu_h100_threads_readings")


@cache
def h100_rows() -> tuple[Mapping[str, str], ...]:
    """Return the rows of all files of the H100, by column."""
    return tuple(row for name in _FILES for row in csv.DictReader(
        (files("host") / "measurements" / f"{name}.csv").read_text("utf-8").splitlines()))


@cache
def h100_us() -> Mapping[str, float]:
    """Return the medians of :func:`h100_rows` in microseconds, by name."""
    return {row["name"]: float(row["value"]) for row in h100_rows() if row["unit"] == "us"}

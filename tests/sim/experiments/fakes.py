"""Points that take no time, and ways of measuring them. Importable, as other processes need it."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from host.errors import InputError


@dataclass(frozen=True)
class Spot:
    """A point of two members."""

    name: str
    number: float = 0.0


def third(spot: Spot) -> dict:
    """Metrics with digits that only survive where floats do; 13 has none."""
    if spot.number == 13:
        raise ValueError("number must not\nbe 13")
    return {"third": spot.number / 3, "inside": {"deep": [1, None]}, "process": None}


def in_another_process(spot: Spot) -> dict:
    return {"process": os.getpid()}


def unreadable(spot: Spot) -> dict:
    raise InputError("clicks.csv", 3, 7, "no label")


@dataclass(frozen=True)
class Killed:
    """A measure that ends its process at the third point, as ``kill -9`` would."""

    folder: str
    after: int = 3

    def __call__(self, spot: Spot) -> dict:
        begun = Path(self.folder)
        if len(list(begun.iterdir())) == self.after - 1:
            os._exit(9)
        (begun / f"{spot.number}").touch()
        return third(spot)


def slow(spot: Spot) -> dict:
    time.sleep(0.2)
    return third(spot)

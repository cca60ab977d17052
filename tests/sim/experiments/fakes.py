"""Points that take no time, and functions that measure them. Importable by other processes."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from host.errors import InputError


@dataclass(frozen=True)
class Spot:
    """A point with two fields."""

    name: str
    number: float = 0.0


def third(spot: Spot) -> dict:
    """Metrics that need all float digits; point 13 fails."""
    if spot.number == 13:
        raise ValueError("number must not\nbe 13")
    return {"third": spot.number / 3, "inside": {"deep": [1, None]}, "process": None}


def in_another_process(spot: Spot) -> dict:
    return {"process": os.getpid()}


def unreadable(spot: Spot) -> dict:
    raise InputError("clicks.csv", 3, 7, "no label")


@dataclass(frozen=True)
class Killed:
    """A measure that kills its process at the third point, like ``kill -9``."""

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


def long(spot: Spot) -> dict:
    time.sleep(0.5)
    return third(spot)


@dataclass(frozen=True)
class KillsWorker:
    """A measure that kills its process within points, like ``kill -9``.

    ``measure`` handles the other points; ``folder`` gets a file for each started point. The process
    is killed ``after`` so many points, ``times`` times, only at ``number`` unless it is None.
    """

    measure: Callable[[Any], dict]
    folder: str
    after: int
    times: int
    number: float | None = None

    def __call__(self, point: Any) -> dict:
        begun = len(list(Path(self.folder).iterdir()))
        (Path(self.folder) / f"{begun}-{os.getpid()}").touch()
        killed = Path(f"{self.folder}.killed")
        count = len(killed.read_text()) if killed.exists() else 0
        if begun >= self.after and count < self.times and self.number in (
                None, getattr(point, "number", None)):
            killed.write_text("x" * (count + 1))
            os.kill(os.getpid(), signal.SIGKILL)
        return self.measure(point)

"""Readings: measured numbers with their spread, and missing readings with the reason."""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from host.reading import read_regular

__all__ = ["Absent", "Book", "Missing", "Reading", "number", "reading"]

_MOST_BYTES = 1 << 26
"""Maximum bytes of a file of readings."""


class Missing(Exception):
    """A reading that is impossible on this machine; the text states the reason."""


@dataclass(frozen=True)
class Reading:
    """A measured number.

    Members
    -------
    name: words joined by dots; stable across versions.
    value: median.
    low, high: 10th and 90th percentile.
    count: number of measurements.
    unit: ``us``, ``GB/s``, ...
    about: description of the measurement.
    """

    name: str
    value: float
    low: float
    high: float
    count: int
    unit: str
    about: str


@dataclass(frozen=True)
class Absent:
    """A missing reading or item: its name and the reason."""

    name: str
    reason: str


def reading(name: str, values: Sequence[float], about: str, unit: str = "us") -> Reading:
    """Return the reading of the repeated measurements ``values`` (at least one)."""
    low, value, high = (float(f"{at:.6g}") for at in np.percentile(values, (10, 50, 90)))
    return Reading(name, value, low, high, len(values), unit, about)


def number(name: str, value: float, about: str, unit: str = "") -> Reading:
    """Return the reading of a constant property of the machine."""
    return Reading(name, value, value, value, 1, unit, about)


@dataclass
class Book:
    """Readings and missing readings of a machine, by name.

    machine: names and versions of the measured machine, as plain values.
    """

    machine: Mapping[str, Any] = field(default_factory=dict)
    readings: dict[str, Reading] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def add(self, what: Reading | Absent) -> None:
        """Add a reading, replacing an earlier one of the same name, or a missing reading."""
        if isinstance(what, Absent):
            self.missing[what.name] = what.reason
            self.readings.pop(what.name, None)
        else:
            self.readings[what.name] = what
            self.missing.pop(what.name, None)

    def forget(self, item: str) -> None:
        """Remove all entries of ``item``; their names begin with the item's name."""
        for notes in (self.readings, self.missing):
            for name in [name for name in notes if name.split(".")[0] == item]:
                del notes[name]

    def __getitem__(self, name: str) -> float:
        return self.readings[name].value

    def __contains__(self, name: str) -> bool:
        return name in self.readings

    def write(self, stem: Path) -> tuple[Path, Path]:
        """Write ``stem.csv`` (a row per reading) and ``stem.json`` (everything); return both paths.
        """
        table, whole = (stem.with_name(stem.name + end) for end in (".csv", ".json"))
        with table.open("w", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow([column.name for column in fields(Reading)])
            rows.writerows(asdict(entry).values() for entry in self.readings.values())
        whole.write_text(json.dumps({
            "schema": 1, "machine": dict(self.machine),
            "readings": [asdict(entry) for entry in self.readings.values()],
            "missing": [{"name": name, "reason": reason}
                        for name, reason in self.missing.items()]}, indent=1) + "\n")
        return table, whole

    @classmethod
    def read(cls, path: Path) -> "Book":
        """Read a JSON file that :meth:`write` wrote.

        Raises ``ValueError`` (:class:`host.errors.InputError`) for any other file.
        """
        text = read_regular(path, _MOST_BYTES)
        try:
            content = json.loads(text)
            book = cls(content["machine"])
            for entry in content["readings"]:
                book.add(Reading(**entry))
            for entry in content["missing"]:
                book.add(Absent(**entry))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} has no readings: {error}") from None
        return book

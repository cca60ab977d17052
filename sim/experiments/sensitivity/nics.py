"""Interpolation of NIC times over constants, from a few NIC runs."""

from collections.abc import Mapping, Sequence
from dataclasses import fields

import numpy as np

from host.systems import NicTimes
from sim.evaluation.point import Point
from sim.evaluation.store import Store
from sim.experiments.sensitivity.compose import nic_constants, run_nics
from sim.experiments.sensitivity.smooth import Smooth

__all__ = ["Interpolated", "sets_of"]

_CALL = "gpu.call_us"
"""NIC constant: time of a call of the driver's thread."""


class Interpolated:
    """NICs of a system over a trace, at any constants.

    Parameters
    ----------
    points: points whose NICs are run; they differ only in constants, software and kernels.
    runs: store of the runs.

    Members: ``points``; ``parts``, their NICs, in the same order; ``axes``, names of the NIC
    constants in which the points differ.
    """

    def __init__(self, points: Sequence[Point], runs: Store | None = None):
        self.points = tuple(points)
        self.parts = [run_nics(point, runs) for point in points]
        seen = [nic_constants(point) for point in points]
        self.axes = [name for name in seen[0] if len({each[name] for each in seen}) > 1]
        self._calls = [each[_CALL] for each in seen]
        self._values = [_values(part.times) for part in self.parts]
        at = np.array([self._place(each) for each in seen])
        self._smooth = {name: Smooth(at, np.array([each[name] for each in self._values]))
                        for name in self._values[0]}

    def times(self, point: Point) -> list[NicTimes]:
        """Return the times of the NICs of ``point``, for each mini-batch."""
        seen = nic_constants(point)
        at = np.array([self._place(seen)])
        return _times({name: smooth.at(at)[0] for name, smooth in self._smooth.items()},
                      seen[_CALL])

    def left_out(self) -> list[list[NicTimes]]:
        """Return the times at each of its own points, interpolated from the other points."""
        values = {name: smooth.left_out() for name, smooth in self._smooth.items()}
        return [_times({name: each[number] for name, each in values.items()}, call_us)
                for number, call_us in enumerate(self._calls)]

    def errors(self) -> dict[str, list[float]]:
        """Return the leave-one-out error of each value of the mean mini-batch, by name, as shares.
        ``service_us`` is the sum of the phases. Values that are always 0 are omitted."""
        found: dict[str, list[float]] = {}
        for part, times in zip(self.parts, self.left_out()):
            own, other = (_means(each) for each in (part.times, times))
            for name, value in own.items():
                if value:
                    found.setdefault(name, []).append(abs(other[name] / value - 1))
        return found

    def _place(self, seen: Mapping[str, float]) -> list[float]:
        return [float(np.log(seen[name])) for name in self.axes]


def sets_of(points: Sequence[Point]) -> int:
    """Return the number of distinct NIC runs of the points."""
    return len({tuple(nic_constants(point).values()) for point in points})


def _values(times: Sequence[NicTimes]) -> dict[str, np.ndarray]:
    """Return every number of the times, a value for each mini-batch; phases as ``phases.NAME``."""
    found: dict[str, np.ndarray] = {}
    for field in fields(NicTimes):
        values = [getattr(each, field.name) for each in times]
        if isinstance(values[0], Mapping):
            found |= {f"{field.name}.{name}": np.array([each[name] for each in values])
                      for name in values[0]}
        else:
            found[field.name] = np.array(values, dtype=np.float64)
    return found


def _times(values: Mapping[str, np.ndarray], call_us: float) -> list[NicTimes]:
    """Return the times from the values of `_values`.

    ``call_us``: time of a gather call of the driver's thread. The thread makes one call at a time,
    which limits the launches between two mini-batches.
    """
    found = []
    for number in range(len(next(iter(values.values())))):
        members: dict = {}
        for name, each in values.items():
            field, _, phase = name.partition(".")
            value = float(each[number])
            if phase:
                members.setdefault(field, {})[phase] = value
            else:
                members[field] = value
        if call_us:
            members["launches"] = min(members["launches"], members["interval_us"] / call_us)
        found.append(NicTimes(**members))
    return found


def _means(times: Sequence[NicTimes]) -> dict[str, float]:
    single = {name: float(each.mean()) for name, each in _values(times).items() if "." not in name}
    return single | {"service_us": float(np.mean([each.service_us for each in times]))}

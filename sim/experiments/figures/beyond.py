"""Beyond the paper: what else a NIC can do, each against the full system without it.

To add one, add a line to `EXTRAS`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sim.evaluation.measure import JUDGED, speedup
from sim.evaluation.point import Point
from sim.evaluation.setting import Setting
from sim.evaluation.store import Results
from sim.experiments.figures.exhibit import Table
from sim.experiments.figures.row import Row

__all__ = ["EXHIBIT", "EXTRAS", "Extra"]


@dataclass(frozen=True)
class Extra:
    """Something that the paper does not have.

    Members
    -------
    name, about: for people. workload: what it is for.
    fields: of the full system's point with it, such as settings of the NIC. against: of the point
        that it is compared with, by default the full system as it is.
    rtl: whether only RTL tells the two apart. They are then run in it, on the first data set with
        the first profile, and only where an evaluation runs points in it.
    datasets: that it is for, all by default.
    """

    name: str
    about: str
    workload: str
    fields: tuple[tuple[str, object], ...]
    against: tuple[tuple[str, object], ...] = ()
    rtl: bool = False
    datasets: tuple[str, ...] = ()


EXTRAS = (
    Extra("requester-side merge", "identical keys on their way to other nodes travel once",
          "inference", (("settings", ("requester_merge=true",)),)),
    Extra("copies of small tables", "tables of at most 10,000 rows are copied to every node",
          "inference", (("copied_rows", 10_000),)),
    Extra("resident gather", "a kernel that never ends gathers rows, in place of launches",
          "inference", (("persistent_gather", True),)),
    Extra("hold buffer of 2,048 vectors", "in place of 1,024, which are 39 samples of Terabyte: "
          "what is asked for does not wait for room so often", "inference",
          (("settings", ("hold_vectors=2048",)),), datasets=("terabyte",)),
    Extra("greedy mini-batches", "samples chosen greedily in place of the graph algorithm",
          "inference", (("batching", "greedy"),)),
    Extra("exact gradients", "partial sums travel exactly, so that the weights do not depend on "
          "the number of nodes; against partial sums rounded to float32", "training",
          (("settings", ("gradient_partials=exact",)),),
          (("settings", ("gradient_partials=rounded",)),), rtl=True),
)

def _cases(setting: Setting) -> Iterator[tuple[Extra, Point, Point]]:
    """Yield each extra with the point that has it and the point that it is compared with."""
    for extra in EXTRAS:
        few, run = (1, {"fidelity": "rtl"}) if extra.rtl else (None, {})
        if extra.rtl and not setting.markers and setting.fidelity != "rtl":
            continue
        datasets = [name for name in setting.datasets if name in (extra.datasets or (name,))]
        for dataset in datasets[:few]:
            for software in setting.softwares[:few]:
                own, other = (setting.point(dataset, "fs", extra.workload, software,
                                            **run | dict(fields))
                              for fields in (extra.fields, extra.against))
                yield extra, own, other


@dataclass(frozen=True)
class _Beyond(Table):
    """Each extra against the full system without it."""

    def points(self, setting: Setting) -> list[Point]:
        """Return the points with and without each extra."""
        return [point for _, *both in _cases(setting) for point in both]

    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return, for each extra, the speedup that it adds to the full system, and bytes on the
        network as a share of those without it."""
        rows = []
        for extra, own, other in _cases(setting):
            metric = JUDGED[extra.workload]
            faster = speedup(metric, *(results.value(point, metric) for point in (own, other)))
            sent, before = (results.value(point, "traffic.total.bytes") for point in (own, other))
            for name, value in (("speedup_over_without", faster),
                                ("bytes_over_without", sent / before if sent and before else None)):
                rows.append(Row.at(own, f"FS + {extra.name}", f"{extra.workload}_{name}", value,
                                   "x"))
        return rows

    def notes(self) -> list[tuple[str, str]]:
        """Return what each extra is."""
        return [(extra.name, extra.about) for extra in EXTRAS]


EXHIBIT = _Beyond("beyond", "Beyond the paper")

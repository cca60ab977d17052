"""Beyond the paper: further NIC options, each against the full system without it.

To add an option, add a line to `EXTRAS`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sim.evaluation.measure import JUDGED, speedup
from sim.evaluation.point import Point
from sim.evaluation.setting import Setting
from sim.evaluation.store import Results
from sim.experiments.figures.exhibit import Table
from sim.experiments.figures.row import row_at
from sim.page.rows import Row

__all__ = ["EXHIBIT", "EXTRAS", "Extra"]


@dataclass(frozen=True)
class Extra:
    """An option that the paper does not have.

    Members
    -------
    name, about: displayed texts. workload: its workload.
    fields: fields of the full system's point with it, such as NIC settings. against: fields of the
        compared point, by default the full system.
    rtl: whether only RTL shows a difference. The option then runs in RTL, on the first data set
        with the first profile, if the evaluation runs any points in RTL.
    datasets: its data sets, all by default.
    """

    name: str
    about: str
    workload: str
    fields: tuple[tuple[str, object], ...]
    against: tuple[tuple[str, object], ...] = ()
    rtl: bool = False
    datasets: tuple[str, ...] = ()


EXTRAS = (
    Extra("requester-side merge", "identical keys to another node are sent once",
          "inference", (("settings", ("requester_merge=true",)),)),
    Extra("copies of small tables", "tables of at most 10,000 rows are copied to every node",
          "inference", (("copied_rows", 10_000),)),
    Extra("resident gather", "a persistent kernel gathers rows, instead of launched gathers",
          "inference", (("persistent_gather", True),)),
    Extra("hold buffer of 2,048 vectors", "instead of 1,024, which are 39 samples of Terabyte: "
          "lookups wait for buffer space less often", "inference",
          (("settings", ("hold_vectors=2048",)),), datasets=("terabyte",)),
    Extra("greedy mini-batches", "samples chosen greedily instead of by the graph algorithm",
          "inference", (("batching", "greedy"),)),
    Extra("exact gradients", "partial sums are sent exactly, so the weights do not depend on the "
          "number of nodes; against partial sums rounded to float32", "training",
          (("settings", ("gradient_partials=exact",)),),
          (("settings", ("gradient_partials=rounded",)),), rtl=True),
)

def _cases(setting: Setting) -> Iterator[tuple[Extra, Point, Point]]:
    """Yield each option with the point that has it and the compared point."""
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
    """Each option against the full system without it."""

    def points(self, setting: Setting) -> list[Point]:
        """Return the points with and without each option."""
        return [point for _, *both in _cases(setting) for point in both]

    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return, for each option, the added speedup, and the bytes on the network as a share of
        those without it."""
        rows = []
        for extra, own, other in _cases(setting):
            metric = JUDGED[extra.workload]
            faster = speedup(metric, *(results.value(point, metric) for point in (own, other)))
            sent, before = (results.value(point, "traffic.total.bytes") for point in (own, other))
            for name, value in (("speedup_over_without", faster),
                                ("bytes_over_without", sent / before if sent and before else None)):
                rows.append(row_at(own, f"FS + {extra.name}", f"{extra.workload}_{name}", value,
                                   "x"))
        return rows

    def notes(self) -> list[tuple[str, str]]:
        """Return descriptions of the options."""
        return [(extra.name, extra.about) for extra in EXTRAS]


EXHIBIT = _Beyond("beyond", "Beyond the paper")

"""Cells of the phase map: the varied values, and the setting of each cell."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from host.devices.software import SoftwareProfile
from host.timing.network import NetworkProfile
from host.toml.profile import load_profile
from sim.evaluation.point import Point
from sim.evaluation.setting import BASES, FULL_SYSTEMS, Setting

__all__ = ["INFERENCE", "LARGE", "LINKS", "MINI_BATCHES", "OPERATORS", "PAIRS", "TRAINING", "Cell",
           "cells_of", "points_of", "setting_of"]

LINKS = (10, 25, 50, 100)
"""Link rates, Gb/s."""

MINI_BATCHES = (128, 512, 2048, 8192)
"""Samples of a mini-batch over all nodes."""

OPERATORS = (20, 5)
"""Host time of one operator call, us."""

LARGE = 8192
"""The largest mini-batch, whose NICs take most of the time. It is measured only with the first and
last of `LINKS` and the first of `OPERATORS`, with windows of half as many mini-batches, and without
`PAIRS`."""

INFERENCE = ("bl-paper", "nic", "ga+nic", "lc", "rc", "sc", "lc+rc", "ga+rc", "fs")
"""The nine compositions of figures 16 to 22: the NIC as transport, the graph algorithm and each
part added to it, both caches (figure 21), remote cache with graph algorithm (figure 19), all."""

TRAINING = ("bl-paper", "nic", "ga+nic", "lc", "sc", "lc+sc", "fs")
"""The compositions in training (figures 23 to 26), and both parts without GA."""

PAIRS = ("lc+rc", "ga+rc")
"""Compositions of two techniques."""

_WINDOW = 16
"""Mini-batches measured, after equally many of warm-up: one window."""

_SIZES = (0.0, 0.1)
"""Cache sizes: claims about sizes compare no cache with 10 %."""

_LINK, _OPERATOR = "ethernet_100g_switch", "software_{}.operator_us"


@dataclass(frozen=True)
class Cell:
    """A cell: ``dataset``, ``link`` in Gb/s, ``mini_batch`` in samples, ``operator`` in us."""

    dataset: str
    link: int
    mini_batch: int
    operator: int

    @property
    def name(self) -> str:
        """Return the cell without its data set, in words."""
        return f"{self.link} Gb/s, mini-batch {self.mini_batch:,}, operator {self.operator} us"


def cells_of(dataset: str) -> Iterator[Cell]:
    """Yield the cells of a data set."""
    for operator in OPERATORS:
        for mini_batch in MINI_BATCHES:
            for link in LINKS:
                if mini_batch < LARGE or (
                        link in (LINKS[0], LINKS[-1]) and operator == OPERATORS[0]):
                    yield Cell(dataset, link, mini_batch, operator)


def setting_of(setting: Setting, cell: Cell) -> Setting:
    """Return the setting of a cell: ``setting`` with one data set, one window, and the cell's
    values."""
    network = load_profile(_LINK, NetworkProfile)
    factors = {f"{_LINK}.bandwidth_gbit_s": cell.link / network.bandwidth_gbit_s}
    for software in setting.softwares:
        profile = load_profile(f"software_{software}", SoftwareProfile)
        factors[_OPERATOR.format(software)] = cell.operator / profile.operator_us
    # A nominal constant has no factor, so that the point is shared with other figures.
    scaled = tuple((name, factor) for name, factor in factors.items() if factor != 1)
    every = dict(setting.every)
    # The cell's own values replace the setting's.
    every["scaled"] = (*(each for each in every.get("scaled", ()) if each[0] not in factors),
                       *scaled)
    window = _WINDOW
    if cell.mini_batch >= LARGE:
        window //= 2
        every["window"] = window * cell.mini_batch
    return replace(
        setting, datasets=(cell.dataset,), mini_batches=((cell.dataset, cell.mini_batch),),
        warmup=min(window, setting.warmup), measured=min(window, setting.measured),
        seeds=(setting.seed,), shares=_SIZES, swept=(), markers=False,
        every=tuple(every.items()))


def points_of(setting: Setting, cell: Cell) -> list[Point]:
    """Return the points of a cell.

    They are the compositions with the first software profile (normally eager), full systems and
    both baselines with every profile, and caches of the sizes that claims compare.
    """
    own, dataset = setting_of(setting, cell), cell.dataset
    first, *others = setting.softwares
    points = [own.point(dataset, system, workload, first)
              for workload, systems in (("inference", INFERENCE), ("training", TRAINING))
              for system in systems if system not in PAIRS or cell.mini_batch < LARGE]
    points += [own.point(dataset, "lc", workload, first, local_cache=size)
               for workload in ("inference", "training") for size in _SIZES]
    if cell.mini_batch < LARGE:
        points += [own.point(dataset, "lc+rc", "inference", first, remote_cache=size)
                   for size in _SIZES]
    return points + [own.point(dataset, system, workload, software)
                     for software in (first, *others) for workload in ("inference", "training")
                     for system in (*FULL_SYSTEMS, *BASES)]

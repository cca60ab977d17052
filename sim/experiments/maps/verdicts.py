"""Which claims agree in each cell of the phase map, and who wins there."""

from collections.abc import Mapping
from dataclasses import dataclass

from sim.evaluation.setting import FULL_SYSTEMS, Setting
from sim.evaluation.store import Results
from sim.experiments.claims.book import Book
from sim.experiments.claims.registry import CLAIMS
from sim.experiments.maps.cells import Cell, setting_of

__all__ = ["JUDGED", "RATIOS", "Ratio", "agreeing", "ratio", "verdicts"]

JUDGED = ("C1", "C2", "C5", "C6", "C8", "C9", "C10", "C11", "C15", "C19", "C21", "C22", "C23",
          "C24")
"""Claims that a cell's points can tell: the others sweep nodes, mini-batches or sizes of caches,
compare data sets, or describe these alone. C2, C5 and C10 compare no cache with one of 10 %."""


@dataclass(frozen=True)
class Ratio:
    """A speedup: of a full ``system``, in a ``workload``, with ``software``, over ``base``."""

    system: str
    workload: str
    software: str
    base: str

    @property
    def name(self) -> str:
        """Return the ratio in words."""
        return f"{self.system.upper()}, {self.workload}, {self.software}, over {self.base}"


RATIOS = tuple(Ratio(system, workload, software, base) for system in FULL_SYSTEMS
               for workload in ("inference", "training")
               for software, base in (("eager", "bl-paper"), ("tuned", "bl-tuned")))


def verdicts(setting: Setting, results: Results, cell: Cell) -> dict[str, bool | None]:
    """Return whether each claim agrees in a cell, None where it was not measured.

    Judged as the paper stands: with the first software profile, against ``bl-paper``.
    """
    own = setting_of(setting, cell)
    found = {}
    for claim in CLAIMS:
        if claim.name in JUDGED:
            found[claim.name] = claim.verdict(Book(own, results, own.softwares[0])).agrees
    return found


def agreeing(found: Mapping[str, bool | None]) -> tuple[int, int]:
    """Return how many claims agree, and how many were judged."""
    known = [value for value in found.values() if value is not None]
    return sum(known), len(known)


def ratio(setting: Setting, results: Results, cell: Cell, of: Ratio) -> float | None:
    """Return a speedup in a cell."""
    own = setting_of(setting, cell)
    if of.software not in own.softwares:
        return None
    found = Book(own, results, of.software, of.base).speedups(of.system, of.workload)[cell.dataset]
    return found and found.value

"""What was seen of one process of a PyTorch program, without its tensors: it can be sent."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple

from sim.torch.catching.capture import Capture
from sim.torch.catching.process_group import collectives
from sim.torch.catching.session import Session
from sim.torch.lookups.comparison import Comparison
from sim.torch.lookups.dense import Chains
from sim.torch.lookups.record import Record
from sim.torch.values.written import Written

__all__ = ["Counts", "Seen", "caches_of"]


class Counts(NamedTuple):
    """What a process says when a mini-batch is over: ``tables`` and ``steps``, new ones as plain
    values; ``exchanges`` so far, see :class:`sim.torch.lookups.record.Record`."""

    tables: list[dict]
    steps: list[dict]
    exchanges: int


@dataclass
class Seen:
    """What is reported of a process, or of several that are put together.

    Members
    -------
    rank, size: of the process among those of the program; None and 1 where it is the only one.
    tables: as plain values. record, chains, comparison, verdicts, latencies, row_times, counts,
        resets, updates, written, weighted, gradients, uncached: those of its
        :class:`sim.torch.catching.session.Session`.
    missed: how often each lookup was not caught, by its place and why.
    collectives: of this process, as plain values.
    exit_status: with which its script ended. silent: whether it ended without a word, so that only
        its rank, tables and counts of mini-batches are known.
    """

    rank: int | None
    size: int
    tables: list[dict]
    record: Record
    chains: Chains
    comparison: Comparison
    verdicts: dict[str, int]
    latencies: list[float]
    row_times: list[float]
    counts: Counter[str]
    resets: Counter[str]
    updates: Counter[str]
    written: Written
    weighted: int
    gradients: int
    uncached: int
    missed: Counter[tuple[str, str]]
    collectives: list[dict]
    exit_status: int = 0
    silent: bool = False

    @classmethod
    def of(cls, session: Session, capture: Capture, exit_status: int = 0,
           rank: int | None = None, size: int = 1) -> "Seen":
        """Return what was seen by a session that is over."""
        session.record.cached(caches_of(session))
        same = ("chains", "comparison", "verdicts", "latencies", "counts", "resets", "updates",
                "row_times", "written", "weighted", "gradients", "uncached")
        return cls(rank=rank, size=size, tables=[table.to_json() for table in session.tables.all],
                   record=session.record.without_rows(), missed=capture.missed,
                   collectives=collectives(), exit_status=exit_status,
                   **{name: getattr(session, name) for name in same})

    @classmethod
    def counted(cls, rank: int | None, size: int) -> "Seen":
        """Return what was seen of a process that has not looked up anything, for `add`."""
        return cls(rank, size, [], Record(), Chains(), Comparison(), {"equal": 0, "different": 0},
                   [], [], Counter(), Counter(), Counter(), Written(), 0, 0, 0, Counter(), [],
                   silent=True)

    def add(self, counts: Counts) -> None:
        """Add mini-batches that are over, and tables, of a process that may end without a word."""
        self.tables += counts.tables
        self.record.steps += counts.steps
        self.record.exchanges = counts.exchanges

    def by_itself(self) -> "Seen":
        """Return this as what was seen of a program of one process."""
        return replace(self, rank=None, size=1)


def caches_of(session: Session, node: int | None = None) -> Counter[tuple[int, str]]:
    """Return what the local caches of a session's NICs counted, by mini-batch and name.

    ``node``: whose cache; None for all.
    """
    found = Counter[tuple[int, str]]()
    for (number, step, name), count in session.caches.items():
        if node in (None, number):
            found[step, name] += count
    return found

"""Record of a PyTorch program: the lookups of each mini-batch."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from host.samples import KEY_ROW_BITS
from sim.torch.lookups.bags import Bags

__all__ = ["COUNTED", "RECENT", "Kept", "MiniBatch", "Record"]

COUNTED = ("hits", "accesses")
"""Counts of local caches in a mini-batch. An access is a distinct key that reaches the cache of its
owner."""

RECENT = 64
"""Number of recent mini-batches of each kind whose lookups are kept, to time systems."""


@dataclass
class MiniBatch:
    """The calls of a forward pass, in order.

    Members
    -------
    columns: bags of each call.
    tables: table of each call.
    read: True if the script has read a vector.
    trained: True if gradients have returned.
    exchanged: bytes that the process has sent in all-to-all exchanges since the first call.
    """

    columns: list[Bags] = field(default_factory=list)
    tables: list[int] = field(default_factory=list)
    read: bool = False
    trained: bool = False
    exchanged: int = 0

    def takes(self, samples: int, table: int) -> bool:
        """Return True if a call belongs to this mini-batch, False if it begins the next mini-batch.

        A new mini-batch begins if the number of samples changes, if gradients have returned, or if
        a table is looked up again after a vector was read.
        """
        return not self.columns or (samples == len(self.columns[0]) and not self.trained
                                    and not (self.read and table in self.tables))


@dataclass(frozen=True)
class Kept:
    """The lookups of a mini-batch.

    columns: bags of each call.
    tables: table of each column.
    step: number of the mini-batch in the record.
    """

    columns: tuple[Bags, ...]
    tables: tuple[int, ...]
    step: int = 0

    @property
    def shape(self) -> tuple:
        """Samples, tables and poolings; mini-batches of equal shape belong to the same model."""
        return (len(self.columns[0]), self.tables,
                tuple(bags.pooling for bags in self.columns))


@dataclass
class Record:
    """The finished mini-batches.

    steps: counts of each mini-batch as plain values; cache counts are None until they are known.
    recent: lookups of the last `RECENT` mini-batches of each kind, by ``trained``.
    exchanges: mini-batches whose vectors this process sent in all-to-all exchanges. At least half
        of the vectors' bytes count as sent, because they may travel in half precision.
    """

    steps: list[dict] = field(default_factory=list)
    recent: dict[bool, deque[Kept]] = field(default_factory=dict)
    exchanges: int = 0

    def __post_init__(self) -> None:
        self.recent = {trained: deque(self.recent.get(trained, ()), maxlen=RECENT)
                       for trained in (False, True)}

    def add(self, batch: MiniBatch) -> None:
        """Add a finished mini-batch."""
        lookups = sum(len(bags.rows) for bags in batch.columns)
        self.steps.append({
            "workload": "training" if batch.trained else "inference",
            "samples": len(batch.columns[0]), "bags": sum(map(len, batch.columns)),
            "lookups": lookups, "unique": _unique(batch.columns, batch.tables),
            "bytes": sum(4 * bags.dimension * len(bags.rows) for bags in batch.columns),
            **{f"local_cache_{name}": None for name in COUNTED}})
        pooled = sum(4 * bags.dimension * len(bags) for bags in batch.columns)
        self.exchanges += 0 < pooled <= 2 * batch.exchanged
        if len(batch.columns[0]):
            self.recent[batch.trained].append(
                Kept(tuple(batch.columns), tuple(batch.tables), len(self.steps) - 1))

    def cached(self, counts: Mapping[tuple[int, str], int]) -> None:
        """Add counts of local caches, by mini-batch number and name in `COUNTED`."""
        for (number, name), count in counts.items():
            if number < len(self.steps):  # an unfinished mini-batch is not recorded
                self.steps[number][f"local_cache_{name}"] = count

    def without_rows(self) -> "Record":
        """Return this record with tables that have a shape and no memory."""
        found = Record()
        found.steps, found.exchanges = self.steps, self.exchanges
        for trained, kept in self.recent.items():
            found.recent[trained].extend(replace(each, columns=tuple(
                bags.without_rows() for bags in each.columns)) for each in kept)
        return found

    def alike(self, trained: bool) -> list[Kept]:
        """Return the recent mini-batches of a kind with the most frequent shape."""
        kept = self.recent[trained]
        shapes = Counter(each.shape for each in kept)
        return [each for each in kept if each.shape == shapes.most_common(1)[0][0]]


def _unique(columns: Sequence[Bags], tables: Sequence[int]) -> int:
    """Return the number of distinct keys."""
    keys = np.sort(np.concatenate([
        bags.rows | table << KEY_ROW_BITS for bags, table in zip(columns, tables)]))
    return int(len(keys) > 0) + int(np.count_nonzero(keys[1:] != keys[:-1]))

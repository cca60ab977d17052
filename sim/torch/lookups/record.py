"""The record of a PyTorch program: what each mini-batch looked up."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from host.samples import KEY_ROW_BITS
from sim.torch.lookups.bags import Bags

__all__ = ["COUNTED", "RECENT", "Kept", "MiniBatch", "Record"]

COUNTED = ("hits", "accesses")
"""What local caches count in a mini-batch. An access is a key that comes to the cache of the node
where its row lies, after equal keys were merged."""

RECENT = 64
"""The last mini-batches of each kind whose lookups are kept, for the times of systems."""


@dataclass
class MiniBatch:
    """The calls of one forward pass, in their order.

    Members
    -------
    columns: the bags of each call. tables: the table of each.
    read: whether the script has read one of its vectors. trained: whether gradients came back.
    exchanged: bytes that the process gave others in exchanges of all with all since.
    """

    columns: list[Bags] = field(default_factory=list)
    tables: list[int] = field(default_factory=list)
    read: bool = False
    trained: bool = False
    exchanged: int = 0

    def takes(self, bags: Bags, table: int) -> bool:
        """Return whether a call belongs to this mini-batch and not to the next one.

        It does while samples are as many, no gradients have come back, and the table was not yet
        looked up or no vector was read yet.
        """
        return not self.columns or (len(bags) == len(self.columns[0]) and not self.trained
                                    and not (self.read and table in self.tables))


@dataclass(frozen=True)
class Kept:
    """The lookups of a mini-batch.

    Members: ``columns``; ``tables``, of each column; ``step``, its number in the record.
    """

    columns: tuple[Bags, ...]
    tables: tuple[int, ...]
    step: int = 0

    @property
    def shape(self) -> tuple:
        """What two mini-batches must share to be of one model: samples, tables and poolings."""
        return (len(self.columns[0]), self.tables,
                tuple(bags.pooling for bags in self.columns))


@dataclass
class Record:
    """The mini-batches that are over.

    Members: ``steps``, counts of each as plain values, those of local caches None while nobody has
    told them; ``recent``, the lookups of the last `RECENT`
    of each kind, by whether they trained; ``exchanges``, mini-batches whose vectors this process
    gave others in exchanges of all with all: at least half of their bytes, since half precision may
    travel.
    """

    steps: list[dict] = field(default_factory=list)
    recent: dict[bool, deque[Kept]] = field(default_factory=dict)
    exchanges: int = 0

    def __post_init__(self) -> None:
        self.recent = {trained: deque(self.recent.get(trained, ()), maxlen=RECENT)
                       for trained in (False, True)}

    def add(self, batch: MiniBatch) -> None:
        """Add a mini-batch that is over."""
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
        """Add to the counts of mini-batches what local caches counted in them, by their numbers
        and the names in `COUNTED`."""
        for (number, name), count in counts.items():
            if number < len(self.steps):  # one that was left out is not there
                self.steps[number][f"local_cache_{name}"] = count

    def without_rows(self) -> "Record":
        """Return this record with tables that have shapes and no rows."""
        found = Record()
        found.steps, found.exchanges = self.steps, self.exchanges
        for trained, kept in self.recent.items():
            found.recent[trained].extend(replace(each, columns=tuple(
                bags.without_rows() for bags in each.columns)) for each in kept)
        return found

    def alike(self, trained: bool) -> list[Kept]:
        """Return the recent mini-batches of a kind that have the shape of most of them."""
        kept = self.recent[trained]
        shapes = Counter(each.shape for each in kept)
        return [each for each in kept if each.shape == shapes.most_common(1)[0][0]]


def _unique(columns: Sequence[Bags], tables: Sequence[int]) -> int:
    """Return the number of distinct keys."""
    keys = np.sort(np.concatenate([
        bags.rows | table << KEY_ROW_BITS for bags, table in zip(columns, tables)]))
    return int(len(keys) > 0) + int(np.count_nonzero(keys[1:] != keys[:-1]))

"""Counts of a workload that decide between systems, and the sentence that names them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from host.systems import Workload

__all__ = ["Counts", "reason_of", "skew_note"]

_MANY_ROWS = 1.1
"""Distinct foreign rows per foreign bag above which keys per bag decide."""
_SKEWED = 1.5
"""Rows of the busiest node, relative to the mean node, above which a comparison says so."""


@dataclass(frozen=True)
class Counts:
    """Mean counts of a mini-batch over all nodes.

    lookups: keys. bags: non-empty bags. foreign_bags: bags of other nodes' tables.
    foreign_rows: distinct rows of other nodes in each share, added over the nodes.
    busiest, busiest_rows: node that other nodes request most of these rows from, and their number.
    """

    lookups: float
    bags: float
    foreign_bags: float
    foreign_rows: float
    busiest: int = 0
    busiest_rows: float = 0.0

    @classmethod
    def of(cls, work: Sequence[Workload]) -> "Counts":
        """Return the means over mini-batches."""
        sent = np.mean([w.requested.sum(axis=0) - w.requested.diagonal() for w in work], axis=0)
        return cls(*(float(np.mean(values)) for values in zip(*(
            (w.lookups.sum(), w.bags.sum(), _foreign(w.bags), _foreign(w.requested))
            for w in work))), int(sent.argmax()), float(sent.max()))

    @property
    def rows_per_bag(self) -> float:
        """Distinct foreign rows per foreign bag; 0 without foreign bags."""
        return self.foreign_rows / self.foreign_bags if self.foreign_bags else 0.0

    def skew(self, nodes: int) -> float:
        """Return the foreign rows of the busiest of ``nodes``, relative to the mean node."""
        return self.busiest_rows * nodes / self.foreign_rows if self.foreign_rows else 1.0

    def to_json(self, mini_batch: int) -> dict:
        """Return the counts as plain values, keys and bags per sample."""
        return {"keys": self.lookups / mini_batch, "bags": self.bags / mini_batch,
                "foreign_bags": self.foreign_bags, "foreign_rows": self.foreign_rows}


def skew_note(counts: Counts, nodes: int, placement: str) -> str | None:
    """Return a line on a node that sends far more rows than the mean node; None without one."""
    skew = counts.skew(nodes)
    if skew < _SKEWED:
        return None
    return (f"Node {counts.busiest} sends {skew:.1f} times the rows of the mean node, which limits "
            f"systems that send rows{'' if placement == 'row' else ': try --placement row'}.")


def _foreign(pairs: np.ndarray) -> int:
    return int(pairs.sum() - np.trace(pairs))


def reason_of(rows: Sequence[dict], counts: Counts) -> str:
    """Return the sentence that names the deciding factor.

    rows: systems of a comparison, fastest first. counts: of its workload.
    """
    built = [row for row in rows if row["why"] is None]
    if not built:
        return "No system can be built."
    first = built[0]
    if len(built) == 1:
        return f"{first['system']} is the only system; its bottleneck is {first['bottleneck']}."
    second = built[1]
    ratio = second["interval_us"] / first["interval_us"]
    lead = (f"{first['system']} is {ratio:.2f} times as fast as {second['system']}, whose "
            f"bottleneck is {second['bottleneck']}")
    if ratio < 1.01:
        return (f"{first['system']} and {second['system']} are equally fast within 1 %; the "
                f"bottleneck of {first['system']} is {first['bottleneck']}.")
    sent = f"a share has {counts.rows_per_bag:.2f} distinct foreign rows per foreign bag"
    if not first["network_bytes_per_sample"]:
        return f"{lead}: every node of {first['system']} has a copy of all tables it needs."
    if first["network_bytes_per_sample"] < 0.9 * second["network_bytes_per_sample"]:
        why = "keys per bag" if counts.rows_per_bag > _MANY_ROWS else "bytes"
        return f"{lead}: {why} decide, because {sent}."
    if second["bottleneck"] in ("cpu", "gpu", "nccl"):
        return f"{lead}: the size of a mini-batch decides, because fixed costs exceed bytes."
    return f"{lead}; {sent}."

"""A GPU's shard of the tables of MLPerf's DLRM-DCNv2 in NVIDIA's HugeCTR.

The submission's ``sharding/planner.py`` assigns tables to GPUs or, with several hosts, to hosts. A
key's row is on the GPU of its table whose number is the key modulo the number of the table's GPUs
(HugeCTR's ``embedding/data_distributor/key_filtering_operators.cu``).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from host.measurements.published import Flattening, Run

__all__ = ["GPUS", "Shard", "shards_of"]

GPUS = 8
"""GPUs of a host; each has a thread of the host."""


@dataclass(frozen=True)
class Shard:
    """A GPU's part of the tables.

    ``tables``: tables of its rows; ``lookups``: lookups per sample; ``filled``: bags of a sample
    with a key on this GPU.
    """

    tables: int
    lookups: float
    filled: float


def shards_of(found: Flattening, run: Run) -> list[Shard]:
    """Return the shard of one GPU of each bucket."""
    gpus = 1 if run.hosts == 1 else GPUS

    def of(tables: Iterable[int]) -> Shard:
        spread = {table: gpus * sum(table in other for other in run.shards) for table in tables}
        return Shard(len(spread), sum(found.hot[table] / among for table, among in spread.items()),
                     sum(1 - (1 - 1 / among) ** found.hot[table]
                         for table, among in spread.items()))
    return [of(tables) for tables in run.shards]

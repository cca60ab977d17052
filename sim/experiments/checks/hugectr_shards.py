"""What the GPUs of MLPerf's DLRM-DCNv2 have of its tables, in NVIDIA's HugeCTR.

The submission's ``sharding/planner.py`` deals tables to GPUs or, with several hosts, to hosts. The
row of a key lies on that of its table's GPUs whose number is the key modulo their number (HugeCTR's
``embedding/data_distributor/key_filtering_operators.cu``).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from host.measurements.published import Flattening, Run

__all__ = ["GPUS", "Shard", "shards_of"]

GPUS = 8
"""GPUs of a host, each with a thread of the host."""


@dataclass(frozen=True)
class Shard:
    """What a GPU has of the tables.

    ``tables`` that it has rows of; its ``lookups`` for a sample; ``filled``, how many of a sample's
    bags have a key on it.
    """

    tables: int
    lookups: float
    filled: float


def shards_of(found: Flattening, run: Run) -> list[Shard]:
    """Return the shard of a GPU of each bucket."""
    gpus = 1 if run.hosts == 1 else GPUS

    def of(tables: Iterable[int]) -> Shard:
        spread = {table: gpus * sum(table in other for other in run.shards) for table in tables}
        return Shard(len(spread), sum(found.hot[table] / among for table, among in spread.items()),
                     sum(1 - (1 - 1 / among) ** found.hot[table]
                         for table, among in spread.items()))
    return [of(tables) for tables in run.shards]

"""The lookups of a mini-batch: the bags of one forward pass, a column for each call."""

from collections.abc import Sequence

import numpy as np

from host.dlrm.float32 import means
from host.samples import Samples, segment_indices
from sim.torch.lookups.bags import Bags, pooled

__all__ = ["columns_of", "one_key_columns", "samples_of", "vectors_of"]


def samples_of(columns: Sequence[Bags], tables: Sequence[int], dense: int = 1) -> Samples:
    """Return samples whose bags are those of ``columns``, each looked up in one of ``tables``.

    Columns need not ascend in their tables, and a table may have several. Every column has a bag
    for each sample. ``dense``: features of each sample, all 0.
    """
    count = len(columns[0])
    lengths = np.stack([bags.lengths for bags in columns], axis=1).astype(np.int32)
    ends = np.cumsum(lengths.reshape(-1).astype(np.int64)).reshape(lengths.shape)
    rows = np.empty(int(lengths.sum()), np.int64)
    table = np.empty(len(rows), np.int32)
    for column, (bags, number) in enumerate(zip(columns, tables)):
        own = lengths[:, column]
        places = segment_indices(ends[:, column] - own, own)
        rows[places], table[places] = bags.rows, number
    return Samples(np.zeros((count, dense), np.float32), np.zeros(count, np.float32), lengths,
                   table, rows)


def one_key_columns(bags: Bags) -> list[Bags]:
    """Return bags as columns of bags of at most one key: the first keys, the second ones, ...

    So a NIC gives every key's vector by itself, which the host weights and pools.
    """
    starts = np.cumsum(bags.lengths) - bags.lengths
    columns = []
    for position in range(int(bags.lengths.max(initial=0))):
        has = bags.lengths > position
        columns.append(Bags(bags.weight, bags.rows[starts[has] + position],
                            has.astype(np.int64), "sum"))
    return columns


def columns_of(calls: Sequence[tuple[Bags, int]]) -> tuple[list[Bags], list[int], list[slice]]:
    """Return the columns of calls, each its bags and their table; the table of each column; which
    columns are those of each call."""
    columns, tables, spans = [], [], []
    for bags, table in calls:
        mine = [bags] if bags.weights is None else one_key_columns(bags)
        spans.append(slice(len(columns), len(columns) + len(mine)))
        columns += mine
        tables += [table] * len(mine)
    return columns, tables, spans


def vectors_of(bags: Bags, answers: np.ndarray, pooling: str) -> np.ndarray:
    """Return the vectors of bags, float32 ``[n, d]``, from what NICs answer to their columns.

    ``answers``: float32 ``[n, columns, dimension]``, pooled as the NICs' ``pooling`` says.
    """
    answers = answers[:, :, :bags.dimension]
    if bags.weights is not None:
        has = np.arange(answers.shape[1]) < bags.lengths[:, None]
        return pooled(bags, answers[has])
    given = answers[:, 0]
    if pooling == "sum" and bags.pooling == "mean":
        given = means(given, bags.lengths)
    return np.ascontiguousarray(given)

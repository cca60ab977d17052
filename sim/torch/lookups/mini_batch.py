"""Lookups of a mini-batch: the bags of a forward pass, a column for each call."""

from collections.abc import Sequence

import numpy as np

from host.dlrm.float32 import means
from host.samples import Samples, segment_indices
from sim.torch.lookups.bags import Bags, pooled

__all__ = ["columns_of", "one_key_columns", "samples_of", "vectors_of"]


def samples_of(columns: Sequence[Bags], tables: Sequence[int], dense: int = 1) -> Samples:
    """Return samples with the bags of ``columns``, each looked up in an entry of ``tables``.

    Tables may occur in any order and more than once. Every column has a bag for each sample.

    dense: dense features of each sample, all 0.
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
    """Split bags into columns of at most one key: first keys, second keys, and so on.

    NICs then return every key's vector separately, and the host weights and pools them.
    """
    starts = np.cumsum(bags.lengths) - bags.lengths
    columns = []
    for position in range(int(bags.lengths.max(initial=0))):
        has = bags.lengths > position
        columns.append(Bags(bags.weight, bags.rows[starts[has] + position],
                            has.astype(np.int64), "sum"))
    return columns


def columns_of(calls: Sequence[tuple[Bags, int]]) -> tuple[list[Bags], list[int], list[slice]]:
    """Return the columns of calls, the table of each column, and the columns of each call.

    calls: bags and table of each call.
    """
    columns, tables, spans = [], [], []
    for bags, table in calls:
        mine = [bags] if bags.weights is None else one_key_columns(bags)
        spans.append(slice(len(columns), len(columns) + len(mine)))
        columns += mine
        tables += [table] * len(mine)
    return columns, tables, spans


def vectors_of(bags: Bags, answers: np.ndarray, pooling: str) -> np.ndarray:
    """Return the vectors of bags, float32 ``[n, d]``, from the NICs' answers to their columns.

    answers: float32 ``[n, columns, dimension]``.
    pooling: pooling of the NICs.
    """
    answers = answers[:, :, :bags.dimension]
    if bags.weights is not None:
        has = np.arange(answers.shape[1]) < bags.lengths[:, None]
        return pooled(bags, answers[has])
    given = answers[:, 0]
    if pooling == "sum" and bags.pooling == "mean":
        given = means(given, bags.lengths)
    return np.ascontiguousarray(given)

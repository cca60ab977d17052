"""Embedding part of a step on GPUs or CPUs: inputs, lookups and updates of the tables."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from host.devices.cpu import CpuTime
from host.devices.embedding_work import expand, gather, layout, scatter_update, segment_sum, unique
from host.devices.gpu_time import GpuTime
from host.devices.operation import Operation
from host.systems.options import KEY_BYTES
from host.systems.workload import Workload

__all__ = ["INDEX", "by_table", "input_bytes", "lookups", "pooled", "row_updates",
           "rows_of_tables", "vector_bytes"]

INDEX = KEY_BYTES[0]
"""Bytes of an index or a bag offset."""


def vector_bytes(w: Workload) -> int:
    """Return the bytes of an embedding vector."""
    return 4 * w.model.dimension


def input_bytes(w: Workload, arrived: bool = True, index: int = INDEX) -> float:
    """Return the bytes of dense features, indices and offsets, maximum over nodes.

    arrived: count indices at owners, after the input all-to-all; otherwise at requesters.
    index: bytes of an index or offset.
    """
    axis = 0 if arrived else 1
    return float((4 * w.model.dense * w.samples
                  + index * (w.lookups.sum(axis=axis) + w.bags.sum(axis=axis))).max())


def pooled(w: Workload) -> list[Operation]:
    """Return the sums of partial bags at the requester that has the most; empty without any.

    A bag with rows at several owners arrives as a vector from each.
    """
    partial = w.bags.sum(axis=1)
    if (partial == w.whole).all():
        return []
    most = int(np.argmax(partial))
    return [gather(int(partial[most]), int(w.whole[most]), w.model.dimension)]


def rows_of_tables(w: Workload) -> int:
    """Return the rows of all tables: the number of distinct (table, row) keys."""
    return sum(table.rows for table in w.plan.tables)


def by_table(values: int, level: int) -> Operation:
    """Return the work of sorting ``values`` indices from all nodes by table.

    Two operators; a single one from level 2 of :mod:`host.devices.dense_work` on.
    """
    return layout(values, operators=1 if level >= 2 else 2)


def lookups(w: Workload, device: GpuTime | CpuTime, fused: bool = False,
            requested: bool = False, joined: bool = False) -> tuple[Operation, ...]:
    """Return the gathers of the slowest node: one per table, or a single one if ``fused``.

    requested: gather each key of a requester's share once, without pooling.
    joined: the tables of a node form one table; an operator adds the table's base to each index.
    """
    rows = (w.requested if requested else w.lookups).sum(axis=0)
    bags = rows if requested else w.bags.sum(axis=0)
    return _slowest(device, (
        (layout(int(r)), gather(int(r), int(b), w.model.dimension)) if joined else
        (gather(int(r), int(b), w.model.dimension, int(tables), fused),)
        for r, b, tables in zip(rows, bags, w.tables) if tables))


def row_updates(w: Workload, device: GpuTime | CpuTime, fused: bool = False,
                reduced: bool = False) -> tuple[Operation, ...]:
    """Return the row updates of the slowest node.

    A bag's gradient is copied to each of its rows. The gradients of a row are grouped, summed and
    applied: per table, or for all tables at once if ``fused``.

    reduced: a gradient per key of a requester's share has arrived, instead of a gradient per bag.
    """
    dimension, nodes = w.model.dimension, []
    values = rows_of_tables(w) if fused else None
    came = w.requested if reduced else w.lookups
    for rows, bags, keys, tables in zip(came.sum(axis=0), w.bags.sum(axis=0), w.unique, w.tables):
        if not tables:
            continue
        work = [] if reduced or rows == bags else [expand(int(rows), int(bags), dimension)]
        work += [unique(int(rows), values=values), segment_sum(int(rows), int(keys), dimension),
                 scatter_update(int(keys), dimension)]
        nodes.append(tuple(_times(part, 1 if fused else int(tables)) for part in work))
    return _slowest(device, nodes)


def _slowest(device: GpuTime | CpuTime,
             nodes: Iterable[tuple[Operation, ...]]) -> tuple[Operation, ...]:
    """Return the longest work: nodes work in parallel and wait for each other."""
    return max(nodes, key=lambda work: device.run(*work).us, default=())


def _times(operation: Operation, tables: int) -> Operation:
    """Return ``operation`` called once per table, with its work divided over the calls."""
    return replace(operation, operators=operation.operators * tables,
                   kernels=operation.kernels * tables)

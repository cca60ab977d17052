"""Embedding part of a step on GPUs or CPUs: inputs, lookups and updates of the tables."""

from dataclasses import replace

from host.devices.cost import Cost
from host.devices.cpu import CpuTime
from host.devices.embedding_work import expand, gather, scatter_update, segment_sum, unique
from host.devices.gpu_time import GpuTime
from host.devices.operation import Operation
from host.systems.charge import slowest
from host.systems.workload import Workload

__all__ = ["INDEX", "input_bytes", "lookup_cost", "update_cost", "vector_bytes"]

INDEX = 8
"""Bytes of an index or a bag offset: int64, as in frameworks."""


def vector_bytes(w: Workload) -> int:
    """Return the bytes of an embedding vector."""
    return 4 * w.model.dimension


def input_bytes(w: Workload, arrived: bool = True) -> float:
    """Return the bytes of dense features, indices and offsets of the node with most of them.

    ``arrived``: count indices as at owners, after the input all-to-all; otherwise at requesters.
    """
    axis = 0 if arrived else 1
    return float((4 * w.model.dense * w.samples
                  + INDEX * (w.lookups.sum(axis=axis) + w.bags.sum(axis=axis))).max())


def lookup_cost(w: Workload, device: GpuTime | CpuTime, fused: bool = False,
                requested: bool = False) -> Cost:
    """Return the cost of the slowest node's gathers, one per table or ``fused``.

    ``requested``: gather each key of a requester's share once, without pooling.
    """
    rows = (w.requested if requested else w.lookups).sum(axis=0)
    bags = rows if requested else w.bags.sum(axis=0)
    return slowest(device.run(gather(int(r), int(b), w.model.dimension, int(tables), fused))
                   for r, b, tables in zip(rows, bags, w.tables) if tables)


def update_cost(w: Workload, device: GpuTime | CpuTime, fused: bool = False,
                reduced: bool = False) -> Cost:
    """Return the cost of updating rows by the arrived gradients on the slowest node.

    A bag's gradient is copied for each of its rows; the gradients of a row are grouped, summed and
    applied: once per table, or for all tables at once if ``fused``. ``reduced``: one gradient per
    key of a requester's share has arrived.
    """
    dimension, costs = w.model.dimension, []
    came = w.requested if reduced else w.lookups
    for rows, bags, keys, tables in zip(came.sum(axis=0), w.bags.sum(axis=0), w.unique, w.tables):
        if not tables:
            continue
        work = [] if reduced or rows == bags else [expand(int(rows), int(bags), dimension)]
        work += [unique(int(rows)), segment_sum(int(rows), int(keys), dimension),
                 scatter_update(int(keys), dimension)]
        costs.append(device.run(*(_times(part, 1 if fused else int(tables)) for part in work)))
    return slowest(costs)


def _times(operation: Operation, tables: int) -> Operation:
    """Return ``operation`` called once per table, with its work divided over the calls."""
    return replace(operation, operators=operation.operators * tables,
                   kernels=operation.kernels * tables)

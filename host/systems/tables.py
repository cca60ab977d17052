"""Embedding part of a step on GPUs or CPUs: inputs, lookups and updates of the tables."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce

import numpy as np

from host.devices.cpu import CpuTime
from host.devices.embedding_work import (
    WEIGHT_BYTES,
    expand,
    gather,
    layout,
    scatter_update,
    segment_sum,
    unique,
)
from host.devices.gpu_time import GpuTime
from host.devices.operation import Operation
from host.dlrm.formats import in_lanes
from host.once import once
from host.systems.options import KEY_BYTES
from host.systems.workload import Workload
from rtl.formats import DescriptorKind

__all__ = ["by_table", "bytes_of", "copied_values", "in_shares", "index_bytes", "input_bytes",
           "lookups", "pooled", "row_updates", "rows_of_tables", "value_bits", "vector_bytes"]

_INDEX = KEY_BYTES[0]
"""Bytes of an index or a bag offset."""


def vector_bytes(w: Workload, wire: str = "float32") -> int:
    """Return the bytes of an embedding vector in NICs, which pad narrower vectors. ``wire``: format
    of its values."""
    return 4 * in_lanes(w.model, wire).width


def value_bits(w: Workload, wire: str) -> int:
    """Return the bits of a value of a vector in NICs, with padding, scales and biases."""
    return 8 * vector_bytes(w, wire) // w.model.width


@once
def bytes_of(w: Workload, counts: str) -> np.ndarray:
    """Return the bytes, without padding, of the vectors that a member of `Workload` counts."""
    return np.sum([4 * dimension * getattr(part, counts) for dimension, part in w.parts], axis=0)


@once
def copied_values(w: Workload) -> int:
    """Return the number of values in the rows of replicated tables."""
    return sum(dimension * table.rows for dimension, table in zip(
        w.model.table_dimensions, w.plan.tables) if table.kind == DescriptorKind.REPLICATED)


@once
def in_shares(w: Workload, operation: Callable[..., Operation], rows: str, groups: str,
              **more: str) -> Operation:
    """Return an operation on ``rows`` and ``groups`` of the largest share, for all dimensions.

    operation: takes rows, groups and dimension. rows, groups: members of `Workload`. more: further
    members, by the parameter of ``operation`` that takes their count.
    """
    def most(part: Workload, of: str) -> int:
        return int(getattr(part, of).reshape(w.nodes, -1).sum(axis=1).max())

    return reduce(Operation.with_work, (
        operation(most(part, rows), most(part, groups), dimension,
                  **{name: most(part, of) for name, of in more.items()})
        for dimension, part in w.parts))


@once
def index_bytes(w: Workload, index: int = _INDEX) -> np.ndarray:
    """Return the bytes of indices, bag offsets and weights that each requester has for each owner:
    int64 ``[requester, owner]``. ``index``: bytes of an index or offset."""
    return index * (w.lookups + w.bags) + WEIGHT_BYTES * w.weights


@once
def input_bytes(w: Workload, arrived: bool = True, index: int = _INDEX) -> float:
    """Return the bytes of dense features, indices, offsets and weights, maximum over nodes.

    arrived: count indices at owners, after the input all-to-all; otherwise at requesters.
    index: bytes of an index or offset.
    """
    return float((4 * w.model.dense * w.samples
                  + index_bytes(w, index).sum(axis=0 if arrived else 1)).max())


@once
def pooled(w: Workload) -> list[Operation]:
    """Return the sums of partial bags at the requesters that have the most; empty without any.

    A bag with rows at several owners arrives as a vector from each.
    """
    if (w.bags.sum(axis=1) == w.whole).all():
        return []
    return [in_shares(w, gather, "bags", "whole")]


@once
def rows_of_tables(w: Workload) -> int:
    """Return the rows of all tables: the number of distinct (table, row) keys."""
    return sum(table.rows for table in w.plan.tables)


def by_table(w: Workload, level: int, requested: bool = False, at_requester: bool = False
             ) -> Operation:
    """Return the work of sorting the indices of all nodes by table, and the weights with them, at
    the owner with the most.

    Two operators; a single one from level 2 of :mod:`host.devices.dense_work` on.

    requested: of each key of a requester's share once, without weights. at_requester: at the
    requester with the most, before the exchange.
    """
    keys, weights = (int(of.sum(axis=1 if at_requester else 0).max())
                     for of in (w.requested if requested else w.lookups, w.weights))
    return layout(keys, operators=1 if level >= 2 else 2, weights=0 if requested else weights)


def lookups(w: Workload, device: GpuTime | CpuTime, fused: bool = False,
            requested: bool = False, joined: bool = False) -> tuple[Operation, ...]:
    """Return the gathers of the slowest node: one per table, or a single one if ``fused``.

    requested: gather each key of a requester's share once, without pooling.
    joined: the tables of a node and a dimension form one table; an operator adds the table's base
        to each index.
    """
    return _slowest(device, _lookups(w, fused, requested, joined))


@once
def _lookups(w: Workload, fused: bool, requested: bool,
             joined: bool) -> tuple[tuple[Operation, ...], ...]:
    """Return the gathers of each node that has tables; equal work once."""
    def of_node(node: int) -> tuple[Operation, ...]:
        found: list[Operation] = []
        for dimension, part in w.parts:
            if not part.tables[node]:
                continue
            rows = int((part.requested if requested else part.lookups)[:, node].sum())
            bags, weights = (rows, 0) if requested else (
                int(of[:, node].sum()) for of in (part.bags, part.weights))
            found += (layout(rows), gather(rows, bags, dimension, weights=weights)) if joined else (
                gather(rows, bags, dimension, int(part.tables[node]), fused, weights),)
        return (reduce(Operation.with_work, found),) if fused and not joined else tuple(found)

    return tuple(dict.fromkeys(of_node(node) for node in range(w.nodes) if w.tables[node]))


def row_updates(w: Workload, device: GpuTime | CpuTime, fused: bool = False,
                reduced: bool = False) -> tuple[Operation, ...]:
    """Return the row updates of the slowest node.

    A bag's gradient is copied to each of its rows. The gradients of a row are grouped, summed and
    applied: per table, or for all tables at once if ``fused``.

    reduced: a gradient per key of a requester's share has arrived, instead of a gradient per bag.
    """
    values = rows_of_tables(w) if fused else None

    def of_node(node: int) -> tuple[Operation, ...]:
        found: dict[str, list[Operation]] = {}
        for dimension, part in w.parts:
            if not part.tables[node]:
                continue
            rows, bags = (int(of[:, node].sum()) for of in (
                part.requested if reduced else part.lookups, part.bags))
            keys = int(part.unique[node])
            work = [] if reduced or rows == bags else [expand(rows, bags, dimension)]
            work += [unique(rows, values=values), segment_sum(rows, keys, dimension),
                     scatter_update(keys, dimension)]
            for each in work:
                found.setdefault(each.name, []).append(
                    _times(each, 1 if fused else int(part.tables[node])))
        return tuple(part for parts in found.values() for part in (
            [reduce(Operation.with_work, parts)] if fused else parts))

    return _slowest(device, (of_node(node) for node in range(w.nodes) if w.tables[node]))


def _slowest(device: GpuTime | CpuTime,
             nodes: Iterable[tuple[Operation, ...]]) -> tuple[Operation, ...]:
    """Return the longest work: nodes work in parallel and wait for each other."""
    return max(nodes, key=lambda work: device.run(*work).us, default=())


def _times(operation: Operation, tables: int) -> Operation:
    """Return ``operation`` called once per table, with its work divided over the calls."""
    return replace(operation, operators=operation.operators * tables,
                   kernels=operation.kernels * tables)

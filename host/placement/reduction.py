"""Sums of gradients in NICs: vectors that each node sends, and passes of each owner's table."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from host.placement.sets import set_of
from host.placement.shard import ShardPlan, key_hash
from host.samples import Samples
from rtl.config import NicConfig

__all__ = ["TERMS", "Pass", "Reduction", "reduction"]

TERMS = 2
"""Most float32 vectors of an exact sum: the first holds 24 bits, the second the rest of a sum of
similar values."""


class Pass(NamedTuple):
    """A pass of an owner's table: the ``rows`` that it finishes, and the ``partials`` that arrive
    for it, including spilled ones."""

    rows: int
    partials: int


@dataclass(frozen=True)
class Reduction:
    """Gradient sums of a mini-batch.

    Members
    -------
    sums: vectors read from each node's local table, ``[requester]``: one for a key with a single
        gradient, `TERMS` for a key with several.
    partials: vectors between nodes, ``[requester, owner]``: these sums, and each gradient of the
        other keys.
    passes: passes of each owner.
    foreign: ``partials`` of each table to other nodes, int64 ``[tables]``.
    """

    sums: np.ndarray
    partials: np.ndarray
    passes: tuple[tuple[Pass, ...], ...]
    foreign: np.ndarray


def reduction(samples: Samples, plan: ShardPlan, config: NicConfig) -> Reduction:
    """Determine for each key whether it has an entry in the local table, and its pass at the owner.

    A set holds the keys that arrive first, until it is read out
    (:class:`rtl.gradient.key_table.KeyTable`). Gradients arrive in sample order. At an owner, the
    nodes' gradients arrive at the same rate, and the sums follow.
    """
    nodes, ways = plan.nodes, config.gradient_ways
    requester = samples.requesters(nodes)
    owner = plan.owner_of(samples.tables, samples.rows, requester)
    hashes = key_hash(samples.tables, samples.rows).astype(np.int64)
    _, keys = np.unique(samples.keys, return_inverse=True)

    summed, partials = np.zeros(nodes, np.int64), np.zeros((nodes, nodes), np.int64)
    foreign = np.zeros(len(plan.tables), np.int64)
    came: list[list[np.ndarray]] = []  # time and lookup of each partial
    for node in range(nodes):
        mine = np.flatnonzero(requester == node)
        sets = set_of(hashes[mine], config.local_gradient_keys // ways)
        held = _turn(keys[mine], sets) < ways
        _, first, many = np.unique(keys[mine], return_index=True, return_counts=True)
        # The table is read out set by set, after the node's last gradient.
        order = np.lexsort((first, sets[first]))
        order = order[held[first[order]]]
        sums = np.repeat(first[order], np.where(many[order] > 1, TERMS, 1))
        alone = np.flatnonzero(~held)
        summed[node] = len(sums)
        went = np.concatenate([alone, sums])
        when = np.concatenate([alone, len(mine) + np.arange(len(sums))])
        partials[node] = np.bincount(owner[mine[went]], minlength=nodes)
        foreign += np.bincount(samples.tables[mine[went]][owner[mine[went]] != node],
                               minlength=len(foreign))
        came.append([when, mine[went]])
    when, which = (np.concatenate(parts) for parts in zip(*came))
    in_order = which[np.argsort(when, kind="stable")]
    passes = tuple(_passes(keys[of], set_of(hashes[of], config.global_gradient_keys // ways), ways)
                   for of in _split(in_order, owner[in_order], nodes))
    return Reduction(summed, partials, passes, foreign)


def _split(items: np.ndarray, group: np.ndarray, groups: int) -> Iterator[np.ndarray]:
    return (items[group == number] for number in range(groups))


def _turn(keys: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """Return, for each of several keys in order, how many other keys of its set came first."""
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    of = sets[first]
    order = np.lexsort((first, of))
    begins = np.flatnonzero(np.diff(of[order], prepend=-1))
    turn = np.empty(len(first), np.int64)
    turn[order] = np.arange(len(order)) - np.repeat(begins, np.diff([*begins, len(order)]))
    return turn[which]


def _passes(keys: np.ndarray, sets: np.ndarray, ways: int) -> tuple[Pass, ...]:
    """Return the passes of partials with ``keys``, in order of arrival."""
    if not len(keys):
        return ()
    number = _turn(keys, sets) // ways
    _, first = np.unique(keys, return_index=True)
    rows, partials = (np.bincount(of, minlength=int(number.max()) + 1)
                      for of in (number[first], number))
    return tuple(Pass(int(new), int(left)) for new, left in zip(
        rows, partials[::-1].cumsum()[::-1]))

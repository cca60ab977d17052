"""Samples: a chunk of samples with their bags of keys, stored by column."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

__all__ = ["KEY_ROW_BITS", "Samples", "Supply", "concatenate", "first_lookups", "first_samples",
           "most_slots", "rechunk", "segment_indices", "share_sizes"]

KEY_ROW_BITS = 36
"""A key as one integer is ``row | table << KEY_ROW_BITS``, as in `rtl.formats.Key`."""


def share_sizes(count: int, nodes: int) -> list[int]:
    """Return the sizes of the contiguous shares of ``count`` samples over ``nodes``.

    Sizes differ by at most 1; larger shares come first.
    """
    return [count // nodes + (node < count % nodes) for node in range(nodes)]


def most_slots(slots: np.ndarray, nodes: int) -> int:
    """Return the slots of the share with the most; ``slots`` of each sample, int64 ``[n]``."""
    ends = np.cumsum(share_sizes(len(slots), nodes))
    return int(np.diff(np.concatenate(([0], np.cumsum(slots)))[ends], prepend=0).max())


def segment_indices(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the ranges ``starts[i] … starts[i]+lengths[i]-1`` of all i, concatenated (int64)."""
    lengths = np.asarray(lengths, np.int64)
    total = int(lengths.sum())
    before = np.cumsum(lengths) - lengths
    return np.repeat(np.asarray(starts, np.int64) - before, lengths) + np.arange(total)


@dataclass(frozen=True)
class Samples:
    """A chunk of samples.

    The keys of a sample are concatenated by ascending table, each bag in input order; the keys of
    all samples are concatenated in sample order.

    Members
    -------
    dense: float32 ``[n, dense features]``.
    labels: float32 ``[n]``, 0 or 1.
    bag_lengths: int32 ``[n, tables]``, keys of each bag; 0 is an empty bag.
    tables: int32 ``[k]``, the table of each key.
    rows: int64 ``[k]``, the row of each key.
    weights: float32 ``[k]``, the weight of each key, 1 in tables without weights; None if no table
        has weights.

    Raises
    ------
    ValueError
        The shapes are inconsistent.
    """

    dense: np.ndarray
    labels: np.ndarray
    bag_lengths: np.ndarray
    tables: np.ndarray
    rows: np.ndarray
    weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        n = len(self.labels)
        if self.dense.ndim != 2 or len(self.dense) != n:
            raise ValueError(f"dense must have {n} rows, not shape {self.dense.shape!r}")
        if self.bag_lengths.ndim != 2 or len(self.bag_lengths) != n:
            raise ValueError(f"bag_lengths must have {n} rows, not shape "
                             f"{self.bag_lengths.shape!r}")
        keys = int(self.bag_lengths.sum())
        for name in ("tables", "rows", "weights"):
            if (name != "weights" or self.weights is not None) and (
                    getattr(self, name).shape != (keys,)):
                raise ValueError(f"{name} must have the {keys} entries that bag_lengths count, "
                                 f"not shape {getattr(self, name).shape!r}")

    @classmethod
    def one_hot(cls, dense: np.ndarray, labels: np.ndarray, rows: np.ndarray) -> "Samples":
        """Make samples with one key per table, from ``rows`` ``[n, tables]``."""
        n, tables = rows.shape
        return cls(np.ascontiguousarray(dense, np.float32), np.asarray(labels, np.float32),
                   np.ones((n, tables), np.int32), np.tile(np.arange(tables, dtype=np.int32), n),
                   np.ascontiguousarray(rows, np.int64).reshape(-1))

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def table_count(self) -> int:
        """Number of tables, which is the number of bags per sample."""
        return self.bag_lengths.shape[1]

    @property
    def keys(self) -> np.ndarray:
        """Each key as one integer, ``row | table << 36``: int64 ``[k]``."""
        return self.rows | self.tables.astype(np.int64) << KEY_ROW_BITS

    @cached_property
    def key_offsets(self) -> np.ndarray:
        """Index of each sample's first key, then the number of keys: int64 ``[n + 1]``."""
        return _offsets(self.bag_lengths.sum(axis=1, dtype=np.int64))

    @property
    def bag_offsets(self) -> np.ndarray:
        """Index of each bag's first key, sample by sample, then the number of keys: int64."""
        return _offsets(self.bag_lengths.reshape(-1).astype(np.int64))

    @property
    def slots(self) -> np.ndarray:
        """Slots of each sample: a slot per key, and a slot per empty bag; int64 ``[n]``."""
        return np.maximum(self.bag_lengths, 1).sum(axis=1, dtype=np.int64)

    def share_slots(self, nodes: int) -> int:
        """Return the slots of the share with the most slots, of ``nodes`` shares."""
        return most_slots(self.slots, nodes)

    def take(self, indices: np.ndarray | Sequence[int]) -> "Samples":
        """Return the samples at ``indices``, in that order; indices may repeat."""
        indices = np.asarray(indices, np.int64)
        offsets = self.key_offsets
        where = segment_indices(offsets[indices], np.diff(offsets)[indices])
        return Samples(self.dense[indices], self.labels[indices], self.bag_lengths[indices],
                       self.tables[where], self.rows[where], _of(self.weights, where))

    def slice(self, start: int, stop: int) -> "Samples":
        """Return samples ``start`` to ``stop - 1``, clipped to the end, as views of this chunk."""
        stop = min(stop, len(self))
        first, last = self.key_offsets[start], self.key_offsets[stop]
        return Samples(self.dense[start:stop], self.labels[start:stop],
                       self.bag_lengths[start:stop], self.tables[first:last],
                       self.rows[first:last], _of(self.weights, slice(first, last)))

    def of_tables(self, kept: np.ndarray) -> "Samples":
        """Return the samples with the bags of some tables only; keys keep their table numbers.

        kept: whether to keep each table: bool ``[tables]``.
        """
        keys = kept[self.tables]
        return Samples(self.dense, self.labels, np.ascontiguousarray(self.bag_lengths[:, kept]),
                       self.tables[keys], self.rows[keys], _of(self.weights, keys))

    def with_tables(self, sources: np.ndarray) -> "Samples":
        """Return the samples with the bags of table ``sources[i]`` in table ``i``.

        sources: int64 ``[tables]``; a table may occur more than once.
        """
        lengths = self.bag_lengths[:, sources]
        starts = self.bag_offsets[:-1].reshape(self.bag_lengths.shape)[:, sources]
        keys = segment_indices(starts.reshape(-1), lengths.reshape(-1))
        tables = np.repeat(np.tile(np.arange(len(sources), dtype=np.int32), len(self)),
                           lengths.reshape(-1))
        return Samples(self.dense, self.labels, lengths, tables, self.rows[keys],
                       _of(self.weights, keys))

    def of_rows(self, first: np.ndarray, counts: np.ndarray) -> "Samples":
        """Return the samples with the keys of some rows of each table only, renumbered from 0.

        first, counts: first row and number of rows of each table: int64 ``[tables]``.
        """
        rows = self.rows - first[self.tables]
        kept = (rows >= 0) & (rows < counts[self.tables])
        bags = np.repeat(np.arange(self.bag_lengths.size), self.bag_lengths.reshape(-1))[kept]
        lengths = np.bincount(bags, minlength=self.bag_lengths.size)
        return Samples(self.dense, self.labels, lengths.astype(np.int32).reshape(
            self.bag_lengths.shape), self.tables[kept], rows[kept].astype(self.rows.dtype),
            _of(self.weights, kept))

    def of_bags(self, kept: np.ndarray) -> "Samples":
        """Return the samples with other bags empty.

        kept: whether to keep each bag: bool ``[n, tables]``.
        """
        keys = np.repeat(kept.reshape(-1), self.bag_lengths.reshape(-1))
        return Samples(self.dense, self.labels, self.bag_lengths * kept, self.tables[keys],
                       self.rows[keys], _of(self.weights, keys))

    def shares(self, nodes: int) -> "list[Samples]":
        """Return the share of each of ``nodes``, as views of this chunk."""
        bounds = accumulate(share_sizes(len(self), nodes), initial=0)
        return [self.slice(first, last) for first, last in pairwise(bounds)]

    def requesters(self, nodes: int) -> np.ndarray:
        """Return the node (of ``nodes``) whose share contains each key: int64 ``[k]``."""
        return np.repeat(np.repeat(np.arange(nodes), share_sizes(len(self), nodes)),
                         np.diff(self.key_offsets))


def _of(weights: np.ndarray | None, keys: np.ndarray | slice) -> np.ndarray | None:
    return None if weights is None else weights[keys]


def _offsets(lengths: np.ndarray) -> np.ndarray:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def concatenate(chunks: Iterable[Samples]) -> Samples:
    """Concatenate chunks, all with weights or all without. Raises ``ValueError`` without chunks."""
    chunks = list(chunks)
    if not chunks:
        raise ValueError("concatenate requires at least one chunk, not []")
    names = ["dense", "labels", "bag_lengths", "tables", "rows"]
    names += ["weights"] * (chunks[0].weights is not None)
    return Samples(*(np.concatenate([getattr(chunk, name) for chunk in chunks])
                     for name in names))


def first_samples(chunks: Iterable[Samples], count: int) -> Iterator[Samples]:
    """Yield the first ``count`` samples of a stream of chunks, fewer if it has fewer."""
    for chunk in chunks:
        if len(chunk) >= count:
            if count:
                yield chunk.slice(0, count)
            return
        count -= len(chunk)
        yield chunk


class Supply:
    """Delivers the samples of a stream in requested numbers.

    Members: ``next``, number of the next sample.
    """

    def __init__(self, chunks: Iterable[Samples], first: int = 0):
        self._chunks = iter(chunks)
        self._held: list[Samples] = []
        self._start = 0  # index of the first sample held; earlier ones were taken
        self.next = first

    def take(self, count: int) -> Samples:
        """Return the next ``count`` samples; fewer at the end of the stream."""
        held = sum(map(len, self._held)) - self._start
        while held < count and (chunk := next(self._chunks, None)) is not None:
            self._held.append(chunk)
            held += len(chunk)
        if not self._held:
            return _NONE
        if len(self._held) > 1:
            first, *others = self._held
            self._held = [concatenate([first.slice(self._start, len(first)), *others])]
            self._start = 0
        taken = self._held[0].slice(self._start, self._start + count)
        self._start += len(taken)
        self.next += len(taken)
        return taken


_NONE = Samples.one_hot(np.zeros((0, 0)), np.zeros(0), np.zeros((0, 0)))
"""The samples of an empty stream."""


def rechunk(chunks: Iterable[Samples], size: int) -> Iterator[Samples]:
    """Re-cut a stream of chunks into chunks of ``size`` samples; the last may be shorter."""
    if size < 1:
        raise ValueError(f"size must be at least 1, not {size!r}")
    supply = Supply(chunks)
    while len(chunk := supply.take(size)):
        yield chunk


def first_lookups(batch: Samples, among: np.ndarray | None = None) -> np.ndarray:
    """Return the index of the first lookup of each distinct key, in sample order: int64.

    among: ascending indices of the lookups that count; None for all.
    """
    if among is None:
        return np.sort(np.unique(batch.keys, return_index=True)[1])
    return among[np.sort(np.unique(batch.keys[among], return_index=True)[1])]

"""Batcher: collects requests into mini-batches until they are full or a timeout expires."""

from dataclasses import dataclass

import numpy as np

__all__ = ["Batcher", "Formed", "form"]


@dataclass(frozen=True)
class Batcher:
    """Rules for forming mini-batches.

    Requests are collected until there are ``mini_batch`` times ``window`` of them, or until
    ``timeout_us`` after the first. They are then ready, in mini-batches of ``mini_batch``; the last
    may be short. Ready mini-batches wait for the system in order and do not grow.

    Members
    -------
    mini_batch: samples.
    window: mini-batches that are formed together; above 1, the graph algorithm assigns a full
        window's samples to its mini-batches, modelled as a random assignment.
    timeout_us: 0 disables collecting: requests that arrive at the same time are ready at once.

    Raises ``ValueError`` that names field, value and bound.
    """

    mini_batch: int
    timeout_us: float = 0.0
    window: int = 1

    def __post_init__(self) -> None:
        for name in ("mini_batch", "window"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)!r}")
        if not self.timeout_us >= 0:
            raise ValueError(f"timeout_us must be at least 0, not {self.timeout_us!r}")

    @property
    def most(self) -> int:
        """Most collected requests."""
        return self.mini_batch * self.window


@dataclass(frozen=True, eq=False)
class Formed:
    """Mini-batches, in the order in which they became ready.

    Members
    -------
    ready: time, microseconds, ``[mini-batches]``. size: requests in each.
    place: position in its window if the graph algorithm formed it; -1 in order of arrival.
    of: the mini-batch of each request, ``[requests]``.
    """

    ready: np.ndarray
    size: np.ndarray
    place: np.ndarray
    of: np.ndarray


def form(times: np.ndarray, batcher: Batcher, seed: int = 1) -> Formed:
    """Form mini-batches of requests that arrive at ``times``, ascending.

    ``seed``: seed of the assignment within windows. A window whose timeout expires before it is
    full keeps the order of arrival.
    """
    begins, ready = _collect(times, batcher)
    counts = np.diff([*begins, len(times)])
    if batcher.window == 1:
        of = np.repeat(np.arange(len(begins)), counts)
        return Formed(ready, counts, np.full(len(begins), -1), of)
    parts = -(-counts // batcher.mini_batch)
    full = np.repeat(counts == batcher.most, parts)
    place = np.arange(len(full)) - np.repeat(np.cumsum(parts) - parts, parts)
    size = np.full(len(full), batcher.mini_batch)
    size[np.cumsum(parts) - 1] = counts - (parts - 1) * batcher.mini_batch
    of = np.repeat(np.arange(len(full)), size)
    deal = np.random.default_rng([seed, 2])
    for begin, count in zip(begins, counts):
        if count == batcher.most:
            of[begin:begin + count] = deal.permutation(of[begin:begin + count])
    return Formed(np.repeat(ready, parts), size, np.where(full, place, -1), of)


def _collect(times: np.ndarray, batcher: Batcher) -> tuple[np.ndarray, np.ndarray]:
    """Return the first request of each collection, and the time when the collection ends."""
    if batcher.most == 1:
        return np.arange(len(times)), times
    begins, ready, begin, count = [], [], 0, len(times)
    while begin < count:
        until, full = times[begin] + batcher.timeout_us, begin + batcher.most
        begins.append(begin)
        if full <= count and times[full - 1] <= until:
            ready.append(times[full - 1])
            begin = full
        else:
            ready.append(until)
            begin += int(np.searchsorted(times[begin:full], until, "right"))
    return np.array(begins, np.int64), np.array(ready)

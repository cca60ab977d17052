"""Attacks on runs: senders, frames and times."""

import random

import numpy as np

from rtl.formats import LookupRecord
from tests.rtl.network.frames import LOOKUPS, VECTORS, Frame
from tests.wire.attacked import Sent
from tests.wire.forging import (
    as_stranger,
    landings,
    lookups,
    read,
    vectors,
    words,
)

__all__ = ["GuessedPlaces", "LivePlaces", "LookupsAsNode", "NotOwned", "SeenPlaces", "Twice"]

_VECTOR = 64
"""Bytes of a vector of the run's model."""


class _Once:
    """Acts on one of the honest frames of one kind, drawn with ``seed``."""

    opcode = LOOKUPS

    def __init__(self, seed: int, address=as_stranger):
        self.rng, self.address = random.Random(seed), address
        self._left = self.rng.randrange(1, 30)

    def __call__(self, cycle: int, source: int, destination: int,
                 beats: np.ndarray) -> list[Sent]:
        frame = read(beats)
        if frame.opcode != self.opcode:
            return []
        self._left -= 1
        return [] if self._left else self.act(cycle, frame, beats)

    def act(self, cycle: int, frame: Frame, beats: np.ndarray) -> list[Sent]:
        """Return the frames to send when ``frame`` leaves."""
        raise NotImplementedError

    def send(self, cycle: int, frame: Frame) -> Sent:
        """Return ``frame``, sent behind the link of the node from which it claims to be."""
        return Sent(cycle, frame.source, frame.destination, words(self.address(frame)))


class LookupsAsNode(_Once):
    """The lookups of a peer, with tags that the peer did not use."""

    def act(self, cycle, frame, beats):
        records = np.frombuffer(frame.payload, "<u8")[:frame.count]
        return [self.send(cycle, lookups(frame.source, frame.destination, [
            int(record) & (1 << LookupRecord["landing"].offset) - 1
            | self.rng.randrange(1 << 16) << LookupRecord["landing"].offset
            for record in records]))]


class NotOwned(_Once):
    """176 lookups of a table that does not exist."""

    def act(self, cycle, frame, beats):
        return [self.send(cycle, lookups(frame.source, frame.destination, [
            k | 31 << LookupRecord["table"].offset | k << LookupRecord["landing"].offset
            for k in range(176)]))]


class GuessedPlaces(_Once):
    """Vectors for all 64 miss ids, as if the requested node had sent them.

    node: number of another node.
    lap: guessed number of uses of each id, for an attacker who does not listen: an id is on lap 1
        at its first use.
    """

    def __init__(self, seed: int, address=as_stranger, node: int | None = None, lap: int = 0):
        super().__init__(seed, address)
        self._node, self._lap = node, lap

    def act(self, cycle, frame, beats):
        asked = frame.destination if self._node is None else self._node
        if asked == frame.source:
            return []
        first = 64 * self._lap
        return [self.send(cycle + 5 * k, vectors(
            asked, frame.source, list(range(first + k, first + k + 16)), _VECTOR))
                for k in range(0, 64, 16)]


class SeenPlaces(GuessedPlaces):
    """Vectors for the tags that a peer has just used."""

    def act(self, cycle, frame, beats):
        others = [n for n in range(4) if n not in (frame.source, frame.destination)]
        asked = frame.destination if self._node is None else self.rng.choice(others)
        return [self.send(cycle, vectors(asked, frame.source, landings(frame)[:16], _VECTOR))]


class LivePlaces(_Once):
    """Lookups of other rows, as if they were the peer's, with the tags that it has just used."""

    def act(self, cycle, frame, beats):
        records = [int(record) for record in np.frombuffer(frame.payload, "<u8")[:frame.count]]
        shift = LookupRecord["landing"].offset
        keys = [record & (1 << shift) - 1 for record in records]
        turned = keys[1:] + keys[:1] if len(set(keys)) > 1 else [key ^ 1 for key in keys]
        return [self.send(cycle, lookups(frame.source, frame.destination, [
            key | record >> shift << shift for key, record in zip(turned, records)]))]


class Twice(_Once):
    """An honest frame is duplicated, up to 40 us later."""

    def __init__(self, seed: int, opcode: int = VECTORS):
        super().__init__(seed)
        self.opcode = opcode

    def act(self, cycle, frame, beats):
        return [Sent(cycle + self.rng.choice((1, 100, 1000, self.rng.randrange(10_000))),
                     frame.source, frame.destination, beats)]

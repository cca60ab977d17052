"""Expected results of the packets of peers, in plain Python, and peers that send them."""

import random

__all__ = ["ARRIVALS", "MASK", "WINDOW", "Peer", "ahead", "outcome"]

WINDOW, ARRIVALS, MASK = 2048, 512, (1 << 24) - 1


def ahead(sequence: int, of: int) -> int:
    """Return how far ``sequence`` is after ``of``; negative if it is before."""
    distance = (sequence - of) & MASK
    return distance - (1 << 24) if distance >> 23 else distance


class Peer:
    """A peer's packets: which have arrived, when, and which of them were acknowledged to the peer.
    """

    def __init__(self, first: int):
        self.base = self.following = first
        self.came: dict[int, int] = {}  # arrival cycle of each packet from the base on
        self.missing: list[int] = []
        self.recent: list[int] = [first]
        self.shown = self.told = first
        self.known: set[int] = set()

    def has_come(self, sequence: int) -> bool:
        return ahead(sequence, self.base) < 0 or sequence in self.came

    def admit(self, sequence: int, cycle: int) -> None:
        assert not self.has_come(sequence), "admitted twice"
        self.came[sequence] = cycle
        self.recent = [sequence, *self.recent[:40]]
        while self.base in self.came:
            self.base = (self.base + 1) & MASK

    def show(self, base: int) -> None:
        """The node shows ``base`` as the first missing packet; it may lag, but not decrease."""
        assert ahead(base, self.base) <= 0 <= ahead(base, self.shown), "base ahead, or going back"
        self.shown = base

    def hear(self, acknowledge: int) -> None:
        """A header acknowledges it to the peer."""
        assert ahead(acknowledge, self.base) <= 0, "told of a packet that has not come"
        if ahead(acknowledge, self.told) > 0:
            self.told = acknowledge

    def hear_bits(self, first: int, bits: int, settled: int) -> None:
        """A LINK packet acknowledges it, with the arrivals up to cycle ``settled``, or more."""
        assert first % ARRIVALS == 0
        for k in range(ARRIVALS):
            sequence = (first + k) & MASK
            if bits >> k & 1:
                assert self.has_come(sequence), f"bit of {sequence}, which has not come"
                self.known.add(sequence)
            elif ahead(sequence, self.base) < 0:
                # For a base that has advanced meanwhile: from the packet's own cycle on.
                assert self.came.get(sequence, -1) > settled, f"no bit of {sequence}"
            else:
                assert self.came.get(sequence, settled + 1) > settled, f"no bit of {sequence}"

    def unheard(self) -> list[int]:
        """Return the arrived packets that are not acknowledged to the peer."""
        return [sequence for sequence in self.came
                if ahead(sequence, self.told) >= 0 and sequence not in self.known]

    def choose(self, rng: random.Random, faults: float, reach: int = WINDOW) -> int:
        """Return the number of the next packet: new, or lost before, repeated or wrong; new ones up
        to ``reach`` ahead of the known arrivals."""
        if rng.random() < faults:
            kind = rng.randrange(6)
            if kind == 0:  # beyond the window
                return (self.base + WINDOW + rng.choice((0, 1, rng.randrange(1 << 20)))) & MASK
            if kind == 1:  # long ago
                distance = rng.choice((1, 2, 63, 64, 65, rng.randrange(1, 1 << 20)))
                return (self.base - distance) & MASK
            if kind == 2:
                return rng.choice(self.recent)
            if kind == 3:  # a duplicate, at once
                return self.recent[0]
            for _ in range(rng.choice((1, 1, 1, 70))):  # lost in transit, to arrive later
                if ahead(self.following, self.shown) < reach - 1:
                    self.missing.append(self.following)
                    self.following = (self.following + 1) & MASK
        lost = len(self.missing)
        if lost and (rng.random() < 0.1 + lost / 100 or ahead(self.following, self.shown) >= reach):
            return self.missing.pop(rng.choice((0, 0, rng.randrange(lost))))
        if ahead(self.following, self.shown) >= reach:
            return rng.choice(self.recent)
        self.following = (self.following + 1) & MASK
        return (self.following - 1) & MASK


def outcome(peer: Peer, sequence: int) -> set[str]:
    """Return the allowed verdicts for a packet: a single one, except if the base lags."""
    if peer.has_come(sequence):
        return {"duplicate"}
    if ahead(sequence, peer.base) >= WINDOW:
        return {"outside"}
    if ahead(sequence, peer.shown) >= WINDOW:
        return {"fresh", "outside"}
    return {"fresh"}

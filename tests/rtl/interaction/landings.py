"""Vectors of two sources through a landing check, against a plain model."""

import random
from collections import deque

from rtl.interaction.landing import LandingCheck
from tests.rtl.power_up import powered_up
from tests.support import made, simulate

__all__ = ["LOCAL", "REMOTE", "Landing"]

LATENCY = LandingCheck.LATENCY["beat", "its write"]
REMOTE, LOCAL = 0, 1


class Source:
    """A source of vectors, in beats (tag, data, last), with random gaps.

    inside: beats that were taken, with their cycles, and neither written nor dropped yet.
    vector: the vector whose last beat is in neither state.
    """

    def __init__(self, rng, stall):
        self.rng, self.stall, self.offered = rng, stall, False
        self.beats: deque[tuple[int, int, int]] = deque()
        self.inside: deque[tuple[int, tuple[int, int, int]]] = deque()
        self.vector: dict | None = None

    def add(self, tag, data):
        """Add a vector; only the tag of its first beat is used."""
        self.beats += [(self.rng.getrandbits(16) if k else tag, beat, int(k == len(data) - 1))
                       for k, beat in enumerate(data)]

    def offer(self):
        """Return the beat offered in this cycle; it stays until it is taken."""
        self.offered = bool(self.beats) and (self.offered or self.rng.random() >= self.stall)
        return self.beats[0] if self.offered else None


class Landing:
    """A landing check between its sources and its store, checked in every cycle.

    Slots are numbered from 0 on; slot n has place n % places. Slots from ``head`` to before
    ``tail`` are reserved.
    """

    def __init__(self, places, most, beats, *, stall=(0.0, 0.0), seed=0):
        self.dut, self.rng = made(LandingCheck, places, most), random.Random(seed)
        self.places, self.most, self.beats = places, most, beats
        self.sources = [Source(self.rng, chance) for chance in stall]
        self.marks: deque[int] = deque()
        self.filled: set[int] = set()
        self.store: dict[int, int] = {}
        self.writes: list[int] = []
        self.head = self.tail = self.cycle = 0
        self.seen = dict.fromkeys(("vector_in", "bad", "beats_in"), 0)
        self.wanted = dict(self.seen)
        self.answer = None

    def slot(self, tag):
        """Return the reserved slot of a tag, or None."""
        return next((n for n in range(self.head, self.tail) if n % self.places == tag), None)

    def decide(self):
        """Return the vector of the beat whose turn it is, and the beat's (address, data)."""
        due = [s for s in self.sources if s.inside and s.inside[0][0] + LATENCY <= self.cycle]
        if not due:
            return {}, None
        source, other = due[0], self.sources[LOCAL].vector
        _, (tag, beat, last) = source.inside.popleft()
        vector = source.vector or {"tag": tag, "slot": self.slot(tag), "data": [], "good": True}
        tag, slot, index = vector["tag"], vector["slot"], len(vector["data"])
        vector["data"].append(beat)
        vector["good"] &= (
            slot is not None and slot == self.slot(tag) and slot not in self.filled
            and index < self.beats
            # A peer may not write a place during a local vector.
            and not (source is self.sources[REMOTE] and other and other["tag"] == tag))
        source.vector = None if last else vector
        if last:
            vector["whole"] = whole = vector["good"] and index == self.beats - 1
            for name, count in zip(self.wanted, (whole, not whole, whole * self.beats)):
                self.wanted[name] += count
        return vector, (tag * self.most + index, beat)

    def set_inputs(self, ctx, look):
        dut, bits = self.dut, self.rng.getrandbits
        for port, source in zip((dut.remote, dut.local), self.sources):
            offered = source.offer()
            tag, beat, last = offered or (bits(16), bits(512), 1)
            if port is dut.local:
                tag = {"landing": tag, "node": bits(8), "step": bits(16)}
            ctx.set(port.payload, {"tag": tag, "data": beat, "last": last})
            ctx.set(port.valid, offered is not None)
        mark = self.marks[0] if self.marks else None
        for valid, port, slot in ((dut.mark.valid, dut.mark.payload, mark),
                                  (dut.look_en, dut.look, look)):
            ctx.set(valid, slot is not None)
            ctx.set(port, (bits(16) if slot is None else slot) % (2 * self.places))
        ctx.set(dut.head, self.head % (2 * self.places))
        ctx.set(dut.level, self.tail - self.head)

    async def tick(self, ctx, look=None):
        """Run a cycle; ``look`` queries that slot."""
        dut = self.dut
        self.set_inputs(ctx, look)
        _, _, write, address, beat, looked, filling, filled, idle, *others = (
            await ctx.tick().sample(
                dut.write_en, dut.write_addr, dut.write_data, dut.looked, dut.filled_valid,
                dut.filled, dut.idle, dut.remote.ready, dut.local.ready, dut.mark.ready,
                dut.vector_in, dut.bad, dut.beats_in))
        ready, mark_ready, events = others[:2], others[2], others[3:]
        for name, event in zip(self.seen, events):
            self.seen[name] += event
        assert ready[REMOTE], "the network is never made to wait"
        assert self.answer is None or looked == self.answer
        if look is not None:
            self.answer = look in self.filled  # before this cycle
        assert not idle or not (filling or any(source.inside for source in self.sources))
        vector, due = self.decide()
        if write:
            assert due == (address, beat) and vector["good"]
            self.store[address] = beat
            self.writes.append(self.cycle)
        assert (filled if filling else None) == (vector["tag"] if vector.get("whole") else None)
        if vector.get("whole"):
            start = vector["tag"] * self.most
            assert [self.store[start + k] for k in range(self.beats)] == vector["data"]
            self.filled.add(vector["slot"])
        if self.marks and mark_ready:
            self.filled.add(self.marks.popleft())
        for source, taken in zip(self.sources, ready):
            if source.offered and taken:
                source.offered = False
                source.inside.append((self.cycle, source.beats.popleft()))
        self.cycle += 1

    async def drain(self, ctx, looks=0.0):
        """Run until no beat is offered or inside; check the events and the idle state."""
        while self.marks or any(source.beats or source.inside for source in self.sources):
            ask = self.tail > self.head and self.rng.random() < looks
            await self.tick(ctx, self.rng.randrange(self.head, self.tail) if ask else None)
        for _ in range(2):
            await self.tick(ctx)
        assert ctx.get(self.dut.idle) and self.seen == self.wanted

    def run(self, work):
        """Wait for the sweep, then run ``work``."""
        async def bench(ctx):
            ctx.set(self.dut.vector_beats, self.beats)
            for _ in range(self.places):
                assert not ctx.get(self.dut.swept) and not ctx.get(self.dut.idle)
                await self.tick(ctx)
            assert ctx.get(self.dut.swept)
            await work(ctx)

        simulate(powered_up(self.dut, self.places), bench)

    def vector(self, beats=None):
        return [self.rng.getrandbits(512) for _ in range(beats or self.beats)]

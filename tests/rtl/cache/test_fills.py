"""Fill writer: which vectors are valid, where they are written, and the outputs for each."""

import random
from types import SimpleNamespace

import pytest

from rtl.cache.fills import FILL_ID_BITS, FillWriter
from tests.rtl.power_up import powered_up
from tests.support import made, simulate

ROWS, IN_FLIGHT = 32, 8
ENOUGH = 2 + max(FillWriter.LATENCY.values())
"""Cycles after which a beat has left the block."""


def shown(ctx, port) -> SimpleNamespace:
    """Return the current values of the members of ``port``."""
    return SimpleNamespace(**{name: ctx.get(getattr(port, name))
                              for name in port.signature.members})


class Fills:
    """Valid and invalid vectors into a writer; the test models the miss table and the stores."""

    def __init__(self, most: int, beats: int, *, stall: float, bad: float, seed: int,
                 checked: bool = False):
        self.rng, self.stall, self.bad, self.beats = random.Random(seed), stall, bad, beats
        self.checked = checked
        self.opened: dict[int, tuple[int, int, int]] = {}  # id: slot, allocated, phase
        self.table = self.opened.copy()
        self.landing: dict[tuple[int, int], int] = {}
        self.slots: dict[int, int] = {}
        self.good: list[dict] = []
        self.writes: list[dict] = []  # allowed writes, in order
        self.refused = self.told = self.told_bad = 0
        self.busy_until = [0] * IN_FLIGHT
        self.dut = made(FillWriter, rows=ROWS, in_flight=IN_FLIGHT, vector_beats=most,
                        **({"checked": True} if checked else {}))
        simulate(powered_up(self.dut), self.bench)
        assert self.told == len(self.good) > 20 and self.told_bad == self.refused
        assert (self.refused > 0) == (bad > 0)
        assert not any(write["must"] for write in self.writes)

    def vector(self, cycle: int) -> list[dict]:
        """Return the beats of the next vector, after some ids may have been opened."""
        rng = self.rng
        free = [k for k in range(IN_FLIGHT)
                if k not in self.opened and k not in self.table and cycle > self.busy_until[k]]
        taken = {slot for slot, allocated, _ in self.opened.values() if allocated}
        for id_ in free:
            slot = rng.randrange(ROWS)
            if rng.random() < 0.5 and slot not in taken:
                taken.add(slot)
                self.opened[id_] = self.table[id_] = slot, rng.randrange(2), rng.randrange(2)
        id_ = rng.choice(sorted(self.opened) or range(IN_FLIGHT))
        length, ids, owed = self.beats, None, 1
        if rng.random() < self.bad:
            fault = rng.randrange(5 + self.checked)
            if fault == 0:
                length = rng.choice([n for n in range(1, self.beats + 4) if n != length])
            elif fault == 1:
                id_ = rng.randrange(IN_FLIGHT)
            elif fault == 2:
                id_ |= rng.randrange(1, 1 << FILL_ID_BITS - 3) << 3
            elif fault == 5:
                owed = 0
            elif length > 1:
                ids = [id_] * length
                ids[rng.randrange(1, length)] ^= 1 << rng.randrange(FILL_ID_BITS)
        ids = ids or [id_] * length
        entry = self.opened.get(id_)
        good = bool(entry and owed and length == self.beats and set(ids) == {id_})
        beats = [{"id": each, "data": rng.getrandbits(512), "last": int(n == length - 1)}
                 for n, each in enumerate(ids)]
        if entry is not None and owed:
            for number, beat in enumerate(beats[:self.beats]):
                if beat["id"] != id_:
                    break
                self.writes.append({"must": good, "id": id_, "beat": number, "entry": entry,
                                    "data": beat["data"]})
        if good:
            self.good.append({"id": id_, "entry": entry, "data": [b["data"] for b in beats]})
            del self.opened[id_]
        self.refused += not good
        # only the value of the first beat counts
        self.owed = [owed] + [rng.randrange(2) for _ in beats[1:]]
        return beats

    async def bench(self, ctx):
        dut, rng, beats, asked = self.dut, self.rng, [], 0
        ctx.set(dut.vector_beats, self.beats)
        vectors, last, owed = 0, 0, 1
        for cycle in range(3000):
            slot, allocated, phase = self.table.get(asked, (rng.randrange(ROWS), 1, 1))
            ctx.set(dut.busy, int(asked in self.table))
            ctx.set(dut.fill_slot, slot)
            ctx.set(dut.fill_allocated, allocated)
            ctx.set(dut.fill_phase, phase)
            if not beats and cycle < 3000 - 4 * ENOUGH and rng.random() >= self.stall:
                beats = self.vector(cycle)
                vectors += 1
            offers = bool(beats) and rng.random() >= self.stall
            if self.checked:
                ctx.set(dut.owed, owed)
            ctx.set(dut.fills.valid, int(offers))
            assert ctx.get(dut.fills.ready)
            if not offers:
                # Fields of an invalid write are arbitrary.
                ctx.set(dut.fills.payload, {"id": rng.getrandbits(FILL_ID_BITS),
                                            "last": rng.randrange(2)})
            else:
                beat, owed, last = beats.pop(0), self.owed.pop(0), cycle
                ctx.set(dut.fills.payload, beat)
                self.busy_until[beat["id"] % IN_FLIGHT] = cycle + ENOUGH
            closes, complete, bad, idle = (
                ctx.get(port) for port in (dut.close, dut.complete, dut.bad, dut.idle))
            write, filled = shown(ctx, dut.write), shown(ctx, dut.filled)
            if closes:
                del self.table[asked]
            asked = ctx.get(dut.fill_id)
            if write.valid:
                self.write(write)
            assert complete or not filled.valid
            if complete:
                self.complete(ctx.get(dut.complete_id), filled)
            self.told_bad += bad
            assert not (idle and (closes or write.valid or complete or bad))
            assert idle or cycle - last <= ENOUGH
            await ctx.tick()
        assert vectors > 100

    def write(self, write):
        while True:
            allowed = self.writes.pop(0)
            entry = allowed["entry"]
            if (write.id, write.beat, write.data) == (
                    allowed["id"], allowed["beat"], allowed["data"]):
                break
            assert not allowed["must"], "a beat of a good vector was not written"
        self.landing[write.id, write.beat] = write.data
        assert write.stored == entry[1]
        if write.stored:
            assert (write.slot, write.offset) == (entry[0], write.beat * ROWS)
            self.slots[write.slot + write.offset] = write.data

    def complete(self, id_, filled):
        """A vector is told to be there: it is, in both stores."""
        vector = self.good[self.told]
        self.told += 1
        slot, allocated, phase = vector["entry"]
        assert (id_, filled.valid) == (vector["id"], allocated)
        for number, data in enumerate(vector["data"]):
            assert self.landing[id_, number] == data
            assert not allocated or self.slots[slot + number * ROWS] == data
        assert not allocated or (filled.slot, filled.phase) == (slot, phase)


@pytest.mark.parametrize("most, beats, stall, bad", [
    (1, 1, 0.3, 0.4), (4, 4, 0.0, 0.5), (4, 2, 0.2, 0.3), (8, 5, 0.4, 0.0), (8, 1, 0.0, 0.3)])
def test_good_vectors_are_written_and_told_and_bad_ones_counted(most, beats, stall, bad):
    Fills(most, beats, stall=stall, bad=bad, seed=most + beats)


@pytest.mark.parametrize("most, beats, stall", [(1, 1, 0.0), (4, 3, 0.3)])
def test_a_vector_that_may_not_be_taken_is_bad(most, beats, stall):
    Fills(most, beats, stall=stall, bad=0.4, seed=beats, checked=True)


def test_a_second_vector_at_once_is_bad():
    """The first closes the id; latencies are as declared."""
    dut, events = made(FillWriter, rows=ROWS, in_flight=IN_FLIGHT, vector_beats=1), []

    async def bench(ctx):
        outstanding = 1
        ctx.set(dut.vector_beats, 1)
        for cycle in range(10):
            ctx.set(dut.busy, outstanding)
            ctx.set(dut.fills.payload, {"id": 3, "data": cycle, "last": 1})
            ctx.set(dut.fills.valid, int(cycle < 2))
            for name, seen in (("close", dut.close), ("write", dut.write.valid),
                               ("bad", dut.bad)):
                if ctx.get(seen):
                    events.append((name, cycle))
            if ctx.get(dut.close):
                outstanding = 0
            await ctx.tick()

    simulate(dut, bench)
    close, write = (FillWriter.LATENCY["last beat", name] for name in (
        "close of its id", "write"))
    assert sorted(events) == [("bad", 1 + close), ("close", close), ("write", write)]

"""Row ring against lists of rows: each leaves whole and in order, for any order of arrivals."""

import random
from collections import namedtuple
from unittest import mock

import pytest

from rtl.config import preset
from rtl.formats import ROW_BITS, TABLE_BITS
from rtl.gradient import arrivals, row_ring
from tests.rtl.gradient.updating import some_keys
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, sender, simulate

LATENCY = row_ring.RowRing.LATENCY
TO_BEAT = LATENCY["vector of a row of one beat in an idle ring", "its beat out"]
EVENTS = ("landed", "missed", "accepted", "dropped")
FOREVER = 1 << 30

Row = namedtuple("Row", "key step sums values state slot")
"""``sums``: data by beat; ``values``: values of each beat; ``slot``: None if the row is not cached.
"""


def ring(dimension: int, places: int = 8) -> row_ring.RowRing:
    return made(row_ring.RowRing, preset("tiny").with_fields(
        name=f"numbers_of_{row_ring.ROW_NUMBER_BITS}_bits", max_dimension=dimension,
        local_cache_rows=24, update_rows=places))


def some_rows(count: int, beats: int, seed: int, bits: int = 512, absent: float = 0.3) -> list[Row]:
    """Return rows; a share of the beats of their sums is absent."""
    rng, rows = random.Random(seed), []
    for key in some_keys(count, rng):
        there = [beat for beat in range(beats) if rng.random() >= absent] or [beats - 1]
        rows.append(Row(
            {"row": key & (1 << ROW_BITS) - 1, "table": key >> ROW_BITS}, rng.getrandbits(16),
            {beat: rng.getrandbits(bits) for beat in there},
            [rng.getrandbits(bits) for _ in range(beats)], rng.getrandbits(32),
            rng.choice([None, rng.randrange(24)])))
    return rows


def sums_of(rows: list[Row]) -> list[dict]:
    return [{"key": row.key, "beat": beat, "step": row.step, "data": word,
             "last": int(beat == max(row.sums))} for row in rows for beat, word in row.sums.items()]


def vector(row: Row, number: int) -> list[dict]:
    return [{"data": value, "meta": number, "last": int(beat == len(row.values)),
             "slot": row.slot or 0, "held": int(row.slot is not None)}
            for beat, value in enumerate(row.values, 1)]


class World:
    """Surroundings of a ring through which parts pass one after the other; checks the output.

    A part is its rows, the beats of a row, and whether rows have states. ``stall``: stalls of all
    streams; ``late``: delays of rows and states, in any order; ``bad``: share of states for which
    no row waits. ``took``: cycles of events, of sums, and of output beats.
    """

    def __init__(self, dut, parts, stall=0.2, late=0.5, bad=0.0):
        self.dut, self.parts, self.rng = dut, parts, random.Random(len(parts))
        self.stall, self.late, self.bad = stall, late, bad
        self.rows = rows = [row for rows, *_ in parts for row in rows]
        adagrad = [adagrad for rows, _, adagrad in parts for _ in rows]
        self.asked = [number for number, states in enumerate(adagrad) if states]
        self.lookups, self.requests, self.out, self.answered = [], [], [], []
        self.freed, self.dropped, self.took = 0, 0, [[] for _ in (*EVENTS, "sums", "o")]
        simulate(powered_up(dut), self.feed, limit=9000, background=[
            receiver(dut.lookups, self.lookups, FOREVER, stall=stall, seed=1),
            receiver(dut.state_requests, self.requests, FOREVER, stall=stall, seed=2),
            receiver(dut.o, self.out, FOREVER, stall=stall, seed=3),
            self.answer(dut.vectors, self.lookups, lambda n: vector(
                rows[n], self.lookups[n]["meta"])),
            self.answer(dut.states, self.requests if self.asked else self.lookups, self.state),
            self.finish, self.watch])
        numbers = [number % (1 << row_ring.ROW_NUMBER_BITS) for number in range(len(rows))]
        assert self.lookups == [{"key": row.key, "meta": n} for row, n in zip(rows, numbers)]
        assert self.requests == [{"destination": 0, "step": rows[n].step, "record": (
            numbers[n] << TABLE_BITS | rows[n].key["table"]) << ROW_BITS | rows[n].key["row"]}
            for n in self.asked]
        assert [(item["row"], item["gradient"], item["last"]) for item in self.out] == [
            (value, row.sums.get(beat, 0), int(beat == len(row.values) - 1))
            for row in rows for beat, value in enumerate(row.values)]
        # Number and state are valid with the last beat of a row.
        ends = [item for item in self.out if item["last"]]
        assert [item["id"] for item in ends] == numbers
        assert all(ends[n]["state"] == rows[n].state for n in self.asked)
        assert [len(cycles) for cycles in self.took[:-2]] == [
            len(rows), sum(row.slot is None for row in rows), len(self.asked), self.dropped]

    async def feed(self, ctx):
        dut, given = self.dut, 0
        for rows, beats, adagrad in self.parts:
            ctx.set(dut.adagrad, adagrad)
            ctx.set(dut.vector_beats, beats)
            given += len(rows)
            await sender(dut.sums, sums_of(rows), stall=self.stall, seed=len(rows))(ctx)
            while self.freed < given or not ctx.get(dut.idle):
                await ctx.tick()
            assert ctx.get(dut.empty) and not ctx.get(dut.begins)
            assert ctx.get(dut.level) == 0 and ctx.get(dut.step) == rows[-1].step

    def answer(self, port, taken: list, items):
        """Return a testbench that returns the taken items, one after the other."""
        async def bench(ctx):
            seen, waiting = 0, []
            while True:
                assert ctx.get(port.ready), "always"
                waiting += range(seen, len(taken))
                seen = len(taken)
                if waiting and self.rng.random() >= self.late:
                    n = waiting.pop(self.rng.randrange(len(waiting)) if self.late else 0)
                    await sender(port, items(n), stall=self.stall, seed=n)(ctx)
                else:
                    await ctx.tick()
        return bench

    def state(self, n: int) -> list[dict]:
        """Return a state, sometimes after a state of a row that has one or does not wait."""
        old = [*self.answered[-4:], *self.answered[:4], len(self.rows), 0x7FFF, 0xFFFF]
        landing = self.rng.choice(old if self.asked else range(90))
        given = [(landing, 0xBAD)] if self.rng.random() < self.bad else []
        self.dropped += len(given)
        if self.asked:
            self.answered += [self.requests[n]["record"] >> ROW_BITS + TABLE_BITS]
            given += [(self.answered[-1], self.rows[self.asked[n]].state)]
        return [{"landing": landing, "state": state, "reserved": 9} for landing, state in given]

    async def finish(self, ctx):
        """Read each row that left, then free it: at most one of either per cycle."""
        dut, read = self.dut, 0
        while True:
            left = sum(item["last"] for item in self.out)
            reads = int(read < left and self.rng.random() >= self.stall)
            frees = int(self.freed < read and self.rng.random() >= self.stall)
            for port, value in ((dut.read_en, reads), (dut.freed, frees), (dut.read_place, read)):
                ctx.set(port, value % (1 << len(port)))
            await ctx.tick()
            self.freed += frees
            if reads:
                row, key = self.rows[read], ctx.get(dut.key)
                assert {"row": key.row, "table": key.table} == row.key
                assert (ctx.get(dut.slot) if ctx.get(dut.held) else None) == row.slot
                read += 1

    async def watch(self, ctx):
        """Check that the block is inactive while idle, until an input changes."""
        dut, cycle, quiet = self.dut, 0, False
        ins, outs = (dut.sums, dut.vectors, dut.states), (dut.lookups, dut.state_requests, dut.o)
        async for _, _, idle, come, leave, *took in ctx.tick().sample(
                dut.idle, dut.freed + sum(port.valid for port in ins),
                sum(port.valid for port in outs), *(getattr(dut, name) for name in EVENTS),
                dut.sums.valid & dut.sums.ready, dut.o.valid & dut.o.ready):
            assert not (idle and leave) and (idle or not quiet)
            quiet, cycle = idle and not come, cycle + 1
            for cycles, taken in zip(self.took, took):
                cycles += [cycle] * taken


@pytest.mark.parametrize("dimension, places, adagrad, stall, late, bad", [
    (16, 8, 0, 0.0, 0.8, 0.0), (4, 8, 1, 0.3, 0.5, 0.3), (64, 16, 1, 0.1, 0.3, 0.2),
    (48, 8, 0, 0.4, 0.2, 0.3), (64, 64, 1, 0.0, 0.9, 0.3), (32, 16, 1, 0.8, 0.1, 0.0)])
def test_rows_leave_whole_and_in_order(dimension, places, adagrad, stall, late, bad):
    """Some beats of sums are absent, and some states are given that nobody awaits."""
    beats = max(1, dimension // 16)
    rows = some_rows(80 if beats == 1 else 40, beats, places, min(512, 32 * dimension))
    parts = [(rows, beats, adagrad)]
    assert World(ring(dimension, places), parts, stall, late, bad).dropped >= 20 * bad


@pytest.mark.parametrize("bits", [5, 16])
def test_settings_change_while_no_row_is_inside(bits):
    """In each row's round of the ring, with a state or without; with 5 bits numbers come again."""
    with (mock.patch.object(arrivals, "ROW_NUMBER_BITS", bits),
          mock.patch.object(row_ring, "ROW_NUMBER_BITS", bits)):
        World(ring(64), [(some_rows(21, beats, 2 * beats + adagrad), beats, adagrad)
                         for beats, adagrad in ((4, 0), (1, 1), (2, 0), (4, 1), (3, 1))])


@pytest.mark.parametrize("beats, adagrad", [(1, 0), (1, 1), (2, 1), (4, 0)])
def test_a_beat_a_cycle(beats, adagrad):
    """Of sums, and of rows that leave; the first rows come while the ring is swept."""
    parts = [(some_rows(count, beats, count, absent=0.0), beats, adagrad) for count in (5, 50)]
    for cycles in World(ring(16 * beats, 16), parts, stall=0.0, late=0.0).took[-2:]:
        assert cycles[-1] - cycles[-50 * beats] == 50 * beats - 1


@pytest.mark.parametrize("places", [8, 32])
def test_latencies(places):
    """After reset a beat is taken behind a cycle for each place."""
    dut, rows = ring(16, places), some_rows(3, 1, 1)

    async def bench(ctx):
        ctx.set(dut.vector_beats, 1)
        for number, row in enumerate(rows):
            first = LATENCY["sums", "lookups"] + (0 if number else places - 1)
            for source, items, port, latency in (
                    (dut.sums, sums_of([row]), dut.lookups, first),
                    (dut.vectors, vector(row, number), dut.o, TO_BEAT)):
                await sender(source, items)(ctx)
                for cycle in range(1, latency + 1):
                    assert ctx.get(port.valid) == (cycle == latency)
                    await ctx.tick()
                await receiver(port, [], 1)(ctx)
                await ctx.tick().repeat(3)

    simulate(powered_up(dut), bench)


def test_what_waits():
    """Sums for requests to leave and for places; the oldest row for its vector and its state."""
    dut, rows, out = ring(32), some_rows(11, 2, 1, absent=0.0), []
    states = [{"landing": n, "state": row.state, "reserved": 0} for n, row in enumerate(rows)]

    async def bench(ctx):
        async def settled(level, *waits, idle=0):
            await ctx.tick().repeat(25)
            assert waits == tuple(name for name in ("place", "request", "row", "state")
                                  if ctx.get(getattr(dut, f"waits_{name}")))
            assert ctx.get(dut.begins) == ("place" in waits or "request" in waits)
            assert ctx.get(dut.level) in level and ctx.get(dut.idle) == idle

        ctx.set(dut.adagrad, 1)
        ctx.set(dut.vector_beats, 2)
        for port in (dut.lookups, dut.state_requests):
            await settled(range(1, 8), "request", "row")
            ctx.set(port.ready, 1)
        await settled([8], "place", "row")
        for number in range(7, 0, -1):
            await sender(dut.vectors, vector(rows[number], number))(ctx)
        await sender(dut.states, states[7:0:-1])(ctx)
        await settled([8], "place", "row")
        await sender(dut.vectors, vector(rows[0], 0))(ctx)
        await settled([8], "place", "state")
        assert not out
        await sender(dut.states, states[:1])(ctx)
        await settled([8], "place")
        assert len(out) == 16
        # Two more rows, and one whose sum is arriving.
        for level, waits, idle in ((8, ["place", "row"], 0),) * 2 + ((7, ["row"], 1),):
            ctx.set(dut.freed, 1)
            await ctx.tick()
            ctx.set(dut.freed, 0)
            await settled([level], *waits, idle=idle)

    simulate(powered_up(dut), bench, background=[
        sender(dut.sums, sums_of(rows)[:-1]), receiver(dut.o, out, FOREVER)])

"""Hold buffer against a list: for any order of arrival, slots leave in slot order."""

import random

import pytest
from amaranth.hdl import ResetInserter, Signal

from rtl.config import preset
from rtl.formats import RecordKind
from rtl.interaction import HoldBuffer
from tests.rtl.power_up import powered_up
from tests.support import counts_of, made, receiver, simulate

KEY, KEY_END, EMPTY = RecordKind.KEY, RecordKind.KEY_END, RecordKind.EMPTY


def build(dimension=64, places=16):
    dut = made(HoldBuffer, preset("tiny").with_fields(max_dimension=dimension, hold_vectors=places))
    dut.dimension = dimension
    return dut


def random_slots(rng, number, empty=0.15):
    return [{"kind": EMPTY if rng.random() < empty else rng.choice((KEY, KEY_END)),
             "sample": rng.getrandbits(32), "step": rng.getrandbits(16),
             "last": rng.getrandbits(1)} for _ in range(number)]


def beats_of(slot, vector, beats):
    return [{"data": 0 if slot["kind"] == EMPTY else vector[b], "kind": int(slot["kind"]),
             "sample": slot["sample"], "step": slot["step"], "beat_last": int(b == beats - 1),
             "sample_last": slot["last"], "lost": 0} for b in range(beats)]


class Traffic:
    """Reserves ``slots`` and answers them out of order over both inputs, among invalid vectors."""

    def __init__(self, dut, slots, beats, *, seed=0, stall=0.0, bad=0.0, places=16):
        self.dut, self.slots, self.beats, self.places = dut, slots, beats, places
        self.stall, self.bad, self.seed = stall, bad, seed
        rng = random.Random(seed)
        bits = 32 * dut.dimension  # lanes out of use are +0
        self.vectors = [[rng.getrandbits(min(512, bits)) for _ in range(beats)] for _ in slots]
        self.waiting: list[tuple[int, int]] = []
        self.landed: set[int] = set()
        self.keys = sum(s["kind"] != EMPTY for s in slots)
        self.sent = self.bad_sent = 0

    async def reserve(self, ctx):
        rng, dut = random.Random(self.seed + 1), self.dut
        for k, slot in enumerate(self.slots):
            while rng.random() < self.stall:
                await ctx.tick()
            ctx.set(dut.reserve.payload, slot)
            ctx.set(dut.reserve.valid, 1)
            landing, = await ctx.tick().sample(dut.next_landing).until(dut.reserve.ready)
            ctx.set(dut.reserve.valid, 0)
            assert landing == k % self.places, "places are taken round the ring"
            if slot["kind"] != EMPTY:
                self.waiting.append((k, landing))

    def bad_vector(self, rng, which):
        """Return a vector that no place may take, as (landing, beats)."""
        number = rng.choice([n for n in range(1, self.beats + 3) if n != self.beats])
        if rng.random() < 0.3:
            landing = rng.randrange(self.places, 1 << 16)  # there is no such place
            number = self.beats
        elif which == 0:  # too short or too long, for a place that may be open
            landing = rng.randrange(self.places)
        else:  # the node's own lookups are trusted with open places
            landing = rng.randrange(self.places, 1 << 16)
        return landing, [rng.getrandbits(512) for _ in range(number)]

    def feeder(self, which):
        async def feed(ctx):
            rng = random.Random(self.seed + 10 + which)
            port = (self.dut.remote, self.dut.local)[which]
            while self.sent < self.keys:
                while rng.random() < self.stall:
                    await ctx.tick()
                if rng.random() < self.bad:
                    landing, data = self.bad_vector(rng, which)
                    self.bad_sent += 1
                elif self.waiting:
                    k, landing = self.waiting.pop(rng.randrange(len(self.waiting)))
                    data = self.vectors[k]
                    self.sent += 1
                else:
                    await ctx.tick()
                    continue
                for b, beat in enumerate(data):
                    while rng.random() < self.stall:
                        await ctx.tick()
                    tag = {"landing": landing, "node": 0, "step": 0} if which else landing
                    ctx.set(port.payload,
                            {"tag": tag, "data": beat, "last": int(b == len(data) - 1)})
                    ctx.set(port.valid, 1)
                    if which == 0:
                        assert ctx.get(port.ready), "the network is never made to wait"
                    await ctx.tick().until(port.ready)
                    ctx.set(port.valid, 0)
        return feed


def run(dut, traffic, beats, *, stall=0.0, seed=0):
    taken: list[dict] = []
    expected = [b for slot, vector in zip(traffic.slots, traffic.vectors, strict=True)
                for b in beats_of(slot, vector, beats)]
    end = {}

    async def setup(ctx):
        ctx.set(dut.vector_beats, beats)

    async def clock(ctx):
        now = 0
        while True:
            ctx.set(dut.time, now)
            await ctx.tick()
            now += 1

    async def finish(ctx):
        await receiver(dut.o, taken, len(expected), stall=stall, seed=seed + 2)(ctx)
        for _ in range(40):
            await ctx.tick()
        end.update(counts_of(ctx, dut.counters))
        assert ctx.get(dut.idle) and not ctx.get(dut.o.valid)

    cycles = simulate(powered_up(dut, seed), setup, traffic.reserve, traffic.feeder(0),
                      traffic.feeder(1), finish, background=[clock])
    assert taken == expected
    return cycles, end


@pytest.mark.few(3)
@pytest.mark.parametrize("dimension, beats, places, stall", [
    (16, 1, 8, 0.0), (16, 1, 8, 0.4), (16, 1, 128, 0.0), (48, 3, 16, 0.4), (64, 4, 16, 0.0),
    (64, 2, 8, 0.4), (4, 1, 16, 0.0), *(pytest.param(*size, marks=pytest.mark.slow) for size in (
        (16, 1, 128, 0.4), (48, 3, 16, 0.0), (64, 4, 16, 0.4), (64, 2, 8, 0.0), (4, 1, 16, 0.4)))])
def test_slots_leave_in_order(dimension, beats, places, stall):
    dut = build(dimension, places)
    slots = random_slots(random.Random(places), 300 if beats == 1 else 120)
    traffic = Traffic(dut, slots, beats, stall=stall, bad=0.15, places=places, seed=beats)
    _, counters = run(dut, traffic, beats, stall=stall)
    assert counters["reserved"] == len(slots)
    assert counters["vectors_in"] == traffic.keys
    assert counters["beats_in"] == traffic.keys * beats
    assert counters["beats_out"] == len(slots) * beats
    assert counters["bad_landings"] == traffic.bad_sent > 0


def test_empty_slots_leave_at_once_and_use_no_stale_bit():
    dut = build(16, 8)
    rng = random.Random(9)
    slots = [s for _ in range(30)
             for s in random_slots(rng, 9, empty=1.0) + random_slots(rng, 3, empty=0.0)]
    traffic = Traffic(dut, slots, 1, places=8)
    _, counters = run(dut, traffic, 1)
    assert counters["vectors_in"] == 90 and counters["bad_landings"] == 0


def test_the_bit_of_an_empty_slot_is_never_late():
    """A vector every cycle leaves no cycle to write it, and the ring goes on for laps."""
    dut = build(16, 32)
    slots = [{"kind": EMPTY if k == 31 else KEY, "sample": k, "step": 0, "last": 0}
             for k in range(200)]
    waiting: list[int] = []
    taken: list[dict] = []
    sent_at = []

    async def reserve(ctx):
        ctx.set(dut.vector_beats, 1)
        for k, slot in enumerate(slots):
            ctx.set(dut.reserve.payload, slot)
            ctx.set(dut.reserve.valid, 1)
            await ctx.tick().until(dut.reserve.ready)
            ctx.set(dut.reserve.valid, 0)
            if k != 31:
                waiting.append(k)

    async def answer(ctx):
        cycle = 0
        while len(sent_at) < 199:
            # Without a gap from just before the EMPTY slot is reserved; later, with gaps.
            if waiting and (sent_at or len(waiting) >= 26) and (
                    len(sent_at) < 100 or cycle % 8 == 0):
                k = waiting.pop(0)
                sent_at.append(cycle)
                ctx.set(dut.remote.payload, {"tag": k % 32, "data": k, "last": 1})
                ctx.set(dut.remote.valid, 1)
            else:
                ctx.set(dut.remote.valid, 0)
            await ctx.tick()
            cycle += 1
        ctx.set(dut.remote.valid, 0)

    simulate(powered_up(dut), reserve, answer, receiver(dut.o, taken, 200))
    assert [t["data"] for t in taken] == [0 if k == 31 else k for k in range(200)]
    assert sent_at[24] - sent_at[0] == 24, "no gap until reservations are held back"


def offer(dut, remote, *, drain=True):
    """A bench that sends (landing, [beats]) over ``remote``."""
    async def bench(ctx):
        for landing, data in remote:
            for b, beat in enumerate(data):
                ctx.set(dut.remote.payload,
                        {"tag": landing, "data": beat, "last": int(b == len(data) - 1)})
                ctx.set(dut.remote.valid, 1)
                await ctx.tick()
            ctx.set(dut.remote.valid, 0)
        if drain:
            for _ in range(12):
                await ctx.tick()
    return bench


@pytest.mark.parametrize("beats", [1, 4])
def test_bad_landings_are_dropped_and_leave_the_place_open(beats):
    dut = build(16 * beats, 8)
    right = [[100 + k * 8 + b for b in range(beats)] for k in range(3)]
    wrong = [999] * beats
    sequence = [
        (0, wrong),                  # before anything is reserved
        (1, wrong[:-1]) if beats > 1 else (1, wrong * 2),   # too short, or too long
        (1, [*wrong, 999]),          # too long
        (8, wrong), (0x8001, wrong),  # places that there are not
        (3, wrong),                  # not reserved
        (1, right[1]), (1, wrong),   # the right one, then filled already
        (2, right[2]), (2, wrong), (2, wrong),
    ]

    async def bench(ctx):
        ctx.set(dut.vector_beats, beats)
        await ctx.tick().until(dut.reserve.ready)
        await offer(dut, sequence[:1])(ctx)
        for k in range(3):
            ctx.set(dut.reserve.payload, {"kind": KEY, "sample": k, "step": 0, "last": 0})
            ctx.set(dut.reserve.valid, 1)
            await ctx.tick().until(dut.reserve.ready)
        ctx.set(dut.reserve.valid, 0)
        await offer(dut, sequence[1:])(ctx)
        assert not ctx.get(dut.o.valid)
        assert ctx.get(dut.counters.bad_landings) == 9
        assert ctx.get(dut.counters.vectors_in) == 2
        assert ctx.get(dut.idle), "waiting for a vector is idle"
        await offer(dut, [(0, right[0])], drain=False)(ctx)
        for k in range(3):
            for b in range(beats):
                ctx.set(dut.o.ready, 1)
                data, = await ctx.tick().sample(dut.o.payload.data).until(dut.o.valid)
                assert data == right[k][b]
        ctx.set(dut.o.ready, 0)
        await offer(dut, [(0, wrong)])(ctx)  # filled, given out, free again
        assert ctx.get(dut.counters.bad_landings) == 10 and not ctx.get(dut.o.valid)

    simulate(powered_up(dut), bench)


@pytest.mark.parametrize("begun", [False, True], ids=["after", "before"])
def test_a_peer_cannot_write_into_a_local_vector(begun):
    """Nor may its vector, begun before the local one, reach into the next lap of the place."""
    dut = build(32, 8)

    async def send(ctx, port, tag, data, last):
        ctx.set(port.payload, {"tag": tag, "data": data, "last": last})
        ctx.set(port.valid, 1)
        await ctx.tick().until(port.ready)
        ctx.set(port.valid, 0)

    async def reserve(ctx, kind):
        ctx.set(dut.reserve.payload, {"kind": kind, "sample": 0, "step": 0, "last": 0})
        ctx.set(dut.reserve.valid, 1)
        await ctx.tick().until(dut.reserve.ready)
        ctx.set(dut.reserve.valid, 0)

    async def bench(ctx):
        tag = {"landing": 0, "node": 0, "step": 0}
        ctx.set(dut.vector_beats, 2)
        await reserve(ctx, KEY)
        if begun:
            await send(ctx, dut.remote, 0, 99, 0)
        await send(ctx, dut.local, tag, 7, 0)
        if not begun:
            await send(ctx, dut.remote, 0, 99, 0)
            await send(ctx, dut.remote, 0, 99, 1)
        await send(ctx, dut.local, tag, 8, 1)
        for data in (7, 8):
            ctx.set(dut.o.ready, 1)
            assert await ctx.tick().sample(dut.o.payload.data).until(dut.o.valid) == (data,)
        for _ in range(7):
            await reserve(ctx, EMPTY)
        await reserve(ctx, KEY)  # place 0 again
        for _ in range(30):
            await ctx.tick()
        if begun:
            await send(ctx, dut.remote, 0, 99, 1)
            for _ in range(10):
                await ctx.tick()
        assert ctx.get(dut.counters.bad_landings) == 1 and ctx.get(dut.counters.vectors_in) == 1
        await offer(dut, [(0, [3, 4])])(ctx)
        assert ctx.get(dut.counters.vectors_in) == 2 and ctx.get(dut.counters.beats_out) == 18

    simulate(powered_up(dut), bench)


@pytest.mark.parametrize("beats", [1, 4])
def test_one_beat_a_cycle(beats):
    dut = build(16 * beats, 32)
    slots = [{"kind": KEY_END, "sample": k, "step": 0, "last": 1} for k in range(256)]
    taken, cycles = [], [0]

    async def setup(ctx):
        ctx.set(dut.vector_beats, beats)
        await ctx.tick().until(dut.reserve.ready)
        while len(taken) < 256 * beats:
            await ctx.tick()
            cycles[0] += 1

    async def reserve(ctx):
        for slot in slots:
            ctx.set(dut.reserve.payload, slot)
            ctx.set(dut.reserve.valid, 1)
            await ctx.tick().until(dut.reserve.ready)
        ctx.set(dut.reserve.valid, 0)

    async def feed(ctx):
        for k in range(len(slots)):
            while ctx.get(dut.counters.reserved) <= k:
                await ctx.tick()
            await offer(dut, [(k % 32, [k] * beats)], drain=False)(ctx)

    simulate(powered_up(dut), setup, reserve, feed, receiver(dut.o, taken, 256 * beats))
    assert [t["data"] for t in taken] == [k for k in range(256) for _ in range(beats)]
    assert 256 * beats / cycles[0] >= 0.95


def test_stalls_count_time_also_when_it_jumps():
    dut = build(16, 8)

    async def bench(ctx):
        ctx.set(dut.vector_beats, 1)
        ctx.set(dut.reserve.payload, {"kind": KEY, "sample": 0, "step": 0, "last": 0})
        ctx.set(dut.reserve.valid, 1)
        for now in range(40):
            ctx.set(dut.time, now)
            await ctx.tick()
        full, waiting = (ctx.get(dut.counters[n]) for n in ("stall_full", "stall_waiting"))
        assert ctx.get(dut.counters.reserved) == 8 and ctx.get(dut.idle)
        assert 15 <= full <= 25 and full < waiting <= 35
        ctx.set(dut.time, 1039)
        await ctx.tick()
        assert ctx.get(dut.counters.stall_full) == full + 1000
        assert ctx.get(dut.counters.stall_waiting) == waiting + 1000

    simulate(powered_up(dut), bench)


def test_reset_forgets_what_was_held():
    """Whatever the filled bits hold at a reset, the first lap after it begins with empty places."""
    dut = build(16, 8)
    reset = Signal()
    slots = random_slots(random.Random(6), 11, empty=0.0)

    async def fill(ctx, first, number):
        for k in range(first, first + number):
            ctx.set(dut.reserve.payload, slots[k])
            ctx.set(dut.reserve.valid, 1)
            await ctx.tick().until(dut.reserve.ready)
            ctx.set(dut.reserve.valid, 0)
            await offer(dut, [(ctx.get(dut.next_landing) - 1 & 7, [k])], drain=False)(ctx)

    async def bench(ctx):
        ctx.set(dut.vector_beats, 1)
        ctx.set(dut.o.ready, 1)
        await fill(ctx, 0, 11)  # one lap and a part: bits of both laps
        for _ in range(10):
            await ctx.tick()
        assert ctx.get(dut.counters.beats_out) == 11
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        assert not ctx.get(dut.idle) and not ctx.get(dut.reserve.ready)
        for k in range(8):
            ctx.set(dut.reserve.payload, slots[k])
            ctx.set(dut.reserve.valid, 1)
            await ctx.tick().until(dut.reserve.ready)
        ctx.set(dut.reserve.valid, 0)
        for _ in range(10):
            await ctx.tick()
        assert ctx.get(dut.idle) and ctx.get(dut.counters.beats_out) == 0
        await offer(dut, [(k, [k]) for k in range(8)])(ctx)
        assert ctx.get(dut.counters.beats_out) == 8 and ctx.get(dut.counters.bad_landings) == 0

    simulate(ResetInserter(reset)(powered_up(dut)), bench)


def test_config_is_checked():
    with pytest.raises(TypeError, match="config must be a NicConfig, not 'tiny'"):
        HoldBuffer("tiny")

"""Drive a RowUpdater: a cache, a GPU and a host in Python, which answer late and in any order."""

import random
from dataclasses import dataclass, field
from unittest import mock

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import wiring

from host.dlrm.optimizer import OPTIMIZERS, Optimizer
from host.dlrm.row_store import RowStore
from host.model import Model
from rtl.config import LANES, NicConfig, beats_of
from rtl.formats import ROW_BITS, TABLE_BITS, OptimizerMode, StepKind
from rtl.gradient import RowOptimizer, RowUpdater, updater
from rtl.stream import StreamFIFO
from tests.rtl.power_up import powered_up
from tests.support import counts_of, sender, simulate

KEY_MASK = (1 << ROW_BITS + TABLE_BITS) - 1
STEP = 0xFFFE
SEED = 11


def model_of(dimension: int) -> Model:
    return Model(rows=(1 << 34, 500, 70), dimension=dimension, dense=1, bottom=(dimension,),
                 top=(1,))


def some_keys(count: int, rng: random.Random) -> list[int]:
    """Return distinct keys."""
    found: set[int] = set()
    while len(found) < count:
        table = rng.randrange(2)
        found.add(rng.randrange((1 << 34, 500)[table]) | table << ROW_BITS)
    return rng.sample(sorted(found), count)


def words(vector: np.ndarray, beats: int) -> list[int]:
    """Return the beats of a vector of float32, as integers; unused lanes are 0."""
    lanes = np.zeros(beats * LANES, "<u4")
    lanes[:len(vector)] = vector.view(np.uint32)
    return [int.from_bytes(beat.tobytes(), "little") for beat in lanes.reshape(-1, LANES)]


def values(beats: list[int], dimension: int) -> np.ndarray:
    """Return the vector of the beats, whose other lanes must be +0."""
    lanes = np.frombuffer(b"".join(beat.to_bytes(4 * LANES, "little") for beat in beats), "<f4")
    assert not lanes[dimension:].view(np.uint32).any()
    return lanes[:dimension].copy()


class Swift(wiring.Component):
    """Substitute for a :class:`RowOptimizer`, for speed: rows ^ gradients, ~states."""

    def __init__(self, config: NicConfig, *, id_bits: int):
        super().__init__(RowOptimizer(config, id_bits=id_bits).signature)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.fifo = fifo = StreamFIFO(self.o.payload.shape(), 2)
        wiring.connect(m, fifo.o, wiring.flipped(self.o))
        beat = self.i.payload
        m.d.comb += [
            fifo.i.valid.eq(self.i.valid), self.i.ready.eq(fifo.i.ready),
            fifo.i.payload.row.eq(beat.row ^ beat.gradient),
            fifo.i.payload.state.eq(~beat.state), fifo.i.payload.id.eq(beat.id),
            fifo.i.payload.last.eq(beat.last), self.idle.eq(fifo.idle)]
        return m


class SwiftHost:
    """Host model of :class:`Swift`; states are used in Adagrad mode."""

    learning_rate = epsilon = 1.0

    def __init__(self, name: str):
        self.name = name

    def apply(self, vectors, states, gradients):
        new = (vectors.view(np.uint32) ^ gradients.view(np.uint32)).view(np.float32)
        flipped = (~states.view(np.uint32)).view(np.float32)
        return new, flipped if self.name == OPTIMIZERS[1] else states


@dataclass
class Pass:
    """A pass of the global reduction: its keys with their gradients, and the number of beats passed
    on."""

    keys: list[int]
    gradients: np.ndarray
    passed: int = 0
    absent: set[tuple[int, int]] = field(default_factory=set)
    """(key, beat) of beats that the reduction does not output."""


@dataclass
class World:
    """Surroundings of the updater. ``held``: cached keys, in slots of any order.

    ``settled``: sums begin when the tables are swept and the optimizer has its settings.
    """

    config: NicConfig
    dimension: int
    optimizer: Optimizer | SwiftHost
    held: list[int]
    seed: int = 0
    latency: tuple[int, int] = (1, 60)
    stall: float = 0.2
    bad_states: float = 0.0
    written_late: int = 0
    shuffled: bool = True
    settled: bool = False
    log: list = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.beats, self.now = beats_of(self.dimension), 0
        self.adagrad = self.optimizer.name == OPTIMIZERS[1]
        self.store = RowStore(model_of(self.dimension), SEED)
        slots = self.rng.sample(range(self.config.local_cache_rows), len(self.held))
        self.slot_of = dict(zip(self.held, slots, strict=True))
        self.cache = {slot: words(self.store.read(np.array([key]))[0][0], self.beats)
                      for key, slot in self.slot_of.items()}
        self.lookups, self.asked, self.landings, self.rows = [], [], {}, {}
        self.done, self.reports, self.written, self.pending, self.bad = [], [], 0, [], 0
        self.times: dict[str, list[int]] = {}
        self.dut = RowUpdater(self.config)

    def background(self) -> list:
        dut = self.dut
        return [self.clock, *self.surroundings(),
                self.take(dut.state_requests, self.state_asked), self.states,
                self.take(dut.rows, self.row),
                self.take(dut.state_updates, self.state), self.acknowledge, self.watch,
                self.take(dut.reports, lambda item: self.reports.append(
                    (item.step, item.record & 0xFFFFFFFF, item.record >> 32))),
                self.take(dut.done, self.finished)]

    def surroundings(self) -> list:
        """Return the testbenches of the cache."""
        dut = self.dut
        return [self.take(dut.lookups, self.looked_up), self.vectors,
                self.take(dut.write, self.wrote)]

    def hosts_ports(self) -> list:
        dut = self.dut
        return [dut.state_requests, dut.rows, dut.state_updates, dut.reports, dut.done]

    def outs(self) -> list:
        return [self.dut.lookups, self.dut.write, *self.hosts_ports()]

    def ins(self) -> list:
        return [self.dut.sums, self.dut.flushed, self.dut.vectors, self.dut.states]

    async def before(self, ctx, keys: list[int]) -> None:
        """Hook before a step of these keys."""

    async def after(self, ctx, keys: list[int]) -> None:
        """Hook after it."""

    async def clock(self, ctx):
        ctx.set(self.dut.time, 0)
        while True:
            await ctx.tick()
            self.now += 1
            ctx.set(self.dut.time, self.now)

    def take(self, port, use):
        rng = random.Random(self.rng.random())

        async def bench(ctx):
            while True:
                ctx.set(port.ready, rng.random() >= self.stall)
                _, _, valid, ready, payload = await ctx.tick().sample(
                    port.valid, port.ready, port.payload)
                if valid and ready:
                    use(payload)
        return bench

    def late(self) -> int:
        return self.now + self.rng.randint(*self.latency)

    def pick(self, waiting: list):
        """Take one of the items that are due, or return None."""
        ready = [entry for entry in waiting if entry[0] <= self.now]
        if not ready:
            return None
        entry = self.rng.choice(ready) if self.shuffled else ready[0]
        waiting.remove(entry)
        return entry

    # The cache.
    def looked_up(self, item) -> None:
        key = item.key.row | item.key.table << ROW_BITS
        self.lookups.append((self.late(), key, item.meta))

    async def vectors(self, ctx):
        port = self.dut.vectors
        while True:
            entry = self.pick(self.lookups)
            if entry is None:
                await ctx.tick()
                continue
            _, key, meta = entry
            slot = self.slot_of.get(key)
            row = (self.cache[slot] if slot is not None else
                   words(self.store.read(np.array([key]))[0][0], self.beats))
            for k, beat in enumerate(row):
                ctx.set(port.payload, {
                    "data": beat, "meta": meta, "last": int(k == len(row) - 1),
                    "slot": self.rng.getrandbits(3) if slot is None else slot,
                    "held": int(slot is not None)})
                ctx.set(port.valid, 1)
                assert ctx.get(port.ready)
                await ctx.tick()
                ctx.set(port.valid, 0)
                while self.rng.random() < self.stall:
                    await ctx.tick()

    def wrote(self, item) -> None:
        self.cache[item.slot][item.beat] = item.data

    # The host.
    def state_asked(self, item) -> None:
        assert self.adagrad and item.step == STEP and item.destination == 0
        key, landing = item.record & KEY_MASK, item.record >> ROW_BITS + TABLE_BITS
        self.landings[landing] = key
        self.asked.append((self.late(), landing))

    def bad_landing(self) -> int:
        """Return a landing that was answered, or one far from any request; requested ones may be
        late."""
        waiting = {landing for _, landing in self.asked}
        recent = max(self.landings, default=0)
        answered = [landing for landing in self.landings if landing not in waiting]
        return self.rng.choice([*answered[-20:], recent + 20, recent + 32, recent + 64,
                                recent + self.rng.randrange(20, 60000)]) & 0xFFFF

    async def states(self, ctx):
        port, records = self.dut.states, []
        if self.bad_states:  # for rows that are still to come
            records, self.bad = [0xBAD | landing << 32 for landing in range(8)], 8
        while True:
            if records:
                ctx.set(port.payload, {
                    "data": sum(record << 64 * k for k, record in enumerate(records)),
                    "records": len(records), "step": STEP, "last": 1})
                ctx.set(port.valid, 1)
                await ctx.tick().until(port.ready)
                ctx.set(port.valid, 0)
            else:
                await ctx.tick()
            records = self.answers()

    def answers(self) -> list[int]:
        """Return up to eight requested states, with invalid ones among them."""
        records = []
        for _ in range(self.rng.randint(1, 8)):
            entry = self.pick(self.asked)
            if entry:
                state = self.store.read(np.array([self.landings[entry[1]]]))[1]
                records.append(int(state.view(np.uint32)[0]) | entry[1] << 32)
            if (entry or not self.adagrad) and len(records) < 8 and (
                    self.rng.random() < self.bad_states):
                records.append(0xBAD | self.bad_landing() << 32)
                self.bad += 1
            if len(records) == 8:
                break
        return records

    def row(self, item) -> None:
        record = item.record
        assert item.step == STEP and item.destination == 0
        key = record.row | record.table << ROW_BITS
        beats = self.rows.setdefault(key, [])
        assert record.beat == len(beats), "each beat once, in order"
        beats.append(item.data)
        self.times.setdefault("row", []).append(self.now)
        if len(beats) == self.beats:
            vector = values(beats, self.dimension)[None]
            _, state = self.store.read(np.array([key]))
            self.store.write(np.array([key]), vector, state)
        self.pending.append(self.now + self.rng.randint(1, 30) + self.written_late)

    def state(self, item) -> None:
        key = self.landings[item.record >> 32 & 0xFFFF]
        assert item.step == STEP and not item.record >> 48
        vector, _ = self.store.read(np.array([key]))
        new = np.array([item.record & 0xFFFFFFFF], np.uint32).view(np.float32)
        self.store.write(np.array([key]), vector, new)
        self.pending.append(self.now + self.rng.randint(1, 30) + self.written_late)

    async def acknowledge(self, ctx):
        while True:
            late = [when for when in self.pending if when <= self.now]
            for when in late:
                self.pending.remove(when)
            self.written += len(late)
            ctx.set(self.dut.written, self.written)
            await ctx.tick()

    def finished(self, step: int) -> None:
        assert not self.pending and not self.lookups and not self.asked, "done too early"
        self.done.append((step, len(self.rows)))

    async def watch(self, ctx):
        """Check that the block is inactive while idle, until an input changes."""
        dut, quiet, inputs = self.dut, False, None
        outs = [port.valid for port in self.outs()]
        ins = [signal for port in self.ins() for signal in (port.valid, port.ready)]
        while True:
            _, _, idle, written, *valids = await ctx.tick().sample(
                dut.idle, dut.written, *outs, *ins)
            if quiet or idle:
                assert not any(valids[:len(outs)]), "idle, and something comes"
            assert idle or not quiet, "moves by itself"
            offered, taken = valids[len(outs)::2], valids[len(outs) + 1::2]
            before, inputs = inputs, (offered, written)
            quiet = bool(idle) and inputs == before and not any(map(min, offered, taken))
            if offered[0] and taken[0]:
                self.times.setdefault("sum", []).append(self.now)

    def sums(self, part: Pass, step: int) -> list[dict]:
        items = []
        for key, gradient in zip(part.keys, part.gradients, strict=True):
            beats = [(k, beat) for k, beat in enumerate(words(gradient, self.beats))
                     if (key, k) not in part.absent]
            items += [{"key": {"row": key & (1 << ROW_BITS) - 1, "table": key >> ROW_BITS},
                       "beat": k, "step": step, "data": beat, "last": int(k == beats[-1][0])}
                      for k, beat in beats]
        return items


def run(world: World, steps: list[list[Pass]], limit: int = 20_000) -> dict[str, int]:
    """Update rows in steps of passes; check every row, state and report; return the counters.

    All steps have the number ``STEP``: the step of the records is checked.
    """
    dut, counters = world.dut, {}
    expected = RowStore(model_of(world.dimension), SEED)
    for part in (part for step in steps for part in step):
        gradients = part.gradients.copy()
        for key, beat in part.absent:
            gradients[part.keys.index(key), LANES * beat:LANES * (beat + 1)] = 0
        keys = np.array(part.keys, np.int64)
        new, state = world.optimizer.apply(*expected.read(keys), gradients)
        expected.write(keys, new, state)

    async def bench(ctx):
        rate, epsilon = (int(np.float32(x).view(np.uint32)) for x in (
            world.optimizer.learning_rate, world.optimizer.epsilon))
        for name, value in (
                ("mode", OptimizerMode.ROWWISE_ADAGRAD if world.adagrad else OptimizerMode.SGD),
                ("dimension", world.dimension), ("learning_rate", rate), ("epsilon", epsilon),
                ("vector_beats", world.beats)):
            ctx.set(getattr(dut, name), value)
        if world.settled:
            await ctx.tick().repeat(32)
            while not ctx.get(dut.idle):
                await ctx.tick()
        for number, step in enumerate(steps):
            assert not ctx.get(dut.frozen)
            begun, keys = False, [key for part in step for key in part.keys]
            await world.before(ctx, keys)
            for part in step:
                items = world.sums(part, STEP)
                await sender(dut.sums, items, stall=world.stall, seed=number)(ctx)
                await sender(dut.flushed, [{"step": STEP, "keys": len(part.keys),
                                            "passed": part.passed}])(ctx)
                begun = begun or bool(part.keys)
                assert ctx.get(dut.frozen) == bool(part.passed and begun), "until written"
            assert world.done[number:] == [(STEP, len(world.rows))]
            assert set(world.rows) == set(keys)
            world.rows.clear()
            await world.after(ctx, keys)
        world.bad_states = 0.0
        for _ in range(20):
            await ctx.tick()
        assert ctx.get(dut.idle)
        counters.update(counts_of(ctx, dut.counters))

    swift = isinstance(world.optimizer, SwiftHost)
    with mock.patch.object(updater, "RowOptimizer", Swift if swift else RowOptimizer):
        counters["cycles"] = simulate(powered_up(dut, world.seed), bench,
                                      background=world.background(), limit=limit)
    parts = [part for step in steps for part in step]
    assert world.reports == [(STEP, part.passed, StepKind.PASSED | 1 << 2) for part in parts]
    keys = sorted({key for part in parts for key in part.keys})
    for got, wanted in zip(world.store.read(np.array(keys, np.int64)),
                           expected.read(np.array(keys, np.int64)),
                           strict=True):
        np.testing.assert_array_equal(got.view(np.uint32), wanted.view(np.uint32))
    for key, slot in world.slot_of.items() if world.cache else ():
        assert world.cache[slot] == words(expected.read(np.array([key]))[0][0], world.beats)
    rows = sum(len(part.keys) for part in parts)
    assert counters["rows"] == rows
    if world.cache:
        assert counters["update_misses"] == sum(
            key not in world.slot_of for part in parts for key in part.keys)
    assert counters["states"] == (rows if world.adagrad else 0)
    assert counters["bad_states"] == world.bad
    assert world.written == rows * (world.beats + world.adagrad)
    return counters

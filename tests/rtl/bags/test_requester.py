"""The way of a bag at its requester: dispatched, sent, answered in any order, and pooled in order.

The blocks are connected as in the NIC. The test is the owner of all rows: it pools the bags that it
gets, from their words, and answers lookups for the remote cache.
"""

import random

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.bags.landing import BagLanding
from rtl.bags.layouts import OutgoingSegment, Segment
from rtl.bags.sender import BagSender
from rtl.config import preset
from rtl.formats import OutgoingRecord, PeerBeat, RecordKind, TaggedBeat
from rtl.interaction import HoldBuffer, PooledBeat, Pooler
from rtl.query import Dispatcher, slot_layout
from tests.rtl.bags.words import bag, segments_of
from tests.rtl.interaction.bags import pooled_beats, random_samples
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, sender, simulate

BEATS, MOST, NODE = 2, 176, 5


class Requester(wiring.Component):
    def __init__(self, config):
        self.config = config
        super().__init__({
            "slots": In(stream.Signature(slot_layout(True))),
            "segments": In(stream.Signature(Segment)),
            "lookups": Out(stream.Signature(OutgoingRecord)),
            "bags": Out(stream.Signature(OutgoingSegment)),
            "vectors": In(stream.Signature(PeerBeat)), "cached": In(stream.Signature(TaggedBeat)),
            "o": Out(stream.Signature(PooledBeat)), "mean": In(1), "by_table": In(1),
            "vector_beats": In(4),
            "idle": Out(1)})

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.dispatcher = dispatcher = Dispatcher(bags=True)
        m.submodules.sender = out = BagSender()
        m.submodules.landing = landing = BagLanding(config)
        m.submodules.hold = hold = HoldBuffer(config)
        m.submodules.pooler = pooler = Pooler(config, queue_beats=32)
        for source, sink in (
                (wiring.flipped(self.slots), dispatcher.i), (dispatcher.reserve, hold.reserve),
                (dispatcher.remote, wiring.flipped(self.lookups)), (dispatcher.bags, out.starts),
                (wiring.flipped(self.segments), out.segments), (landing.id, out.id),
                (out.o, wiring.flipped(self.bags)),
                (wiring.flipped(self.vectors), landing.vectors),
                (wiring.flipped(self.cached), landing.cached), (landing.o, hold.remote),
                (hold.o, pooler.i), (pooler.o, wiring.flipped(self.o))):
            wiring.connect(m, source, sink)
        for block in (hold, pooler):
            m.d.comb += block.vector_beats.eq(self.vector_beats)
        m.d.comb += [
            dispatcher.next_landing.eq(hold.next_landing), dispatcher.node.eq(NODE),
            landing.asked.eq(out.asked), pooler.mean.eq(self.mean),
            pooler.by_table.eq(self.by_table),
            self.idle.eq(dispatcher.idle & out.idle & landing.idle & hold.idle & pooler.idle)]
        return m


class Workload:
    """Samples of pooled bags, of bags of keys, and of empty bags.

    slots, segments: the input. owed: a bag's words behind its head, to its vector, which may have
    fewer beats than the vectors of keys. rows: a key's
    row to its vector. expected: the pooled vectors.

    mean: whether bags pool to their mean; None: as the table of each bag says.
    """

    def __init__(self, seed: int, mean: bool | None):
        rng = random.Random(seed)
        sizes = [[rng.choice((0, 1, 1, 2, 3)) for _ in range(rng.randrange(1, 8))]
                 for _ in range(16)]
        samples = random_samples(seed, sizes, BEATS, bits=True)
        self.slots, self.segments, self.rows, self.owed = [], [], {}, {}
        sums, means = (pooled_beats(samples, BEATS, mean=divides) for divides in (False, True))
        self.expected, number = [], 0
        for sample, step, bags in samples:
            for at, vectors in enumerate(bags):
                ends, of_table = at == len(bags) - 1, rng.getrandbits(1)
                divides = of_table if mean is None else mean
                self.expected += (means if divides else sums)[number * BEATS:(number + 1) * BEATS]
                plain = {"sample": sample, "step": step, "mine": 0, "bag": 0, "mean": of_table}
                if len(vectors) == 1 and rng.random() < 0.7:
                    size, vector = rng.randint(1, BEATS), vectors[0].copy()
                    vector[16 * size:] = 0
                    keys = self._add_bag(rng, vector[:16 * size])
                    self.slots.append(plain | {"final_beat": size - 1,
                        "key": {"row": keys, "table": 3}, "bag": 1,
                        "kind": int(RecordKind.KEY_END), "owner": rng.randrange(4),
                        "last": int(ends)})
                    bits = vector
                    if divides:
                        with np.errstate(all="ignore"):
                            total = vector.view(np.float32) / np.float32(keys)
                        bits = np.where(np.isnan(total), np.uint32(0x7FC00000),
                                        total.view(np.uint32))
                    for n, beat in enumerate(data_of(bits)):
                        self.expected[number * BEATS + n]["data"] = beat
                else:
                    self._add_keys(rng, vectors, plain, ends)
                number += 1

    def _add_bag(self, rng, vector) -> int:
        keys = rng.choice((1, 2, 15, 40, rng.randrange(1, 60)))
        words = bag(rng, keys, weighted=rng.random() < 0.3)
        self.owed[tuple(words[1:])] = vector
        self.segments += [item["segment"] for item in segments_of(words, 0, MOST)]
        return keys

    def _add_keys(self, rng, vectors, plain, ends) -> None:
        kinds = [RecordKind.KEY] * (len(vectors) - 1) + [RecordKind.KEY_END] if len(
            vectors) else [RecordKind.EMPTY]
        for n, kind in enumerate(kinds):
            row = rng.getrandbits(36)
            if kind != RecordKind.EMPTY:
                self.rows[row] = vectors[n]
            self.slots.append(plain | {
                "key": {"row": row, "table": 2}, "kind": int(kind), "owner": rng.randrange(4),
                "last": int(ends and n == len(kinds) - 1)})


def data_of(vector: np.ndarray) -> list[int]:
    return [int.from_bytes(beat.tobytes(), "little") for beat in vector.reshape(-1, 16)]


def words_of_bags(segments: list[dict]) -> list[tuple[list[int], int]]:
    """Return the words of each whole bag in ``segments``, and its destination."""
    bags, words = [], []
    for item in segments:
        segment = item["segment"]
        assert bool(words) != bool(segment["head"])
        words += [segment["words"] >> 64 * k & (1 << 64) - 1
                  for k in range(segment["first"], segment["first"] + segment["size"])]
        if segment["tail"]:
            assert len(words) == item["words"]
            bags.append((words, item["destination"]))
            words = []
    return bags


@pytest.mark.few(1, "thorough")
@pytest.mark.parametrize("mean, stall", [(None, 0.1), (False, 0.0), (True, 0.3)])
def test_bags_and_keys_are_pooled_in_slot_order(mean, stall):
    """Sixteen bags may wait, more follow; duplicates of their vectors change nothing."""
    dut = made(Requester, preset("tiny").with_fields(
        owner_bags=16, hold_vectors=32, max_dimension=16 * BEATS))
    load, rng = Workload(BEATS, mean), random.Random(4)
    sent, asked, taken = [], [], []

    async def setup(ctx):
        ctx.set(dut.vector_beats, BEATS)
        ctx.set(dut.mean, bool(mean))
        ctx.set(dut.by_table, mean is None)

    async def send(ctx, port, tag, vector, source=None):
        beats = data_of(vector)
        for n, beat in enumerate(beats):
            while rng.random() < stall:
                await ctx.tick()
            ctx.set(port.payload, {"tag": tag, "data": beat, "last": int(n == len(beats) - 1)} | (
                {} if source is None else {"source": source}))
            ctx.set(port.valid, 1)
            await ctx.tick().until(port.ready)
            ctx.set(port.valid, 0)

    async def answer_bags(ctx):
        await ctx.tick().until(dut.vectors.ready)
        seen, waiting = 0, []
        for left in range(len(load.owed), 0, -1):
            # Several bags wait at once, except in the end.
            while len(waiting) < min(left, rng.randrange(1, 17)):
                await ctx.tick().repeat(8)
                waiting += words_of_bags(sent)[seen:]
                seen = len(words_of_bags(sent))
                if rng.random() < 0.1 and waiting:
                    break
            (head, *rows), node = waiting.pop(rng.randrange(len(waiting)))
            for _ in range(rng.choice((1, 1, 2))):
                await send(ctx, dut.vectors, head >> 48, load.owed[tuple(rows)], node)

    async def answer_keys(ctx):
        answered = 0
        while answered < len(load.rows):
            await ctx.tick().repeat(rng.randrange(1, 12))
            batch = asked[answered:]
            answered += len(batch)
            rng.shuffle(batch)
            for lookup in batch:
                record = lookup["record"]
                await send(ctx, dut.cached, record >> 48, load.rows[record & (1 << 36) - 1])

    async def end(ctx):
        await receiver(dut.o, taken, len(load.expected), stall=stall)(ctx)
        await ctx.tick().repeat(40)
        assert ctx.get(dut.idle)

    simulate(powered_up(dut, 2), setup, end, answer_bags, answer_keys,
             sender(dut.slots, load.slots, stall=stall),
             sender(dut.segments, load.segments, stall=stall, seed=3),
             receiver(dut.lookups, asked, len(load.rows)),
             receiver(dut.bags, sent, len(load.segments)), limit=30_000)
    assert taken == load.expected
    assert len(load.owed) > 16 < len(load.rows)

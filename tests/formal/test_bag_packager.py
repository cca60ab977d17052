"""Proof of the packager of bags: each segment is stored once, unchanged, where the pool puts it;
each closed packet is sent once, with its words and its beats.

The parts behind the connections may do anything at any time: the pool takes and places a segment,
one at a time, and closes packets (``test_bag_pool``); the store (``test_word_store``), the credits
(``test_credits``) and the reader (``test_packet_reader``) have proofs of their own. The skid buffer
is a wire (``test_streams``). A beat has eight words of a bit.
"""

import pytest
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data

from rtl.bags.packager import BagPackager
from rtl.bags.pool import BagPool
from rtl.bags.word_store import WordStore
from rtl.formats import Opcode
from rtl.gateable import Gateable
from rtl.network.credits import CreditGate
from rtl.network.packager import Packager
from rtl.network.packet_reader import PacketReader
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.formal.wires import Wires
from tests.mutants import variant

NODES, BEATS, WORDS = 2, 5, 8
DEPTH = 8
"""Cycles searched for the fault of a mutant."""
_SEGMENT = data.StructLayout({
    "words": WORDS, "first": 3, "size": 4, "head": 1, "tail": 1, "keys": 2})
_ITEM = data.StructLayout({"segment": _SEGMENT, "destination": 1, "step": 1, "words": 6})


def any_part(part: type) -> type:
    """Return ``part`` without its logic; a bench drives its outputs."""

    class AnyPart(part):
        def elaborate(self, platform) -> Module:
            return Module()

    return AnyPart


def packaged(*edits: tuple[str, str], base: tuple[tuple[str, str], ...] = (),
             unreported: bool = False) -> Bench:
    """Return a bench of the connections between the parts.

    base: edits of the class that also packs records. unreported: a part of the window may stay
    unreported.
    """
    bench = Bench()
    m = bench.m
    own = variant(BagPackager, *edits, OutgoingSegment=_ITEM, BagPool=any_part(BagPool),
                  WordStore=any_part(WordStore))
    own.__bases__ = Gateable, variant(
        Packager, *base, SkidBuffer=Wires, BEAT_BITS=WORDS, CreditGate=any_part(CreditGate),
        PacketReader=any_part(PacketReader))
    dut = own(NODES, BEATS, Opcode.BAGS, True, most_bags=True, pauses=True, unreported=unreported)
    dut._MustUse__silence = True  # elaborated here, because statements refer to its parts
    m.submodules.dut = dut.elaborate(None)
    parts = m.submodules.dut.submodules
    pool, store, gate, reader = parts.pool, parts.store, parts.gate, parts.reader

    # A segment is inside the pool from when it is taken until it has its place.
    item, mine, inside = dut.i.payload, Signal(_ITEM), Signal()
    entered = bench.source(dut.i)
    taken = pool.take & pool.valid
    closed, sent = pool.closed.payload, reader.i.payload
    m.d.comb += [
        pool.ready.eq(inside & bench.free(name="placed")), pool.vacant.eq(~inside | pool.ready),
        pool.take.eq(pool.vacant & bench.free(name="takes")), pool.idle.eq(~inside),
        pool.buffer.eq(bench.free(len(pool.buffer), "buffer")),
        pool.position.eq(bench.free(len(pool.position), "position")),
        gate.o.valid.eq(gate.i.valid), gate.o.payload.eq(gate.i.payload),
        gate.i.ready.eq(gate.o.ready), gate.idle.eq(bench.free(name="gate_idle")),
        reader.i.ready.eq(bench.free(name="reads")), reader.idle.eq(bench.free(name="idle")),
        *(getattr(reader, name).eq(bench.free(len(getattr(reader, name)), name))
          for name in ("read_en", "read_buffer", "read_beat", "read_units")),
        store.data.eq(bench.free(WORDS, "data")), reader.freed.eq(
            bench.free(len(reader.freed.as_value()), "freed"))]
    packets = bench.source(pool.closed)
    with m.If(taken):
        m.d.sync += mine.eq(item)
    with m.If(taken | pool.ready):
        m.d.sync += inside.eq(taken)
    for name in ("batch", "moving", "waiting", "time", "timeout"):
        port, told = getattr(dut, name), getattr(pool, name)
        m.d.comb += port.eq(bench.free(len(port), name))
        bench.always(f"{name}_told", told == port)
    segment, kept = item.segment, mine.segment
    bench.always("once", taken == entered)
    bench.always("offered", ~pool.valid | (
        (pool.destination == item.destination) & (pool.step == item.step)
        & (pool.head == segment.head) & (pool.last == segment.tail) & (pool.size == segment.size)
        & (pool.words == item.words)))
    bench.always("stored", (store.write == pool.ready) & (~store.write | (
        (store.buffer == pool.buffer) & (store.position == pool.position)
        & (store.first == kept.first) & (store.size == kept.size)
        & (store.words[:WORDS] == kept.words))))

    # A packet has as many beats as its words need, and the pool as many words as the beats.
    bench.always("sent", (reader.i.valid & reader.i.ready) == packets)
    beats = (closed.positions + WORDS - 1) // WORDS
    bench.always("packet", ~reader.i.valid | (
        (sent.destination == closed.destination) & (sent.step == closed.step)
        & (sent.buffer == closed.buffer) & (sent.units == closed.positions)
        & (sent.beats == beats[:len(sent.beats)])))
    window, most = bench.constant(4, "window"), Signal(4)
    room = window - (window >> 2) if unreported else window
    started = Signal()
    m.d.sync += started.eq(1)
    m.d.comb += [dut.window.eq(window), most.eq(Mux(room < BEATS, room, BEATS))]
    bench.always("limit", ~started | (pool.limit == most * WORDS))
    bench.always("read", (store.read_en == reader.read_en) & (
        store.read_buffer == reader.read_buffer) & (store.read_beat == reader.read_beat)
        & (store.read_units == reader.read_units) & (reader.data[:WORDS] == store.data))
    bench.always("freed", pool.freed.as_value() == reader.freed.as_value())
    bench.always("idle", ~dut.idle | (~inside & ~dut.i.valid & gate.idle & reader.idle))
    return bench


@pytest.mark.parametrize("unreported", [False, True])
def test_bag_packager(unreported):
    verdict = prove(packaged(unreported=unreported))
    assert verdict.holds, verdict


@pytest.mark.parametrize("wrong, old, new", [
    ("offered", "pool.last.eq(segment.tail)", "pool.last.eq(segment.head)"),
    ("offered", "pool.size.eq(segment.size)", "pool.size.eq(offered.words)"),
    ("offered", "pool.words.eq(offered.words)", "pool.words.eq(segment.size)"),
    ("batch_told", "pool.batch.eq(self.batch)", "pool.batch.eq(0)"),
    ("moving_told", "pool.moving.eq(self.moving)", "pool.moving.eq(self.waiting)"),
    ("packet", "return place.positions", "return place.units"),
    ("packet", "(units + RECORDS_PER_BEAT - 1) >> 3", "(units + RECORDS_PER_BEAT) >> 3"),
    ("limit", "limit.eq(beats << 3)", "limit.eq(beats << 2)"),
    ("limit", "(window - (window >> 2))[:CREDIT_BITS] if self._unreported else window", "window"),
    ("stored", "store.write.eq(pool.ready)", "store.write.eq(pool.take)"),
    ("stored", "store.first.eq(segment.first)", "store.first.eq(0)"),
    ("stored", "store.position.eq(pool.position)", "store.position.eq(0)"),
    ("read", "store.read_units.eq(reader.read_units)", "store.read_units.eq(24)"),
], ids=["ends", "size", "words", "batch", "moving", "bags", "one-more", "half", "unreported",
        "too-soon", "first-word", "first-place", "all-words"])
def test_broken_bag_packager(wrong, old, new):
    verdict = prove(packaged((old, new), unreported=True), depth=DEPTH)
    assert wrong in verdict.broken, verdict


@pytest.mark.parametrize("wrong, old, new", [
    ("stored", "m.If(pool.vacant if values else pool.take)", "m.If(1)"),
    ("once", "source.o.ready.eq(pool.take)", "source.o.ready.eq(pool.vacant)"),
    ("sent", "pool.closed.ready.eq(gate_in.ready)", "pool.closed.ready.eq(1)"),
    ("packet", '("destination", "step", "buffer")', '("destination", "buffer")'),
    ("limit", "Mux(room < most, room, most)", "room"),
    ("freed", "pool.freed.eq(reader.freed)", "pool.freed.eq(0)"),
    ("idle", "source.idle & pool.idle & gate_idle", "source.idle & gate_idle"),
], ids=["always", "lost", "packet-lost", "no-step", "any-window", "never-freed",
        "idle-too-soon"])
def test_broken_connections(wrong, old, new):
    verdict = prove(packaged(base=((old, new),)), depth=DEPTH)
    assert wrong in verdict.broken, verdict

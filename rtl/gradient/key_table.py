"""Key table of gradient reduction: finds the entry of a beat's sum, or passes the beat on."""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.config import LANES
from rtl.formats import Key
from rtl.gradient.reducer_layouts import (
    beat_bits,
    key_line_layout,
    key_operation_layout,
    passed_beat_layout,
)
from rtl.keys.hashing import hash_bits
from rtl.keys.one_hot import any_of, number_of
from rtl.keys.set_loop import SetLoop
from rtl.stream import CreditQueue, StreamFIFO

__all__ = ["KeyTable", "key_addition_layout"]

QUEUE = 16
"""Beats in flight or waiting: each takes a place for 10 cycles."""


def key_addition_layout(keys: int, beats: int, lanes: int = LANES) -> data.StructLayout:
    """Layout of an addition to an entry.

    first: this beat of the entry was empty.
    made: all beats of the entry were empty; the entry is new.
    """
    return key_operation_layout(keys, beats, data.StructLayout({
        "data": 32 * lanes, "first": 1, "made": 1}))


class KeyTable(wiring.Component):
    """Find or make the entry of each beat's key, in order, one beat per cycle for any keys.

    A set stores its keys and the present beats of each key. Sets fill first come, first served, and
    only the walk removes keys. A beat is passed on if its set is full of other keys; all other
    beats of its key are then passed on too, until the sets are emptied.

    The pipeline never stalls (:class:`~rtl.keys.set_loop.SetLoop`). A beat enters once it has a
    place in the queue of operations; its values wait beside the queue.

    Parameters
    ----------
    keys, ways: number of keys, and keys per set; powers of two.
    beats: beats of the longest vector.
    lanes: float32 of a beat.

    Ports
    -----
    i: stream of :func:`passed_beat_layout`, ``beat`` below ``beats``; its ready is a register.
    o: stream of :func:`key_addition_layout`.
    passed: stream of :func:`passed_beat_layout`.
    walking, read, read_address, line: read access to the sets; only while ``walking`` and ``idle``.
        ``line`` is valid one cycle after ``read``, and stays. The key of a way without beats is
        arbitrary.
    enable: 0: find and make no entry, pass all beats on. May change while the sets are empty.
    clear, clear_address: empty a set; while ``walking`` and ``idle``, or after reset, when the
        contents are undefined.
    idle: no beat inside.
    """

    LATENCY = {("beat", "its operation"): SetLoop.LATENCY["lookup", "its result"]
               + CreditQueue.LATENCY["item", "the same item"]}
    RATE = "1 beat per cycle, whatever the keys"

    def __init__(self, keys: int, ways: int, beats: int, lanes: int = LANES):
        self._keys, self._ways, self._beats, self._lanes = keys, ways, beats, lanes
        self._sets = keys // ways
        address = max(1, ceil_log2(self._sets))
        super().__init__({
            "i": In(stream.Signature(passed_beat_layout(lanes))),
            "o": Out(stream.Signature(key_addition_layout(keys, beats, lanes))),
            "passed": Out(stream.Signature(passed_beat_layout(lanes))),
            "enable": In(1, init=1), "walking": In(1), "read": In(1), "read_address": In(address),
            "line": Out(key_line_layout(ways, beats)),
            "clear": In(1), "clear_address": In(address), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        ways, beats, sets = self._ways, self._beats, self._sets
        way_bits = ceil_log2(ways)
        operation = data.StructLayout({
            "key": Key.size, "slot": len(self.o.payload.slot), "beat": beat_bits(beats),
            "first": 1, "made": 1, "passing": 1})
        # Block RAM even for few sets: LUTs are scarce in a NIC that trains.
        m.submodules.loop = loop = SetLoop(
            Key.size, data.StructLayout({"beat": beat_bits(beats), "place": beats}), sets=sets,
            ways=ways, hash_key=hash_bits, way=beats, style="bram", walked=True)
        m.submodules.queue = queue = CreditQueue(operation, QUEUE)
        m.submodules.words = words = StreamFIFO(32 * self._lanes, QUEUE)
        # Values follow one cycle after their key, because ``enters`` is late.
        item, enters, entered = self.i.payload, Signal(), Signal()
        values = Signal(32 * self._lanes, reset_less=True)
        m.d.sync += [entered.eq(enters), values.eq(item.data)]
        m.d.comb += [
            self.i.ready.eq(queue.free), enters.eq(self.i.valid & queue.free),
            queue.reserve.eq(enters), words.i.valid.eq(entered), words.i.payload.eq(values),
            loop.i.valid.eq(enters), loop.i.key.eq(item.key), loop.i.looks.eq(1),
            loop.i.writes.eq(1), loop.i.context.beat.eq(item.beat),
            loop.i.context.place.eq(Cat(item.beat == n for n in range(beats))),
            loop.limit.eq(sets), loop.clear.eq(self.clear),
            loop.clear_address.eq(self.clear_address), loop.walking.eq(self.walking),
            loop.read.eq(self.read), loop.read_address.eq(self.read_address),
            self.idle.eq(~entered & words.idle),
        ]
        for way, key, present in zip(self.line.ways, loop.line.keys, loop.line.bits, strict=True):
            m.d.comb += [way.key.eq(key), way.present.eq(present)]

        # Decision. Ways are filled in ascending order.
        now, known, free, used = loop.now, Signal(), Signal(ways), Signal(ways)
        place, full = now.context.place, now.held | (~self.enable).replicate(ways)
        m.d.comb += [
            known.eq(now.match.any()), free.eq(~full & Cat(C(1, 1), full)[:ways]),
            used.eq(Mux(known, now.match, free)), loop.after.placed.eq(Mux(known, 0, free)),
            *(loop.after.bits[w].eq(now.bits[w] | Mux(used[w], place, 0)) for w in range(ways)),
        ]
        first = Signal(reset_less=True)
        m.d.sync += first.eq(~any_of(
            now.match[w] & (now.bits[w] & place).any() for w in range(ways)))

        found, way = queue.i.payload, Signal(way_bits)
        taken = loop.o.match | loop.o.placed
        m.d.comb += [
            way.eq(number_of(taken)), queue.i.valid.eq(loop.o.valid), found.key.eq(loop.o.key),
            found.slot.eq(Cat(way, loop.o.set[:ceil_log2(sets)])),
            found.beat.eq(loop.o.context.beat), found.first.eq(first),
            found.made.eq(loop.o.placed.any()), found.passing.eq(~taken.any()),
        ]

        # The decision, with the values.
        here, done = queue.o.payload, self.o.payload
        m.d.comb += [
            queue.o.ready.eq(Mux(here.passing, self.passed.ready, self.o.ready)),
            words.o.ready.eq(queue.o.valid & queue.o.ready),
            self.o.valid.eq(queue.o.valid & ~here.passing),
            self.passed.valid.eq(queue.o.valid & here.passing),
            done.slot.eq(here.slot), done.beat.eq(here.beat), done.payload.first.eq(here.first),
            done.payload.made.eq(here.made), done.payload.data.eq(words.o.payload),
            Cat(self.passed.payload.key).eq(here.key), self.passed.payload.beat.eq(here.beat),
            self.passed.payload.data.eq(words.o.payload),
        ]
        return m

"""Partial buffer: holds the beats of partials that are sent ahead, records apart from values."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS
from rtl.formats import NODE_BITS, RECORD_BITS, RECORDS_PER_BEAT, STEP_BITS
from rtl.gradient.partial_layouts import PartialItem
from rtl.memory import Ram, sweep
from rtl.monitor.counters import CounterLayout, count
from rtl.network.layouts import CountedBeat, FreedBeats
from rtl.stream import SkidBuffer, StreamFIFO

__all__ = ["PARTIAL_BUFFER_COUNTERS", "PartialBuffer"]

PARTIAL_BUFFER_COUNTERS = CounterLayout("packets", "beats", "over_credit")

_URAM = 2048
"""Least beats of a buffer in UltraRAM."""

_Beat = data.StructLayout({
    "data": BEAT_BITS, "records": 4, "source": NODE_BITS, "step": STEP_BITS, "beats": 8,
    "final": 1})
"""A beat of records of a packet of ``beats`` beats; ``final``: values follow."""


class PartialBuffer(wiring.Component):
    """Hold the packets that were sent against credits; output their records one by one, and values.

    Records and values wait separately, so that a partial leaves in each cycle although a packet's
    records come before all of its values. A packet is admitted whole or not at all: its source's
    beats here, with it, must not exceed ``share``, and all beats must not exceed ``depth``. A
    sender that keeps to its credits always fits; other packets are dropped and counted.

    Latency and rate: see ``LATENCY`` and ``RATE``.

    Parameters: ``sources``, the number of senders, told apart by the number in the beats, which is
    ignored if there is only 1. ``depth``, beats that all sources together may send ahead.

    Ports
    -----
    i: stream of :data:`rtl.network.layouts.CountedBeat`: in each packet the beats of records that
        its count requires, then of values, which the parser checks. Always ready once the counts
        are cleared, ``sources`` cycles after reset.
    items: stream of :data:`~rtl.gradient.partial_layouts.PartialItem`.
    values: stream of beats of values as received.
    share: beats that a source may have here (more than one source only).
    vector_packing: log2 of the values that share a beat, 0 to 2; may change while idle.
    freed: event :data:`rtl.network.layouts.FreedBeats`, the beats of a packet whose last value has
        left; they make room from the next cycle on.
    refused: beats of a packet that is not admitted, in the cycle in which it is dropped, else 0.
    counters: ``packets`` admitted and their ``beats``; packets ``over_credit``. idle.

    Raises ``TypeError`` or ``ValueError`` for a parameter of the wrong kind or size.
    """

    LATENCY = {
        ("beat behind one of records", "first record of that"): 3,
        ("beat of values", "the same beat"): 3,
    }
    RATE = "1 beat per cycle in, 1 record and 1 beat of values per cycle out"

    def __init__(self, sources: int, depth: int):
        for name, value, low, high in (("sources", sources, 1, 1 << NODE_BITS),
                                       ("depth", depth, 4, 1 << 15)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be an integer, not {value!r}")
            if not low <= value <= high:
                raise ValueError(f"{name} must be between {low} and {high}, not {value!r}")
        self._sources, self._depth = sources, depth
        super().__init__({
            "i": In(stream.Signature(CountedBeat)), "items": Out(stream.Signature(PartialItem)),
            "values": Out(stream.Signature(BEAT_BITS)),
            "vector_packing": In(2), "freed": In(FreedBeats), "refused": Out(8),
            "counters": Out(PARTIAL_BUFFER_COUNTERS), "idle": Out(1),
        } | ({"share": In(16)} if sources > 1 else {}))

    def elaborate(self, platform) -> Module:
        m = Module()
        style = "uram" if self._depth >= _URAM else None
        # Each record has a value, or a share of one, so at most half of the beats are records.
        m.submodules.records = records = StreamFIFO(_Beat, self._depth // 2, style=style)
        m.submodules.values = values = StreamFIFO(BEAT_BITS, self._depth, style=style)
        wiring.connect(m, values.o, wiring.flipped(self.values))

        # The beat as received, and the beats of its packet, valid on the first.
        given, beat, come = self.i.payload, Signal(CountedBeat), Signal()
        needed, rest, ready = Signal(8), Signal(2), Signal()
        shared = self.vector_packing
        m.d.sync += rest.eq(Cat(shared.any(), shared[1]))
        m.d.comb += self.i.ready.eq(ready)
        with m.If(self.i.valid & ready):
            m.d.sync += [
                beat.eq(given), come.eq(1),
                needed.eq(((given.count + RECORDS_PER_BEAT - 1) >> 3)
                          + ((given.count + rest) >> shared)),
            ]
        # A beat of records waits for the next beat, to know whether it is the final one.
        of_records, leave = Signal(), Signal()
        m.d.comb += [
            of_records.eq(beat.beat.records != 0),
            leave.eq(come & (~of_records | beat.beat.last | self.i.valid)),
        ]
        with m.If(leave & ~self.i.valid):
            m.d.sync += come.eq(0)

        first, admitted, length = Signal(init=1), Signal(), Signal(8)
        room, admit, packet = Signal(), Signal(), Signal(8)
        m.d.comb += [
            admit.eq(Mux(first, room, admitted)), packet.eq(Mux(first, needed, length)),
            records.i.valid.eq(leave & admit & of_records),
            *(records.i.payload[name].eq(beat.beat[name])
              for name in ("data", "records", "source", "step")),
            records.i.payload.beats.eq(packet),
            records.i.payload.final.eq(beat.beat.last | (given.beat.records == 0)),
            values.i.valid.eq(leave & admit & ~of_records), values.i.payload.eq(beat.beat.data),
        ]
        with m.If(leave):
            m.d.sync += [first.eq(beat.beat.last), admitted.eq(admit), length.eq(packet)]

        self._count_shares(m, beat.beat.source, needed, leave & first & admit, room, ready)
        m.submodules.buffer = buffer = self._serialise(m, records.o)
        m.d.comb += self.refused.eq(Mux(leave & first & ~admit, needed, 0))
        count(m, self.counters, packets=leave & first & admit, beats=leave & admit,
              over_credit=leave & first & ~admit)
        m.d.comb += self.idle.eq(ready & ~come & records.idle & values.idle & buffer.idle)
        return m

    def _count_shares(self, m: Module, source, needed, taken, room, ready) -> None:
        """Count the beats here, in total and by source; compute whether a packet has ``room``."""
        inside = Signal(range(self._depth + 1))
        freed = Mux(self.freed.valid, self.freed.beats, 0)
        m.d.sync += inside.eq(inside + Mux(taken, needed, 0) - freed)
        fits = inside <= self._depth - needed
        if self._sources == 1:
            m.d.comb += [ready.eq(1), room.eq(fits)]
            return
        # Beats that came in and went out of each, mod 2^16; three memories, since both ends read.
        came, gone, gone_copy = (Ram(16, self._sources, latency=0) for _ in range(3))
        m.submodules += [came, gone, gone_copy]
        address, swept = sweep(m, self._sources)
        here = (came.read_data - gone_copy.read_data)[:16]
        m.d.comb += [
            ready.eq(swept),
            room.eq(fits & (here <= self.share - needed)),
            came.read_addr.eq(source), gone_copy.read_addr.eq(source),
            gone.read_addr.eq(self.freed.node),
            came.write_en.eq(taken | ~swept), came.write_addr.eq(Mux(swept, source, address)),
            came.write_data.eq(Mux(swept, came.read_data + needed, 0)),
        ]
        for ram in (gone, gone_copy):
            m.d.comb += [
                ram.write_en.eq(self.freed.valid | ~swept),
                ram.write_addr.eq(Mux(swept, self.freed.node, address)),
                ram.write_data.eq(Mux(swept, gone.read_data + self.freed.beats, 0)),
            ]
        m.d.comb += [ram.read_en.eq(1) for ram in (came, gone, gone_copy)]

    def _serialise(self, m: Module, records) -> SkidBuffer:
        """Output the records of beats, lowest first; return the buffer that they leave by."""
        buffer = SkidBuffer(PartialItem)
        wiring.connect(m, buffer.o, wiring.flipped(self.items))
        beat, item = records.payload, buffer.i.payload
        index, final = Signal(range(RECORDS_PER_BEAT)), Signal()
        m.d.comb += [
            final.eq(index + 1 == beat.records),
            item.record.eq(beat.data.word_select(index, RECORD_BITS)),
            *(item[name].eq(beat[name]) for name in ("source", "step", "beats")),
            item.last.eq(final & beat.final),
            buffer.i.valid.eq(records.valid), records.ready.eq(buffer.i.ready & final),
        ]
        with m.If(records.valid & buffer.i.ready):
            m.d.sync += index.eq(Mux(final, 0, index + 1))
        return buffer

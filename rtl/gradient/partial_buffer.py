"""Partial buffer: stores beats of partials that are sent ahead, records apart from values."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS
from rtl.formats import NODE_BITS, STEP_BITS
from rtl.gradient.partial_layouts import PartialItem
from rtl.memory import Ram, sweep
from rtl.monitor.counters import CounterLayout, count
from rtl.network.layouts import CountedBeat, FreedBeats
from rtl.network.record_split import RecordSplit, records_layout
from rtl.network.sums import partial_beats
from rtl.stream import StreamFIFO

__all__ = ["PARTIAL_BUFFER_COUNTERS", "PartialBuffer"]

PARTIAL_BUFFER_COUNTERS = CounterLayout("packets", "beats", "over_credit")

_URAM = 2048
"""Smallest depth of a buffer in UltraRAM."""

_User = data.StructLayout({"source": NODE_BITS, "step": STEP_BITS, "beats": 8, "final": 1})
"""Data of a beat of records of a packet of ``beats`` beats; ``final``: values follow."""


class PartialBuffer(wiring.Component):
    """Store the packets that were sent against credits; output their records one by one, and
    values.

    Records and values wait separately, so one partial leaves per cycle although all records of a
    packet arrive before its values. A packet is admitted whole or not at all. With it, the beats of
    its source must not exceed ``share``, and all beats must not exceed ``depth``. A sender that
    respects its credits always has room; other packets are dropped and counted. The order of
    packets is kept.

    Parameters
    ----------
    sources: number of senders, identified by the number in the beats; with 1, the number is
        ignored.
    depth: beats that all sources together may send ahead.

    Ports
    -----
    i: stream of :data:`rtl.network.layouts.CountedBeat`. Each packet has as many beats of records
        as its count requires, then beats of values, at least one of each; the parser checks this.
        Always ready after the sweep of the counts, ``sources`` cycles after reset.
    items: stream of :data:`~rtl.gradient.partial_layouts.PartialItem`.
    values: stream of beats of values as received.
    share: beats that a source may have in the buffer (with several sources only).
    vector_packing: log2 of the values that share a beat, 0 to 2; may change while idle.
    freed: event :data:`rtl.network.layouts.FreedBeats`: the beats of a packet whose last value has
        left; they make room from the next cycle on.
    refused: beats of a dropped packet, in the cycle after the drop, else 0.
    counters: ``packets`` admitted and their ``beats``; packets ``over_credit``.
    idle: inactive until an input changes.

    Raises ``TypeError`` or ``ValueError`` for a parameter of the wrong type or size.
    """

    LATENCY = {
        ("beat behind one of records", "first record of that"): 4,
        ("beat of values", "the same beat"): 4,
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
        # Each record has a value or a share of a value beat, so at most half of the beats are
        # records.
        m.submodules.records = records = StreamFIFO(
            records_layout(_User), self._depth // 2, style=style)
        m.submodules.values = values = StreamFIFO(BEAT_BITS, self._depth, style=style)
        wiring.connect(m, values.o, wiring.flipped(self.values))

        # The input beat and the number of beats of its packet, valid on the first beat; then the
        # previous beat. A beat of records waits for the next beat, which shows whether it is the
        # final one.
        given, coming, come = self.i.payload, Signal(CountedBeat, reset_less=True), Signal()
        coming_needed, needed = Signal(8, reset_less=True), Signal(8, reset_less=True)
        beat, here = Signal(CountedBeat, reset_less=True), Signal()
        ready = Signal()
        # The inverse of ``come``, to split its load.
        gap = Signal(init=1)
        m.d.sync += [
            come.eq(self.i.valid & ready), gap.eq(~(self.i.valid & ready)), coming.eq(given),
            coming_needed.eq(partial_beats(given.count, self.vector_packing)),
        ]
        stored, of_records, leave = records.i.payload, Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(ready),
            leave.eq(here & (~of_records | beat.beat.last | ~gap)),
        ]
        with m.If(come):
            m.d.sync += [here.eq(1), beat.eq(coming), needed.eq(coming_needed),
                         of_records.eq(coming.beat.records != 0)]
        with m.Elif(leave):
            m.d.sync += here.eq(0)

        first, admitted, length = Signal(init=1), Signal(), Signal(8)
        room, admit, packet = Signal(), Signal(), Signal(8)
        m.d.comb += [
            admit.eq(Mux(first, room, admitted)), packet.eq(Mux(first, needed, length)),
            records.i.valid.eq(leave & admit & of_records),
            *(stored[name].eq(beat.beat[name]) for name in ("data", "records")),
            *(stored.user[name].eq(beat.beat[name]) for name in ("source", "step")),
            stored.user.beats.eq(packet),
            stored.user.final.eq(beat.beat.last | (coming.beat.records == 0)),
            values.i.valid.eq(leave & admit & ~of_records), values.i.payload.eq(beat.beat.data),
        ]
        with m.If(leave):
            m.d.sync += [first.eq(beat.beat.last), admitted.eq(admit), length.eq(packet)]

        self._count_shares(m, coming.beat.source, coming_needed, come, beat.beat.source, needed,
                           leave & first & admit, room, ready)
        m.submodules.split = split = RecordSplit(_User)
        wiring.connect(m, records.o, split.i)
        left, item = split.o.payload, self.items.payload
        m.d.comb += [
            self.items.valid.eq(split.o.valid), split.o.ready.eq(self.items.ready),
            item.record.eq(left.record), item.last.eq(left.last & left.user.final),
            *(item[name].eq(left.user[name]) for name in ("source", "step", "beats")),
        ]
        m.d.sync += self.refused.eq(Mux(leave & first & ~admit, needed, 0))
        count(m, self.counters, packets=leave & first & admit, beats=leave & admit,
              over_credit=leave & first & ~admit)
        m.d.comb += self.idle.eq(ready & ~come & ~here & ~self.refused.any() & records.idle
                             & values.idle & split.idle)
        return m

    def _count_shares(self, m: Module, coming, wanted, come, source, needed, taken, room,
                      ready) -> None:
        """Count the beats in the buffer, in total and by source. Compute whether a packet of
        ``wanted`` beats that is ``coming`` has ``room``, valid from the next cycle until the next
        packet.

        Packets have at least two beats, so the previous packet has been counted.
        """
        inside = Signal(range(self._depth + 1))
        freed = Mux(self.freed.valid, self.freed.beats, 0)
        m.d.sync += inside.eq(inside + Mux(taken, needed, 0) - freed)
        fits = inside <= self._depth - wanted
        if self._sources == 1:
            m.d.comb += ready.eq(1)
            with m.If(come):
                m.d.sync += room.eq(fits)
            return
        # Beats in and out per source, mod 2^16. The beats out are stored twice, because both ends
        # read them.
        came, gone, gone_copy = (Ram(16, self._sources, latency=0) for _ in range(3))
        m.submodules += [came, gone, gone_copy]
        address, swept = sweep(m, self._sources)
        before = Signal(16, reset_less=True)
        in_depth, in_share = Signal(), Signal()
        here = (came.read_data - gone_copy.read_data)[:16]
        with m.If(come):
            m.d.sync += [before.eq(came.read_data), in_depth.eq(fits),
                         in_share.eq(here <= self.share - wanted)]
        m.d.comb += [
            ready.eq(swept), room.eq(in_depth & in_share),
            came.read_addr.eq(coming), gone_copy.read_addr.eq(coming),
            gone.read_addr.eq(self.freed.node),
            came.write_en.eq(taken | ~swept), came.write_addr.eq(Mux(swept, source, address)),
            came.write_data.eq(Mux(swept, before + needed, 0)),
        ]
        for ram in (gone, gone_copy):
            m.d.comb += [
                ram.write_en.eq(self.freed.valid | ~swept),
                ram.write_addr.eq(Mux(swept, self.freed.node, address)),
                ram.write_data.eq(Mux(swept, gone.read_data + self.freed.beats, 0)),
            ]
        m.d.comb += [ram.read_en.eq(1) for ram in (came, gone, gone_copy)]

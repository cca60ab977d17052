"""Bag unpacker: buffers query beats from the host, and outputs their records and segments."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.bags.layouts import split_beat, split_item
from rtl.bags.splitter import SegmentSplit
from rtl.formats import CREDIT_BITS, STEP_BITS, RecordBeat
from rtl.stream import StreamFIFO

__all__ = ["BagUnpacker", "QueryUser"]

QueryUser = data.StructLayout({"step": STEP_BITS, "gap": 1, "marker": 1})
"""Data beside an item. gap: beats before it were dropped. marker: a gap without an item, whose
``step`` is that of the dropped packet."""


class BagUnpacker(wiring.Component):
    """The :class:`rtl.query.QueryUnpacker` of a NIC with bags that pool at their owner.

    A packet of which a beat was dropped continues at an unknown word of an item. Therefore the
    unpacker drops the rest of that packet too.

    Parameters: ``beats``, beats of the buffer; ``most``, words of the longest bag.

    Ports
    -----
    i: stream of :data:`rtl.formats.RecordBeat`; always ready.
    o: stream of :func:`rtl.bags.layouts.split_item` with :data:`QueryUser`.
    consumed: beats whose items have all left, modulo 2^16: the credit of the host.
    dropped: a beat is dropped in this cycle.
    idle: no item and no marker inside.
    """

    LATENCY = {("beat", "its first item"): (
        StreamFIFO.LATENCY["item", "the same item"] + SegmentSplit.LATENCY["beat", "its first item"]
    )}
    RATE = "1 item per cycle"

    def __init__(self, beats: int, most: int):
        self._fifo = StreamFIFO(split_beat(QueryUser), beats)
        self._split = SegmentSplit(QueryUser, most)
        super().__init__({
            "i": In(stream.Signature(RecordBeat)),
            "o": Out(stream.Signature(split_item(QueryUser))),
            "consumed": Out(CREDIT_BITS), "dropped": Out(1), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.fifo, m.submodules.split = fifo, split = self._fifo, self._split
        beat, found = self.i.payload, split.o.payload
        # gap: to be reported. broken: since a dropped beat, no beat was kept. torn: in the packet
        # of a dropped beat.
        gap, broken, torn, marker, move = (
            Signal(name=name) for name in ("gap", "broken", "torn", "marker", "move"))
        lost_step, marked = (Signal(STEP_BITS, reset_less=True, name=name)
                             for name in ("lost_step", "marked"))  # marked: of the marker
        m.d.comb += [
            self.i.ready.eq(1), fifo.i.valid.eq(self.i.valid & ~torn),
            *(fifo.i.payload[name].eq(beat[name]) for name in ("data", "records", "last")),
            fifo.i.payload.fresh.eq(broken), fifo.i.payload.user.step.eq(beat.step),
            self.dropped.eq(self.i.valid & (torn | ~fifo.i.ready)),
            # With the buffer empty, the gap becomes a marker, a beat of its own, before any later
            # beat.
            move.eq(gap & fifo.idle & ~marker),
            fifo.i.payload.user.gap.eq(gap & ~move),
            split.i.payload.eq(fifo.o.payload), split.i.valid.eq(fifo.o.valid | marker),
            fifo.o.ready.eq(split.i.ready & ~marker),
            self.o.payload.eq(found), self.o.valid.eq(split.o.valid),
            self.o.payload.user.gap.eq(found.user.gap & (found.segment.first == 0)),
            split.o.ready.eq(self.o.ready),
            self.idle.eq(fifo.idle & split.idle & ~gap & ~marker),
        ]
        with m.If(marker):
            into = split.i.payload
            m.d.comb += [into.records.eq(1), into.last.eq(1), into.fresh.eq(1),
                         into.user.step.eq(marked), into.user.gap.eq(1), into.user.marker.eq(1)]
        with m.If(split.o.valid & self.o.ready & found.beat_last & ~found.user.marker):
            m.d.sync += self.consumed.eq(self.consumed + 1)
        with m.If(split.i.ready):
            m.d.sync += marker.eq(0)
        with m.If(self.i.valid):
            m.d.sync += [torn.eq(self.dropped & ~beat.last), broken.eq(self.dropped)]
        with m.If(move):
            m.d.sync += [marker.eq(1), gap.eq(0), marked.eq(lost_step)]
        with m.Elif(self.i.valid & ~torn):
            m.d.sync += gap.eq(self.dropped)
        with m.If(self.dropped):
            m.d.sync += lost_step.eq(beat.step)
        return m

"""Repeat reader: reads repeated packets from the pool."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS
from rtl.formats import RawBeat
from rtl.network.link.layouts import LinkedFrame
from rtl.network.link.packets import HEADER_FIELDS, Repeat
from rtl.stream import CreditQueue

__all__ = ["RepeatReader"]

QUEUE = 8
"""Beats in flight from the pool: cycles from a read until its place is free again."""


class RepeatReader(wiring.Component):
    """Send a packet again: its header, and the beats of its chain.

    Parameters
    ----------
    beats: beats of the pool.
    most: most beats of a packet.

    Ports
    -----
    i: stream of :func:`rtl.network.link.packets.Repeat`.
    headers, payload: streams of :data:`rtl.network.link.layouts.LinkedFrame`, without
        acknowledgement and credit, and :data:`rtl.formats.RawBeat`.
    read, follow, first, read_data: read access to a :class:`rtl.network.link.frame_pool.FramePool`.
    holds, held: the packet with first beat ``held`` has unread beats.
    idle: inactive until an input changes.
    """

    LATENCY = {("packet", "its header"): 1, ("packet", "its first beat"): 5}
    RATE = "a packet of n beats in n + 2 cycles"

    def __init__(self, beats: int, most: int):
        self._repeat = Repeat(beats, most)
        super().__init__({
            "i": In(stream.Signature(self._repeat)),
            "headers": Out(stream.Signature(LinkedFrame)),
            "payload": Out(stream.Signature(RawBeat)),
            "read": Out(1), "follow": Out(1), "first": Out(range(beats)),
            "read_data": In(BEAT_BITS), "holds": Out(1), "held": Out(range(beats)),
            "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.queue = queue = CreditQueue(RawBeat, QUEUE, style="lutram")
        wiring.connect(m, queue.o, wiring.flipped(self.payload))
        item, heading, reading = Signal(self._repeat, reset_less=True), Signal(), Signal()
        left = Signal.like(item.record.beats, reset_less=True)
        header, last = self.headers.payload, Signal()
        m.d.comb += [
            self.i.ready.eq(~heading & ~reading),
            self.headers.valid.eq(heading), header.destination.eq(item.node),
            header.sequence.eq(item.sequence),
            *(header[name].eq(item.record[name]) for name in HEADER_FIELDS),
            self.first.eq(item.first), last.eq(left == 1),
            self.read.eq(reading & queue.free), queue.reserve.eq(self.read),
            self.holds.eq(heading | reading), self.held.eq(item.first),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [
                item.eq(self.i.payload), heading.eq(1), reading.eq(~self.i.payload.record.empty),
                left.eq(self.i.payload.record.beats), self.follow.eq(0)]
        with m.If(self.headers.ready):
            m.d.sync += heading.eq(0)
        with m.If(self.read):
            m.d.sync += [left.eq(left - 1), reading.eq(~last), self.follow.eq(1)]
        there, ends = Signal(2), Signal(2)
        m.d.sync += [there.eq(Cat(self.read, there)), ends.eq(Cat(last, ends))]
        m.d.comb += [
            queue.i.valid.eq(there[1]), queue.i.payload.last.eq(ends[1]),
            queue.i.payload.data.eq(self.read_data),
            self.idle.eq(~heading & ~reading & ~there.any() & queue.idle),
        ]
        return m

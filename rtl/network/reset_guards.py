"""Guards at the edges of a NIC: whole packets pass, even if a reset hits in the middle of one.

Both guards survive the reset of the blocks behind them: their registers have no reset and begin
with their initial values at power-up.
"""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import BEAT_BYTES, Beat

__all__ = ["HeadGuard", "TailGuard"]

_BYTES_BITS = 16


class TailGuard(wiring.Component):
    """Completes a packet that a reset of its source has cut off.

    The missing beats follow up to the length that the packet announced with its first beat. Every
    bit of their data and ``keep`` is 1, and the last one has ``last``. The last beat of a packet
    that was cut is therefore all ones: invalid records, and vectors of NaN. On the network, the
    CRC-32C of the packet is wrong too.

    A beat that waits for ``ready`` when ``hold`` rises is replaced. A shell therefore has a
    register stage without reset behind this block.

    Latency and rate: see ``LATENCY`` and ``RATE``.

    Ports
    -----
    i, o: streams of :data:`rtl.formats.Beat`, in whole beats.
    i_bytes, o_bytes: length of the packet whose beat ``i`` or ``o`` offers.
    hold: the source is in reset, a register; what it offers is ignored.
    idle: no packet to complete.
    """

    LATENCY = {("beat", "the same beat"): 0}
    RATE = "1 beat per cycle"

    def __init__(self):
        super().__init__({
            "i": In(stream.Signature(Beat)), "o": Out(stream.Signature(Beat)),
            "i_bytes": In(_BYTES_BITS), "o_bytes": Out(_BYTES_BITS), "hold": In(1),
            "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        # A packet has begun; it was cut; its next beat is the last one.
        inside, cut, final = (Signal(reset_less=True, name=name)
                              for name in ("inside", "cut", "final"))
        length = Signal(_BYTES_BITS, reset_less=True)
        beats = self.i_bytes // BEAT_BYTES
        left = Signal.like(beats, reset_less=True)
        goes_on = Signal()
        given, beat = self.i.payload, self.o.payload
        m.d.comb += [
            self.o.valid.eq(cut | (self.i.valid & ~self.hold)),
            self.i.ready.eq(self.o.ready & ~cut & ~self.hold),
            beat.data.eq(given.data | cut.replicate(len(given.data))),
            beat.keep.eq(given.keep | cut.replicate(len(given.keep))),
            beat.last.eq(Mux(cut, final, given.last)), beat.err.eq(given.err & ~cut),
            self.o_bytes.eq(Mux(cut, length, self.i_bytes)),
            goes_on.eq(inside), self.idle.eq(~cut),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.comb += goes_on.eq(~beat.last)
            with m.If(inside):
                m.d.sync += [left.eq(left - 1), final.eq(left == 2)]
            with m.Else():
                m.d.sync += [left.eq(beats - 1), final.eq(beats == 2), length.eq(self.i_bytes)]
        m.d.sync += [inside.eq(goes_on), cut.eq(goes_on & (cut | self.hold))]
        return m


class HeadGuard(wiring.Component):
    """Drops the rest of a packet whose beginning a reset of the sink has swallowed.

    The next whole packet passes. Nothing is taken while ``hold`` is 1.

    Latency and rate: see ``LATENCY`` and ``RATE``.

    Ports
    -----
    i, o: streams of :data:`rtl.formats.Beat`.
    hold: the sink is in reset, a register; 1 for 2 cycles or more.
    cut: event: the rest of a packet has been dropped.
    idle: no rest to drop.
    """

    LATENCY = {("beat", "the same beat"): 0}
    RATE = "1 beat per cycle"

    def __init__(self):
        super().__init__({
            "i": In(stream.Signature(Beat)), "o": Out(stream.Signature(Beat)), "hold": In(1),
            "cut": Out(1), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        # A packet has begun; a reset has swallowed its beginning.
        inside, rest = (Signal(reset_less=True, name=name) for name in ("inside", "rest"))
        last = Signal()
        m.d.comb += [
            self.o.payload.eq(self.i.payload), self.o.valid.eq(self.i.valid & ~rest & ~self.hold),
            self.i.ready.eq((self.o.ready | rest) & ~self.hold),
            last.eq(self.i.payload.last), self.idle.eq(~rest),
            self.cut.eq(rest & self.i.valid & self.i.ready & last),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [inside.eq(~last), rest.eq(rest & ~last)]
        with m.Elif(self.hold):
            m.d.sync += rest.eq(inside)
        return m

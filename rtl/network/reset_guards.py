"""Guards at the edges of a NIC: only whole packets pass, even if a reset hits inside a packet.

Both guards survive the reset of the blocks behind them: their registers have no reset and get their
initial values at power-up.
"""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import BEAT_BYTES, Beat

__all__ = ["HeadGuard", "TailGuard"]

_BYTES_BITS = 16


class TailGuard(wiring.Component):
    """Complete a packet that a reset of its source has cut off.

    The missing beats follow, up to the length announced with the first beat of the packet. Every
    bit of their data and ``keep`` is 1; the last one has ``last``. The last beat of a cut packet is
    therefore all ones, which means invalid records and vectors of NaN. On the network, the CRC-32C
    of the packet is wrong too.

    A beat that waits for ``ready`` when ``hold`` rises is replaced. A shell therefore has a
    register stage without reset behind this block.

    Ports
    -----
    i, o: streams of :data:`rtl.formats.Beat`, in whole beats.
    i_bytes, o_bytes: length of the packet of the beat at ``i`` or ``o``.
    hold: the source is in reset, a register; ``i`` is ignored.
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
        # Flags: inside a packet; the packet was cut; the next beat is the last one.
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
    """Drop the rest of a packet whose beginning was lost in a reset of the sink.

    The next whole packet passes. ``i`` is not ready while ``hold`` is 1.

    Ports
    -----
    i, o: streams of :data:`rtl.formats.Beat`.
    hold: the sink is in reset, a register; 1 for at least 2 cycles.
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
        # Flags: inside a packet; its beginning was lost in a reset.
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

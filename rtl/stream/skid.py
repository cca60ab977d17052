"""Skid buffer: a register stage for a stream that cuts paths in both directions."""

from amaranth.hdl import Module, Shape, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["SkidBuffer"]


class SkidBuffer(wiring.Component):
    """Two-entry buffer with registered ``valid``, ``payload`` and ``ready``.

    Latency 1 cycle, throughput 1 item per cycle.

    Ports: ``i`` and ``o``, streams of ``shape``; ``idle``.
    """

    def __init__(self, shape):
        self._shape = shape
        super().__init__({
            "i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        bits = Shape.cast(self._shape).width
        held, front = Signal(bits), Signal(bits)
        held_valid, front_valid = Signal(), Signal()
        incoming = Signal(bits)
        m.d.comb += [
            incoming.eq(self.i.payload),
            self.i.ready.eq(~held_valid),
            self.o.valid.eq(front_valid),
            self.o.payload.eq(front),
            self.idle.eq(~front_valid & ~held_valid),
        ]
        with m.If(self.o.ready | ~front_valid):
            with m.If(held_valid):
                m.d.sync += [front.eq(held), held_valid.eq(0), front_valid.eq(1)]
            with m.Else():
                m.d.sync += [front.eq(incoming), front_valid.eq(self.i.valid)]
        with m.Elif(self.i.valid & ~held_valid):
            m.d.sync += [held.eq(incoming), held_valid.eq(1)]
        return m

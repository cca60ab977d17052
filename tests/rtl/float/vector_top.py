"""Sixteen adders behind streams: what a compiled engine runs."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS, LANES
from rtl.float import FLOAT_ADDER_LATENCY, FloatAdder
from rtl.shared import Shared
from rtl.stream import StreamFIFO

__all__ = ["AdderTop"]


class AdderTop(wiring.Component):
    """``o`` = ``i.a`` + ``i.b``, lane by lane, or ``i.a`` where ``i.keep`` is 1."""

    i: In(stream.Signature(data.StructLayout({"a": BEAT_BITS, "b": BEAT_BITS, "keep": 1})))
    o: Out(stream.Signature(BEAT_BITS))
    idle: Out(1)

    def elaborate(self, platform) -> Module:
        m = Module()
        depth = 2 * FLOAT_ADDER_LATENCY
        m.submodules.results = results = StreamFIFO(BEAT_BITS, depth)
        wiring.connect(m, results.o, wiring.flipped(self.o))
        # One place of the FIFO is kept for each sum on its way.
        valid, level = Signal(FLOAT_ADDER_LATENCY), Signal(range(depth + 1))
        take = Signal()
        m.d.comb += [
            self.i.ready.eq(level != depth), take.eq(self.i.valid & self.i.ready),
            results.i.valid.eq(valid[-1]), self.idle.eq(~valid.any() & results.idle),
        ]
        m.d.sync += [
            valid.eq((valid << 1) | take),
            level.eq(level + take - (self.o.valid & self.o.ready)),
        ]
        for lane in range(LANES):
            adder = Shared(FloatAdder(), "float_adder")
            m.submodules[f"lane{lane}"] = adder
            bits = slice(32 * lane, 32 * lane + 32)
            m.d.comb += [
                adder.a.eq(self.i.payload.a[bits]), adder.b.eq(self.i.payload.b[bits]),
                adder.keep.eq(self.i.payload.keep), results.i.payload[bits].eq(adder.o),
            ]
        return m

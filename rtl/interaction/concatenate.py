"""Concatenator: a sample's dense vector, followed by its pooled vectors."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.interaction.records import PooledBeat, VectorInBeat
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import SkidBuffer

__all__ = ["Concatenator"]


class Concatenator(wiring.Component):
    """Join the dense and the pooled vectors of each sample (paper, section 4.1.3: concatenation).

    Both arrive in sample order and need no matching: a dense vector leaves, then every bag of its
    sample, then the next dense vector. A dense vector does not wait for its bags.

    Ports
    -----
    dense: stream of :data:`~rtl.interaction.records.VectorInBeat`; its ``sample_last`` is ignored.
    pooled: stream of :data:`~rtl.interaction.records.PooledBeat`.
    o: stream of :data:`~rtl.interaction.records.VectorInBeat`.
    counters: ``samples`` and ``beats_out``; ``stall_dense``, cycles in which a pooled vector waits
        for the dense vector of its sample.
    idle: inactive until an input changes. A sample whose next vector has not arrived does not clear
        it.
    """

    LATENCY = {("beat", "the same beat"): 1}
    RATE = "1 beat per cycle, without a gap between samples"

    def __init__(self):
        super().__init__({
            "dense": In(stream.Signature(VectorInBeat)),
            "pooled": In(stream.Signature(PooledBeat)), "o": Out(stream.Signature(VectorInBeat)),
            "counters": Out(CounterLayout("samples", "beats_out", "stall_dense")), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        # Registers, not LUTRAM: the interaction's recoders have much logic behind them.
        m.submodules.output = output = SkidBuffer(VectorInBeat, lutram=False)
        wiring.connect(m, output.o, wiring.flipped(self.o))
        bags, ends, out = Signal(), Signal(), output.i.payload
        dense, pooled = self.dense.payload, self.pooled.payload
        with m.If(bags):
            m.d.comb += [
                output.i.valid.eq(self.pooled.valid), self.pooled.ready.eq(output.i.ready),
                out.data.eq(pooled.data), out.vector_last.eq(pooled.beat_last),
                out.sample_last.eq(pooled.bag_last_of_sample), out.sample.eq(pooled.sample),
                out.step.eq(pooled.step), out.lost.eq(pooled.lost),
            ]
        with m.Else():
            m.d.comb += [
                output.i.valid.eq(self.dense.valid), self.dense.ready.eq(output.i.ready),
                out.eq(dense), out.sample_last.eq(0),
            ]
        with m.If(output.i.valid & output.i.ready & out.vector_last):
            m.d.sync += bags.eq(~(bags & out.sample_last))
        m.d.comb += [
            ends.eq(output.i.valid & output.i.ready & out.vector_last & out.sample_last),
            self.idle.eq(output.idle),
        ]
        count(m, self.counters, samples=ends, beats_out=self.o.valid & self.o.ready,
              stall_dense=self.pooled.valid & ~bags & ~self.dense.valid)
        return m

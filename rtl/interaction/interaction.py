"""Interaction: computes a sample's result, dots or the concatenated vectors."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import NicConfig
from rtl.gateable import Gateable
from rtl.interaction.dot_interaction import DotInteraction
from rtl.interaction.records import ResultBeat, VectorInBeat
from rtl.interaction.vector_flatten import VectorFlattener
from rtl.monitor.counters import CounterLayout, count

__all__ = ["Interaction"]


class Interaction(Gateable, wiring.Component):
    """Pass each sample's vectors to the dot interaction, or flatten them unchanged.

    If ``config.dot_units`` is 0, there is no dot interaction, and vectors are always flattened.
    Latency and throughput are those of :class:`~rtl.interaction.dot_interaction.DotInteraction` and
    :class:`~rtl.interaction.vector_flatten.VectorFlattener`.

    Ports
    -----
    i: stream of :data:`~rtl.interaction.records.VectorInBeat`.
    dots: results are dots; may change while empty.
    itself: pair vectors with themselves too; may change while empty.
    vector_packing: log2 of the vectors that share a beat; may change while empty.
    o: stream of :data:`~rtl.interaction.records.ResultBeat`, samples in order.
    counters: ``samples`` whose results have left, ``beats_in``, ``beats_out``; ``dropped``, beats
        of vectors above ``interaction_vectors``; ``stall_input``, cycles in which an input beat
        waits; ``stall_output``, cycles in which a group of dots waits for room.
    idle: inactive until an input changes. An unfinished sample that waits for its next beat does
        not clear it.

    Raises ``TypeError`` if ``config`` is not a :class:`~rtl.config.NicConfig`.
    """

    LATENCY = DotInteraction.LATENCY | VectorFlattener.LATENCY
    RATE = f"dots: {DotInteraction.RATE}; flattening: {VectorFlattener.RATE}"

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i": In(stream.Signature(VectorInBeat)), "dots": In(1), "itself": In(1),
            "vector_packing": In(2), "o": Out(stream.Signature(ResultBeat)),
            "counters": Out(CounterLayout(
                "samples", "beats_in", "beats_out", "dropped", "stall_input", "stall_output")),
            "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.flattener = flattener = VectorFlattener()
        m.d.comb += flattener.vector_packing.eq(self.vector_packing)
        taken, given = self.i.valid & self.i.ready, self.o.valid & self.o.ready
        count(m, self.counters, samples=given & self.o.payload.last, beats_in=taken,
              beats_out=given, stall_input=self.i.valid & ~self.i.ready)
        if self._config.dot_units == 0:
            wiring.connect(m, wiring.flipped(self.i), flattener.i)
            wiring.connect(m, flattener.o, wiring.flipped(self.o))
            m.d.comb += [self.idle.eq(flattener.idle), self.counters.dropped.eq(0),
                         self.counters.stall_output.eq(0)]
            return m
        m.submodules.dot_interaction = dot = DotInteraction(self._config)
        m.d.comb += [
            dot.itself.eq(self.itself), self.idle.eq(flattener.idle & dot.idle),
            self.counters.dropped.eq(dot.counters.dropped),
            self.counters.stall_output.eq(dot.counters.stall_output),
        ]
        for chosen, block in ((self.dots, dot), (~self.dots, flattener)):
            m.d.comb += block.i.payload.eq(self.i.payload)
            with m.If(chosen):
                m.d.comb += [
                    block.i.valid.eq(self.i.valid), self.i.ready.eq(block.i.ready),
                    self.o.valid.eq(block.o.valid), block.o.ready.eq(self.o.ready),
                ]
        # Separate registers for the many bits: no result leaves in the cycle of a change. The
        # register of the data is inverted, otherwise synthesis would merge them.
        dots, vectors, out = Signal(), Signal(init=1), self.o.payload
        m.d.sync += [dots.eq(self.dots), vectors.eq(~self.dots)]
        m.d.comb += [
            out.eq(Mux(dots, dot.o.payload, flattener.o.payload)),
            out.data.eq(Mux(vectors, flattener.o.payload.data, dot.o.payload.data)),
        ]
        return m

"""Vector flattener: concatenates the vectors of a sample into its result."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS
from rtl.interaction.records import ResultBeat, VectorInBeat
from rtl.stream import SkidBuffer
from rtl.stream.packing import QUARTER, placed

__all__ = ["VectorFlattener"]


class VectorFlattener(wiring.Component):
    """Pack the values of a sample's vectors 16 per beat, in the order of the vectors.

    Vectors of 16 k values are whole beats already. Two vectors of 8 values or four of 4 values
    share a beat, the first one in the lowest lanes, with zeros after the last one.

    Ports
    -----
    i: stream of :data:`~rtl.interaction.records.VectorInBeat`.
    vector_packing: log2 of the vectors that share a beat, 0 to 2; must be 0 if a vector has several
        beats. It may change while idle and between samples.
    o: stream of :data:`~rtl.interaction.records.ResultBeat`.
    idle: inactive until an input changes. An unfinished beat that waits for its next vector does
        not clear it.
    """

    LATENCY = {("vectors that fill a beat", "that beat"): 1}
    RATE = "1 beat in per cycle"

    def __init__(self):
        super().__init__({
            "i": In(stream.Signature(VectorInBeat)), "vector_packing": In(2),
            "o": Out(stream.Signature(ResultBeat)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.output = output = SkidBuffer(ResultBeat)
        wiring.connect(m, output.o, wiring.flipped(self.o))
        item, packing = self.i.payload, self.vector_packing
        index, take, full, ends = Signal(2), Signal(), Signal(), Signal()
        before, lost = Signal(), Signal()  # flags of the sample
        # A beat leaves when no other vector fits; vectors that share it are collected here.
        held, collected = Signal(BEAT_BITS, reset_less=True), Signal(BEAT_BITS)
        m.d.comb += [
            self.i.ready.eq(output.i.ready), take.eq(self.i.valid & self.i.ready),
            full.eq(~(Cat(packing.any(), packing[1]) & ~index).any()),
            ends.eq(item.vector_last & item.sample_last),
            collected.eq(Cat(Mux(here, value, held.word_select(k, QUARTER)) for k, (here, value)
                             in enumerate(placed(item.data, index, packing)))),
            output.i.valid.eq(self.i.valid & (full | ends)),
            output.i.payload.data.eq(collected), output.i.payload.last.eq(ends),
            output.i.payload.sample.eq(item.sample), output.i.payload.step.eq(item.step),
            lost.eq(before | item.lost), output.i.payload.lost.eq(lost),
            self.idle.eq(output.idle),
        ]
        with m.If(take):
            m.d.sync += [held.eq(collected), index.eq(Mux(full | ends, 0, index + 1)),
                         before.eq(lost & ~ends)]
        return m

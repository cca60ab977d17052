"""Vector unpacker: splits received beats that hold several vectors, one vector a cycle."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS
from rtl.formats import TAG_BITS
from rtl.network.layouts import ReceivedVector
from rtl.stream import StreamFIFO
from rtl.stream.packing import taken

__all__ = ["PackedBeat", "VectorUnpacker"]

_MOST = 4
"""Most vectors of a beat."""

PackedBeat = data.StructLayout({
    "data": BEAT_BITS, "tags": data.ArrayLayout(TAG_BITS, _MOST), "final": range(_MOST),
    "dense": 1})
"""A received beat of ``final`` + 1 vectors, the first in the lowest lanes, their tags, and whether
they are dense vectors."""


class VectorUnpacker(wiring.Component):
    """Split beats into vectors of a beat each, whose upper lanes are +0.

    A beat comes in per cycle and takes as many cycles to go out as it holds vectors, so beats wait
    here; if they waited before the parser instead, later packets would wait too, and finally find
    no room. Each beat holds a requested vector, so with a place for each vector in flight an honest
    peer cannot fill it, in whatever pattern its packets arrive.

    Latency and rate: see ``LATENCY`` and ``RATE``.

    Parameters: ``depth``, the most vectors in flight.

    Ports
    -----
    i: stream of :data:`PackedBeat`.
    vector_packing: log2 of the vectors of a full beat, 1 or 2.
    o: stream of :data:`rtl.network.layouts.ReceivedVector`, ``last`` always 1.
    idle.
    """

    LATENCY = {("beat", "its first vector"): 3}
    RATE = "1 vector per cycle"

    def __init__(self, depth: int):
        self._depth = depth
        super().__init__({
            "i": In(stream.Signature(PackedBeat)), "vector_packing": In(2),
            "o": Out(stream.Signature(ReceivedVector)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.fifo = fifo = StreamFIFO(PackedBeat, self._depth)
        wiring.connect(m, wiring.flipped(self.i), fifo.i)
        # The beat that is split; the next follows without a gap.
        beat, busy = Signal(PackedBeat, reset_less=True), Signal()
        index, final, vector = Signal(range(_MOST)), Signal(), self.o.payload.beat
        m.d.comb += [
            final.eq(index == beat.final),
            self.o.valid.eq(busy), fifo.o.ready.eq(~busy | (self.o.ready & final)),
            vector.data.eq(taken(beat.data, index, self.vector_packing)),
            vector.tag.eq(beat.tags[index]), vector.last.eq(1),
            self.o.payload.dense.eq(beat.dense),
            self.idle.eq(fifo.idle & ~busy),
        ]
        with m.If(busy & self.o.ready):
            m.d.sync += index.eq(Mux(final, 0, index + 1))
        with m.If(fifo.o.ready):
            m.d.sync += [busy.eq(fifo.o.valid), beat.eq(fifo.o.payload)]
        return m

"""Vector unpacker: splits received beats that hold several vectors, one vector per cycle."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS
from rtl.formats import TAG_BITS
from rtl.network.layouts import received_vector
from rtl.stream import StreamFIFO
from rtl.stream.packing import taken

__all__ = ["VectorUnpacker", "packed_beat"]

_MOST = 4
"""Most vectors of a beat."""


def packed_beat(origin: int, mixed: bool = False) -> data.StructLayout:
    """Layout of a received beat of ``final`` + 1 vectors, the first one in the lowest lanes, their
    tags, and their common ``origin`` of that many bits. ``mixed``: with their ``packing``."""
    return data.StructLayout({
        "data": BEAT_BITS, "tags": data.ArrayLayout(TAG_BITS, _MOST), "final": range(_MOST),
        "origin": origin, **({"packing": 2} if mixed else {})})


class VectorUnpacker(wiring.Component):
    """Split beats into vectors of one beat each, whose upper lanes are +0.

    One beat enters per cycle, and a beat takes one cycle per vector to leave. Beats therefore wait
    in a FIFO in this block. Waiting before the parser would block later packets until they find no
    room. The FIFO has a place for each vector in flight, and each beat holds at least one requested
    vector, so an honest peer cannot fill the FIFO. The order of vectors is kept.

    Parameters
    ----------
    depth: most vectors in flight.
    origin: bits of ``origin``.
    mixed: each beat has its own ``packing``, 0 to 2; then there is no port ``vector_packing``.

    Ports
    -----
    i: stream of :func:`packed_beat`.
    vector_packing: log2 of the vectors of a full beat, 1 or 2.
    o: stream of :func:`rtl.network.layouts.received_vector`, ``last`` always 1.
    idle: inactive until an input changes.
    """

    LATENCY = {("beat", "its first vector"): 3}
    RATE = "1 vector per cycle"

    def __init__(self, depth: int, origin: int = 1, *, mixed: bool = False):
        self._depth, self._beat, self._mixed = depth, packed_beat(origin, mixed), mixed
        super().__init__({
            "i": In(stream.Signature(self._beat)),
            "o": Out(stream.Signature(received_vector(origin))), "idle": Out(1),
        } | ({} if mixed else {"vector_packing": In(2)}))

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.fifo = fifo = StreamFIFO(self._beat, self._depth)
        wiring.connect(m, wiring.flipped(self.i), fifo.i)
        # The beat being split; the next beat follows without a gap.
        beat, busy = Signal(self._beat, reset_less=True), Signal()
        index, final, vector = Signal(range(_MOST)), Signal(), self.o.payload.beat
        if self._mixed:
            whole = beat.packing == 0
            data_now = Mux(whole, beat.data, taken(beat.data, index, beat.packing))
        else:
            data_now = taken(beat.data, index, self.vector_packing)
        m.d.comb += [
            final.eq(index == beat.final),
            self.o.valid.eq(busy), fifo.o.ready.eq(~busy | (self.o.ready & final)),
            vector.data.eq(data_now),
            vector.tag.eq(beat.tags[index]), vector.last.eq(1),
            self.o.payload.origin.eq(beat.origin),
            self.idle.eq(fifo.idle & ~busy),
        ]
        with m.If(busy & self.o.ready):
            m.d.sync += index.eq(Mux(final, 0, index + 1))
        with m.If(fifo.o.ready):
            m.d.sync += [busy.eq(fifo.o.valid), beat.eq(fifo.o.payload)]
        return m

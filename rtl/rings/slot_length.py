"""Slot length: beats of a number of vectors."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import TAGS_PER_BEAT

__all__ = ["LENGTH_BITS", "Length", "SlotLength"]

LENGTH_BITS = 16

Length = data.StructLayout({"vectors": LENGTH_BITS, "beats": LENGTH_BITS})
"""Content of a slot of vectors: their number, and the beats of their tags and values."""


class SlotLength(wiring.Component):
    """Compute the beats of tags and values of a number of vectors in GPU_VECTORS.

    Ports
    -----
    i: stream of numbers of vectors. o: stream of :data:`Length`.
    vector_beats, vector_packing: as in :class:`rtl.network.PacketParser`; fixed.
    idle: no number inside.
    """

    LATENCY = {("number", "its length"): 6}
    RATE = "1 number in 6 cycles, or 7"

    def __init__(self):
        super().__init__({
            "i": In(stream.Signature(LENGTH_BITS)), "o": Out(stream.Signature(Length)),
            "vector_beats": In(5), "vector_packing": In(2), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        # Process one bit of ``vector_beats`` per cycle; vectors that share beats have one bit.
        vectors, places = (Signal(LENGTH_BITS, name=name, reset_less=True)
                           for name in ("vectors", "places"))
        sum_, left, bits = (Signal(LENGTH_BITS, reset_less=True), Signal(3),
                            Signal(5, reset_less=True))
        done, shared = Signal(), Signal(2)
        m.d.sync += shared.eq(self.vector_packing)
        m.d.comb += [
            self.i.ready.eq((left == 0) & ~done), self.o.valid.eq(done),
            self.o.payload.vectors.eq(vectors), self.o.payload.beats.eq(sum_),
            self.idle.eq((left == 0) & ~done),
        ]
        with m.If(self.i.valid & self.i.ready):
            number = self.i.payload
            m.d.sync += [
                vectors.eq(number), left.eq(5), bits.eq(self.vector_beats),
                places.eq((number + Mux(shared == 2, 3, shared)) >> shared),
                sum_.eq((number + TAGS_PER_BEAT - 1) >> (TAGS_PER_BEAT.bit_length() - 1)),
            ]
        with m.If(left != 0):
            m.d.sync += [left.eq(left - 1), bits.eq(bits >> 1), places.eq(places << 1),
                         done.eq(left == 1)]
            with m.If(bits[0]):
                m.d.sync += sum_.eq(sum_ + places)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += done.eq(0)
        return m

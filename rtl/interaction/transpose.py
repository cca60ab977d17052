"""Transposer: a sample's vectors arrive one after another and leave slice by slice."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.config import BEAT_BITS, NicConfig
from rtl.memory import Ram

__all__ = ["SliceBeat", "Transposer", "WholeBeat"]

WholeBeat = data.StructLayout({"data": BEAT_BITS, "void": 1, "vector_last": 1, "sample_last": 1})
"""A beat of a sample's vectors, vector-major. ``void``: beat of a surplus vector, which is dropped.
``vector_last`` ends a vector; ``sample_last`` marks the beats of the last vector."""

SliceBeat = data.StructLayout({"data": BEAT_BITS, "void": 1, "last": 1, "first": 1, "final": 1})
"""A beat of a slice: the 16 lanes of the same beat of every vector. ``last`` ends the slice;
``first`` and ``final`` mark the first and the final slice of its sample."""


class Transposer(wiring.Component):
    """Convert vector-major samples to slice-major samples (paper, section 4.1.3: the transpose).

    A RAM has two halves: one fills with the next sample while the other is read. A dot interaction
    needs a slice of all vectors before the next slice. The additions to a pair's sum are then as
    far apart as there are pairs, so no addition waits. A sample is held until it is complete.

    Ports
    -----
    i: stream of :data:`WholeBeat`.
    o: stream of :data:`SliceBeat`, without ``void`` beats.
    idle: inactive until an input changes. An unfinished sample that waits for its next beat does
        not clear it.
    """

    RATE = "1 beat per cycle"

    def __init__(self, config: NicConfig):
        self._vectors, self._slices = config.interaction_vectors, config.vector_beats
        super().__init__({
            "i": In(stream.Signature(WholeBeat)), "o": Out(stream.Signature(SliceBeat)),
            "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        vector_bits, slice_bits = ceil_log2(self._vectors), max(1, ceil_log2(self._slices))
        depth = 1 << (1 + slice_bits + vector_bits)
        m.submodules.ram = ram = Ram(BEAT_BITS, depth, style="uram" if depth >= 2048 else
                                     "bram" if depth > 64 else "lutram")
        whole = Signal(2)
        last_vector = [Signal(vector_bits, name=f"last_vector{k}") for k in range(2)]
        last_slice = [Signal(slice_bits, name=f"last_slice{k}") for k in range(2)]

        # Input: vector by vector. A void vector does not change the count of vectors.
        item, put, ends = self.i.payload, Signal(), Signal()
        filling, vector, part = Signal(), Signal(vector_bits), Signal(slice_bits)
        kept = Signal(vector_bits)
        m.d.comb += [
            self.i.ready.eq(~whole.bit_select(filling, 1)),
            put.eq(self.i.valid & self.i.ready),
            ends.eq(put & item.vector_last & item.sample_last),
            ram.write_en.eq(put & ~item.void), ram.write_addr.eq(Cat(vector, part, filling)),
            ram.write_data.eq(item.data),
        ]
        with m.If(put):
            m.d.sync += part.eq(Mux(item.vector_last, 0, part + 1))
            with m.If(item.vector_last):
                m.d.sync += vector.eq(Mux(item.sample_last, 0, vector + 1))
                with m.If(~item.void):
                    m.d.sync += kept.eq(vector)
        with m.If(ends):
            m.d.sync += filling.eq(~filling)

        # Output: slice by slice, from the other half.
        reading, at_vector, at_slice = Signal(), Signal(vector_bits), Signal(slice_bits)
        valid, flags, pull = Signal(), Signal(SliceBeat), Signal()
        here_vector, here_slice = Signal(vector_bits), Signal(slice_bits)
        m.d.comb += [
            here_vector.eq(Mux(reading, last_vector[1], last_vector[0])),
            here_slice.eq(Mux(reading, last_slice[1], last_slice[0])),
            pull.eq(whole.bit_select(reading, 1) & (~valid | self.o.ready)),
            ram.read_en.eq(pull), ram.read_addr.eq(Cat(at_vector, at_slice, reading)),
            self.o.valid.eq(valid), self.o.payload.eq(flags),
            self.o.payload.data.eq(ram.read_data),
        ]
        over, emptied = Signal(), Signal()
        m.d.comb += [
            over.eq(at_vector == here_vector), emptied.eq(pull & over & (at_slice == here_slice)),
        ]
        with m.If(pull):
            m.d.sync += [
                valid.eq(1), flags.last.eq(over), flags.first.eq(at_slice == 0),
                flags.final.eq(at_slice == here_slice),
                at_vector.eq(Mux(over, 0, at_vector + 1)),
            ]
            with m.If(over):
                m.d.sync += at_slice.eq(Mux(emptied, 0, at_slice + 1))
        with m.Elif(self.o.ready):
            m.d.sync += valid.eq(0)
        with m.If(emptied):
            m.d.sync += reading.eq(~reading)
        for half in range(2):
            with m.If(ends & (filling == half)):
                m.d.sync += [whole[half].eq(1), last_slice[half].eq(part),
                             last_vector[half].eq(Mux(item.void, kept, vector))]
            with m.Elif(emptied & (reading == half)):
                m.d.sync += whole[half].eq(0)
        m.d.comb += self.idle.eq(~whole.any() & ~valid)
        return m

"""Gradient divider: divides the vector of each bag by its number of keys, for a mean."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS, LANES
from rtl.float import (
    COUNT_DIVIDER_LANE_LATENCY,
    RECIPROCAL_LATENCY,
    CountDividerLane,
    CountReciprocal,
)
from rtl.formats import RawBeat
from rtl.shared import Shared
from rtl.stream import StreamFIFO, packet_layout
from rtl.stream.packing import taken

__all__ = ["DividedBeat", "GradientDivider"]

DividedBeat = data.StructLayout({"valid": 1, "data": BEAT_BITS})
"""Event: a beat of the vector of a bag."""

_AHEAD = 32
"""Bags whose reciprocal is in flight or waits; more than the latency of a reciprocal."""


class GradientDivider(wiring.Component):
    """Output the vector of each bag in order, one beat at a time; drop the vectors of invalid
    packets.

    For a mean, each value is divided by float32 of the bag's number of keys, with the result of
    binary32 and NaN as 0x7FC00000. Otherwise values pass unchanged. Reciprocals are computed ahead,
    so the division adds only its multipliers to the path.

    Parameters: ``length``, shape of the number of keys of a bag.

    Ports
    -----
    vectors: stream of :data:`rtl.formats.RawBeat`; ``last`` marks the end of a packet.
    verdicts: stream of 1 bit per packet: 1 drops its vectors.
    bags: packet stream (:func:`rtl.stream.packet_layout`) of the number of keys of each bag, of
        valid packets.
    vector_beats: beats of a vector.
    vector_packing: log2 of the vectors that share a beat of ``vectors``, 0 to 2; must be 0 if a
        vector has several beats.
    mean: divide by the number of keys. ``mean``, ``vector_beats`` and ``vector_packing`` may change
        while idle.
    go: a beat may start.
    begun: a beat starts in this cycle, and will be output.
    bag_begun: the starting beat is the first one of its bag.
    o: event :data:`DividedBeat`; with less than 16 values, its upper lanes are +0.
    idle: inactive until an input changes.
    """

    LATENCY = {
        ("number of keys of a bag", "its first beat"): 28,
        ("number of keys of a bag", "its first beat, of a mean"): 34,
    }
    RATE = "1 beat per cycle out, dropped beats included"

    def __init__(self, length: Shape):
        self._length = length
        super().__init__({
            "vectors": In(stream.Signature(RawBeat)), "verdicts": In(stream.Signature(1)),
            "bags": In(stream.Signature(packet_layout(length))),
            "vector_beats": In(5), "vector_packing": In(2), "mean": In(1),
            "go": In(1), "begun": Out(1), "bag_begun": Out(1), "o": Out(DividedBeat),
            "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        divisors, dividing = self._reciprocals(m)
        divisor = divisors.o.payload

        # Required: a beat of the packet, a verdict, a bag and a free place for the result.
        part, place = Signal(range(LANES)), Signal(2)
        final_part, final_place = Signal.like(part), Signal.like(place)
        judged, drop, final, emptied = Signal(), Signal(), Signal(), Signal()
        # The last vector of a shared beat, known one cycle earlier.
        full = Signal()
        beat = self.vectors.payload
        m.d.sync += [
            final_part.eq(self.vector_beats - 1),
            final_place.eq((1 << self.vector_packing) - 1),
        ]
        m.d.comb += [
            judged.eq(self.vectors.valid & self.verdicts.valid),
            drop.eq(judged & self.verdicts.payload),
            self.begun.eq(judged & ~drop & divisors.o.valid & self.go),
            self.bag_begun.eq(self.begun & (part == 0)),
            final.eq(part == final_part),
            divisors.o.ready.eq(self.begun & final),
            emptied.eq(full | divisor.last),
            self.vectors.ready.eq(drop | (self.begun & emptied)),
            self.verdicts.ready.eq(self.vectors.ready & beat.last),
        ]
        m.d.sync += full.eq(Mux(self.begun & emptied, final_place == 0,
                                Mux(self.begun, place + 1, place) == final_place))
        with m.If(self.begun):
            m.d.sync += [part.eq(Mux(final, 0, part + 1)), place.eq(Mux(emptied, 0, place + 1))]

        vector, factor = (Signal(width, reset_less=True, name=name) for name, width in (
            ("vector", BEAT_BITS), ("factor", len(divisor.factor))))
        later = Signal.like(factor)  # the lanes take the factor one cycle after the vector
        m.d.sync += [
            vector.eq(Mux(self.vector_packing == 0, beat.data,
                          taken(beat.data, place, self.vector_packing))),
            factor.eq(divisor.factor), later.eq(factor),
        ]
        valids = [self.begun] + [Signal(name=f"valid{n}")
                                 for n in range(1, COUNT_DIVIDER_LANE_LATENCY + 2)]
        m.d.sync += [after.eq(before) for before, after in pairwise(valids)]
        quotient = Signal(BEAT_BITS)
        for lane in range(LANES):
            unit = Shared(CountDividerLane(), "count_divider_lane")
            m.submodules[f"lane{lane}"] = unit
            bits = slice(32 * lane, 32 * lane + 32)
            m.d.comb += [
                unit.x.eq(vector[bits]), Cat(unit.factor, unit.exponent).eq(later),
                quotient[bits].eq(unit.o),
            ]
        m.d.comb += [
            self.o.valid.eq(Mux(self.mean, valids[-1], valids[1])),
            self.o.data.eq(Mux(self.mean, quotient, vector)),
            self.idle.eq(~judged & ~dividing & divisors.idle & ~Cat(valids[1:]).any()),
        ]
        return m

    def _reciprocals(self, m: Module) -> tuple[StreamFIFO, Value]:
        """Take bags ahead; return the FIFO of their divisors and whether one is in flight."""
        # Cycles from the take of a bag to the use of its divisor, for consecutive bags.
        assert RECIPROCAL_LATENCY + 4 <= _AHEAD
        m.submodules.reciprocal = unit = CountReciprocal()
        width = len(unit.o) + len(unit.exponent)
        m.submodules.divisors = divisors = StreamFIFO(
            data.StructLayout({"factor": width, "last": 1}), _AHEAD)
        ahead, take = Signal(range(_AHEAD + 1)), Signal()
        m.d.comb += [
            self.bags.ready.eq(ahead != _AHEAD),
            take.eq(self.bags.valid & self.bags.ready),
        ]
        # A register between the RAM of the bags and the reciprocal.
        m.d.sync += unit.n.eq(self.bags.payload.item)
        m.d.sync += ahead.eq(ahead + take - (divisors.o.valid & divisors.o.ready))
        valid, last = take, self.bags.payload.last
        for stage in range(RECIPROCAL_LATENCY + 1):
            after_valid = Signal(name=f"dividing{stage}")
            after_last = Signal(name=f"dividing_last{stage}", reset_less=True)
            m.d.sync += [after_valid.eq(valid), after_last.eq(last)]
            valid, last = after_valid, after_last
        m.d.comb += [
            divisors.i.valid.eq(valid),
            divisors.i.payload.factor.eq(Cat(unit.o, unit.exponent)),
            divisors.i.payload.last.eq(last),
        ]
        return divisors, ahead != 0

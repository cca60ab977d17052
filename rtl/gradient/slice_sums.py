"""Slice sums: the sums over the slices of rows, with several rows sharing one adder in turn."""

from itertools import pairwise

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.float import FLOAT_ADDER_LATENCY, MINUS_ZERO, FloatAdder
from rtl.memory import Ram
from rtl.shared import Shared

__all__ = ["SliceSums", "slice_sums_latency"]

_TURNS = 8
"""Rows that share the adder in turn, a power of two."""

assert _TURNS >= FLOAT_ADDER_LATENCY + 2, "a sum is there when its row's turn comes again"

_Turn = data.StructLayout({"valid": 1, "slot": range(_TURNS), "first": 1, "last": 1})


def slice_sums_latency(slices: int) -> int:
    """Return the most cycles from the first slice of a row to its sum, for one slice per cycle."""
    return _TURNS * slices + FLOAT_ADDER_LATENCY + 1


class SliceSums(wiring.Component):
    """Add the slices of each row in ascending order, beginning with the first slice.

    A row's next slice can be added only after the previous addition is complete. Eight rows
    therefore take turns at one adder: row ``k`` has slot ``k`` modulo 8. Slices wait in the slot's
    part of a RAM.

    The block needs no backpressure if all rows have the same number of slices, ``n``. A slot needs
    ``8 n`` cycles for a row, and its next row begins at the earliest ``8 n`` cycles after this row.
    Slice ``j`` is taken at most ``7 (j + 1) + 1`` cycles after its arrival, which is at most ``8
    n``, so a slot holds one row. Sums leave in the order of the rows, because each row waits for a
    later slice than the previous one.

    The block is inactive while no slice waits. The latency is at most :func:`slice_sums_latency`.

    Parameters: ``slices``, the largest number of slices of a row, at least 2.

    Ports
    -----
    valid, term, last: a slice, binary32; ``last`` ends its row.
    o_valid, o: the sum of a row, in order.
    idle: no slice waits or is being added.
    """

    RATE = "1 slice per cycle in, 1 sum in n cycles out"

    def __init__(self, slices: int):
        if isinstance(slices, bool) or not isinstance(slices, int):
            raise TypeError(f"slices must be an integer, not {slices!r}")
        if slices < 2:
            raise ValueError(f"slices must be at least 2, not {slices!r}")
        self._slices = slices
        super().__init__({
            "valid": In(1), "term": In(32), "last": In(1), "o_valid": Out(1), "o": Out(32),
            "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        bits = ceil_log2(self._slices)
        m.submodules.terms = terms = Ram(33, _TURNS << bits, style="lutram")
        m.submodules.sums = sums = Ram(32, _TURNS, style="lutram")

        # Input: each row uses the next slot.
        slot, place = Signal(range(_TURNS)), Signal(bits)
        m.d.comb += [
            terms.write_en.eq(self.valid), terms.write_addr.eq(Cat(place, slot)),
            terms.write_data.eq(Cat(self.term, self.last)),
        ]
        with m.If(self.valid):
            m.d.sync += [place.eq(Mux(self.last, 0, place + 1)), slot.eq(slot + self.last)]

        # Turns: the current slot reads its next slice, if it has arrived.
        turn, go, turning = Signal(range(_TURNS)), Signal(), Signal()
        waiting = [Signal(range(self._slices + 1), name=f"waiting{k}") for k in range(_TURNS)]
        places = Array(Signal(bits, name=f"place{k}") for k in range(_TURNS))
        some = Cat(number.any() for number in waiting)
        stages = [Signal(_Turn, name=f"stage{k}") for k in range(FLOAT_ADDER_LATENCY + 1)]
        m.d.comb += [
            go.eq(some.bit_select(turn, 1)),
            turning.eq(some.any() | Cat(stage.valid for stage in stages).any()),
            terms.read_en.eq(go), terms.read_addr.eq(Cat(places[turn], turn)),
            sums.read_en.eq(go), sums.read_addr.eq(turn),
        ]
        m.d.sync += [
            turn.eq(turn + turning),
            stages[0].valid.eq(go), stages[0].slot.eq(turn), stages[0].first.eq(places[turn] == 0),
            *(number.eq(number + (self.valid & (slot == k)) - (go & (turn == k)))
              for k, number in enumerate(waiting)),
        ]

        # Add the slice and the sum so far.
        adding, last = stages[0], terms.read_data[32]
        m.submodules.adder = adder = Shared(FloatAdder(), "float_adder")
        m.d.comb += [
            adder.a.eq(terms.read_data[:32]),
            adder.b.eq(Mux(adding.first, MINUS_ZERO, sums.read_data)),
            adder.keep.eq(adding.first),
        ]
        with m.If(adding.valid):
            m.d.sync += places[adding.slot].eq(Mux(last, 0, places[adding.slot] + 1))
        m.d.sync += [after.eq(before) for before, after in pairwise(stages)]
        m.d.sync += stages[1].last.eq(last)

        done = stages[-1]
        m.d.comb += [
            sums.write_en.eq(done.valid), sums.write_addr.eq(done.slot),
            sums.write_data.eq(adder.o),
            self.o_valid.eq(done.valid & done.last), self.o.eq(adder.o), self.idle.eq(~turning),
        ]
        return m

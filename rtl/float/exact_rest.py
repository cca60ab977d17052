"""Remainder of an exact sum after subtracting the output binary32."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.float.exact import CHUNK_BITS, CHUNKS, EXACT, EXACT_VALUE_BITS

__all__ = ["NO_SHIFT_REGISTER", "ExactRest"]

NO_SHIFT_REGISTER = {"shreg_extract": "no", "keep": 1}
"""Attributes that prevent a shift register, for registers of equal data without a reset. Tools of
different vendors need different ones."""

_LOW = 253
"""Position of the lowest bit of the largest finite number, in units of 2^-149."""

_TOP = CHUNK_BITS - 24
"""Bits of a chunk that a significand at its top leaves free."""


class ExactRest(wiring.Component):
    """Compute the remainder for repeated rounding: feedback path of
    :class:`~rtl.float.exact_round.ExactRounder`.

    Bits of the sum below the significand are kept. The other bits become 1 if the output number is
    above the sum, else 0. Alternatively, a new sum enters.

    Ports, each with its stage of the rounder:

    - ``x``: In(EXACT), 3, the sum.
    - ``lead``: In(:data:`CHUNKS`), 5, one-hot, the chunk of the leading bit.
    - ``below``: In(:data:`CHUNKS`), 5, the chunks at least two below the leading chunk.
    - ``shift``: In(5), 5, distance of the significand from the top of the leading chunk.
    - ``hold``: In(1), 5, no number is output.
    - ``up``: In(1), 6, the output number is the next one above the sum's leading bits.
    - ``over``: In(1), 7, the output is the largest finite number, with the sum's sign.
    - ``i``: In(EXACT), ``enter``: In(1), 8, the new sum.
    - ``o``: Out(EXACT), 8.
    """

    x: In(EXACT)
    lead: In(CHUNKS)
    below: In(CHUNKS)
    shift: In(5)
    hold: In(1)
    up: In(1)
    over: In(1)
    i: In(EXACT)
    enter: In(1)
    o: Out(EXACT)

    def elaborate(self, platform) -> Module:
        m = Module()
        # Delays of the sum: shift registers would take a LUT per bit, and a NIC that trains has
        # more free flip-flops than LUTs.
        waiting = [self.x]
        for stage in range(4, 9):
            following = Signal(EXACT, name=f"x{stage}", reset_less=True,
                               attrs=NO_SHIFT_REGISTER)
            m.d.sync += following.eq(waiting[-1])
            waiting.append(following)
        x4, _, x6, x7, x8 = waiting[1:]

        # 5: chunks whose bits are all kept, or kept below the significand. The remainder of an
        # infinity or NaN is irrelevant. Each register of these bits has a use; otherwise synthesis
        # would make a shift register.
        plain, special5 = Signal(), Signal(reset_less=True, attrs=NO_SHIFT_REGISTER)
        m.d.sync += special5.eq(x4.plus | x4.minus)
        m.d.comb += plain.eq(~special5 & ~self.hold)
        some = plain.replicate(CHUNKS)
        whole6, part6, lead6, upper6, lower6, hold6 = (
            Signal(width, name=name, reset_less=True, attrs=NO_SHIFT_REGISTER) for name, width in (
                ("whole6", CHUNKS), ("part6", CHUNKS), ("lead6", CHUNKS), ("upper6", _TOP),
                ("lower6", CHUNK_BITS), ("hold6", 1)))
        m.d.sync += [
            whole6.eq((self.below & some) | self.hold.replicate(CHUNKS)),
            part6.eq(self.lead[1:] & some), lead6.eq(self.lead & some),
            upper6.eq(Cat(self.shift < _TOP - place for place in range(_TOP))),
            lower6.eq(Cat(self.shift < CHUNK_BITS + _TOP - place for place in range(CHUNK_BITS))),
            hold6.eq(self.hold),
        ]

        # 6: the fill value of the other bits.
        fill7, hold7 = Signal(reset_less=True), Signal(reset_less=True)
        m.d.sync += [
            fill7.eq(Mux(hold6, x6.value[-1], self.up & ~(x6.plus | x6.minus))), hold7.eq(hold6),
        ]

        # 7: the sum less the largest number: 24 ones, whose negative is one, then zeros to the 24th
        # place, and ones.
        over8, negative = Signal(reset_less=True), x7.value[-1]
        less8 = Signal(EXACT_VALUE_BITS - _LOW, reset_less=True)
        m.d.sync += [
            over8.eq(self.over & ~hold7),
            less8.eq(x7.value[_LOW:] + Cat(
                Const(1, 1), negative.replicate(23), (~negative).replicate(len(less8) - 24))),
        ]

        # 8: bit by bit. With three bits for each chunk and one for each position, a bit takes one
        # LUT.
        whole, part, lead, upper, lower, fill, hold = (
            _later(m, signal, cycles) for signal, cycles in (
                (whole6, 2), (part6, 2), (lead6, 2), (upper6, 2), (lower6, 2), (fill7, 1),
                (hold7, 1)))
        value = Signal(EXACT_VALUE_BITS)
        for k in range(CHUNKS):
            old, new, into = (
                v.word_select(k, CHUNK_BITS) for v in (x8.value, self.i.value, value))
            same, ones = Signal(name=f"same{k}"), Signal(name=f"ones{k}")
            m.d.comb += [
                same.eq(self.enter | whole[k]),
                ones.eq(~self.enter & (whole[k] | fill)),
            ]
            kept = (part[k].replicate(CHUNK_BITS) & lower) | (lead[k].replicate(_TOP) & upper)
            m.d.comb += into.eq(Mux(
                same, Mux(ones, old, new), (old & kept) | (ones.replicate(CHUNK_BITS) & ~kept)))
        m.d.comb += [
            value[-1].eq(Mux(self.enter, self.i.value[-1], fill)),
            self.o.value.eq(value),
            self.o.plus.eq(Mux(self.enter, self.i.plus, x8.plus & hold)),
            self.o.minus.eq(Mux(self.enter, self.i.minus, x8.minus & hold)),
            self.o.other.eq(Mux(self.enter, self.i.other, x8.other)),
        ]
        with m.If(over8 & ~self.enter):
            m.d.comb += self.o.value[_LOW:].eq(less8)
        return m


def _later(m: Module, signal: Signal, cycles: int) -> Signal:
    for cycle in range(cycles):
        following = Signal.like(signal, name=f"{signal.name}_later{cycle + 1}", reset_less=True)
        m.d.sync += following.eq(signal)
        signal = following
    return signal

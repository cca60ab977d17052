"""Rounding of exact sums to binary32, and the remainders."""

from amaranth.hdl import Cat, Const, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.float.exact import CHUNK_BITS, CHUNKS, EXACT, EXACT_VALUE_BITS
from rtl.float.exact_rest import NO_SHIFT_REGISTER, ExactRest
from rtl.float.shift import leading_zeros
from rtl.shared import Shared

__all__ = ["EXACT_ROUNDER_LATENCY", "ExactRounder"]

EXACT_ROUNDER_LATENCY = 8
"""Cycles from a sum to the output of :class:`ExactRounder`; also the length of the ring of sums."""

_Flags = data.StructLayout({"sign": 1, "plus": 1, "minus": 1, "other": 1})
_LEAD = 23
"""Lowest position of the leading bit that leaves room for a significand below it."""

_BEYOND = EXACT_VALUE_BITS - 1 - 277
"""Bits of the highest chunk with weight 2^128 and more."""

_HALF = 6
"""Chunks below those that are searched together, to limit the search to a few levels of logic."""


class ExactRounder(wiring.Component):
    """Round an exact sum once to binary32: to nearest even, subnormals, overflow to infinity.

    With x = h * 2^s + l, 0 <= l < 2^s, and h the leading 24 bits and the sign, the nearest number
    is h or h + 1, for either sign. The result is its magnitude, because the complement of a
    negative h is its magnitude less 1. The remainder is l or l - 2^s: x with all bits from s on set
    to 0 or to 1, without a subtraction. The pipeline has no enable.

    Parameters: ``rest``, sums can be rounded again, less the output number. No sum then overflows:
    the largest finite number is output instead, and the remainder may be even larger.

    Ports
    -----
    i: In(EXACT).
    o: Out(32), binary32; NaN as 0x7FC00000.

    Only with ``rest``:

    enter: In(1), take ``i``; otherwise the remainder of the sum :data:`EXACT_ROUNDER_LATENCY`
        cycles ago.
    hold: In(1), the sum that entered 5 cycles ago stays unchanged.
    once: In(1), sums are not rounded again: infinity instead of the largest number. Must not change
        while a sum is in flight.
    done: Out(1), 2 cycles before ``o``: the remainder will be 0. An infinity or NaN has no
        remainder.
    """

    LATENCY = {("exact sum", "binary32"): EXACT_ROUNDER_LATENCY}
    RATE = "1 sum per cycle"

    def __init__(self, *, rest: bool):
        self._rest = rest
        ports = {"i": In(EXACT), "o": Out(32)}
        if rest:
            ports |= {"enter": In(1), "hold": In(1), "once": In(1), "done": Out(1)}
        super().__init__(ports)

    def elaborate(self, platform) -> Module:
        m = Module()

        # 1: the sum. Chunks are searched for the highest bit that differs from the sign.
        x1 = Signal(EXACT, reset_less=True)
        if self._rest:
            m.submodules.rest = rest = ExactRest()
            m.d.comb += [rest.i.eq(self.i), rest.enter.eq(self.enter)]
            m.d.sync += x1.eq(rest.o)
        else:
            m.d.sync += x1.eq(self.i)
        sign = x1.value[-1]
        unlike2, some2, high2 = _registers(unlike2=CHUNKS, some2=CHUNKS, high2=1)
        unlike = Signal(CHUNKS)
        for k in range(CHUNKS):
            m.submodules[f"chunk{k}"] = chunk = Shared(_Chunk(), "exact_chunk")
            m.d.comb += [chunk.i.eq(x1.value.word_select(k, CHUNK_BITS)), chunk.sign.eq(sign),
                         unlike[k].eq(chunk.unlike)]
            m.d.sync += some2[k].eq(chunk.some)
        m.d.sync += [unlike2.eq(unlike), high2.eq(unlike[_HALF:].any())]

        # 2: the chunk of the leading bit, one-hot; the lowest chunk for a sum of 0 or -1.
        x2 = Signal(EXACT, reset_less=True)
        m.d.sync += x2.eq(x1)
        lead3, below3, lost3 = _registers(lead3=CHUNKS, below3=CHUNKS - 2, lost3=1)

        def above(k: int) -> Value:
            """Return whether any chunk above ``k`` differs from the sign."""
            return high2 | unlike2[k + 1:_HALF].any() if k < _HALF - 1 else (
                high2 if k == _HALF - 1 else unlike2[k + 1:].any())

        below = Cat(above(k + 1) for k in range(CHUNKS - 2))
        here = [(unlike2[k] if k else 1) & ~above(k) for k in range(CHUNKS)]
        m.d.sync += [
            lead3.eq(Cat(here)), below3.eq(below),
            lost3.eq((some2 & below).any()),
        ]

        # 3: that chunk, and the next one below it.
        x3 = Signal(EXACT, reset_less=True)
        m.d.sync += x3.eq(x2)
        chunks = [Const(0, CHUNK_BITS),
                  *(x3.value.word_select(k, CHUNK_BITS) for k in range(CHUNKS))]
        pair4, unlike4, lead4, below4, lost4, flags4 = _registers(
            pair4=2 * CHUNK_BITS, unlike4=CHUNK_BITS, lead4=CHUNKS, below4=CHUNKS - 2, lost4=1,
            flags4=_Flags)
        upper = _selected(lead3, chunks[1:])
        m.d.sync += [
            pair4.eq(Cat(_selected(lead3, chunks[:-1]), upper)),
            # A significand that begins lower in the lowest chunk is subnormal.
            unlike4.eq((upper ^ x3.value[-1].replicate(CHUNK_BITS)) | (lead3[0] << _LEAD)),
            lead4.eq(lead3), below4.eq(below3), lost4.eq(lost3),
            flags4.sign.eq(x3.value[-1]), flags4.plus.eq(x3.plus), flags4.minus.eq(x3.minus),
            flags4.other.eq(x3.other),
        ]

        # 4: the position of the leading bit in its chunk.
        m.submodules.zeros = zeros = Shared(_Zeros(), "zeros_of_chunk")
        m.d.comb += zeros.i.eq(unlike4)
        shift5, above5, pair5, lead5, below5, lost5, flags5 = _registers(
            shift5=5, above5=CHUNK_BITS, pair5=2 * CHUNK_BITS, lead5=CHUNKS, below5=CHUNKS - 2,
            lost5=1, flags5=_Flags)
        m.d.sync += [
            shift5.eq(zeros.o), above5.eq(zeros.above),
            pair5.eq(pair4), lead5.eq(lead4), below5.eq(below4), lost5.eq(lost4), flags5.eq(flags4),
        ]

        # 5: shift. s is the position of the significand's lowest bit.
        m.submodules.window = window = Shared(_Window(), "exact_window")
        m.submodules.low = low = Shared(_Low(), "exact_low")
        most = CHUNK_BITS - 1 - _LEAD
        window6, lost6, low6, flags6 = _registers(window6=25, lost6=1, low6=9, flags6=_Flags)
        m.d.comb += [window.pair.eq(pair5), window.shift.eq(shift5), low.pair.eq(pair5),
                     low.above.eq(above5)]
        first = _selected(lead5, [Const(CHUNK_BITS * k + most, 9) for k in range(CHUNKS)])
        m.d.sync += [
            window6.eq(window.o), lost6.eq(lost5 | low.lost),
            low6.eq(first - shift5), flags6.eq(flags5),
        ]

        # 6: round; a carry propagates into the exponent. The exponent field is s, plus 1 for the
        # hidden bit.
        up = window6[0] & (lost6 | window6[1])
        significand = window6[1:] ^ flags6.sign.replicate(24)
        packed, over = Signal(31), Signal()
        packed7, over7, flags7, o8 = _registers(packed7=31, over7=1, flags7=_Flags, o8=32)
        m.d.comb += [
            packed.eq((Cat(Const(1, 1), significand[:23], low6[:8])
                       + Cat(up ^ flags6.sign, Const(0, 23), significand[23]))[1:32]),
            over.eq((low6 >= 254) | packed[23:].all()),
        ]
        m.d.sync += [packed7.eq(packed), over7.eq(over), flags7.eq(flags6)]

        # 7: pack.
        nan, infinite = flags7.plus & flags7.minus, flags7.plus | flags7.minus
        if self._rest:
            # Much logic depends on ``done``, so it is known two cycles early. If no bit is lost,
            # the largest number is output for sums from 2^128 on, or from -2^128 down; all of them
            # except -2^128 have a bit in this range that differs from the sign.
            beyond5, special5, done6 = _registers(beyond5=1, special5=1, done6=1)
            m.d.sync += [
                beyond5.eq(lead4[-1] & (unlike4[-_BEYOND:].any()
                                        | (flags4.sign & ~pair4[:-_BEYOND].any()))),
                special5.eq(flags4.plus | flags4.minus),
                done6.eq(special5 | ~(low.some | lost5 | beyond5)),
            ]
            m.d.comb += [
                self.done.eq(done6),
                rest.x.eq(x3), rest.lead.eq(lead5), rest.below.eq(below5), rest.shift.eq(shift5),
                rest.up.eq(up),
                rest.over.eq(over7 & ~infinite), rest.hold.eq(self.hold),
            ]
        infinity = Const(0x7F800000, 31)
        largest = Mux(self.once, infinity, Const(0x7F7FFFFF, 31)) if self._rest else infinity
        m.d.sync += o8.eq(Cat(packed7, flags7.sign | ~flags7.other))
        with m.If(nan):
            m.d.sync += o8.eq(0x7FC00000)
        with m.Elif(infinite):
            m.d.sync += o8.eq(Cat(infinity, flags7.minus))
        with m.Elif(over7):
            m.d.sync += o8.eq(Cat(largest, flags7.sign))
        m.d.comb += self.o.eq(o8)
        return m


class _Chunk(wiring.Component):
    """Detect any 1 in a chunk, and any bit that differs from the sign.

    Yosys maps this block and the next three separately, each for its own depth: beside deeper
    logic, Yosys would save LUTs at the expense of their depth.
    """

    i: In(CHUNK_BITS)
    sign: In(1)
    unlike: Out(1)
    some: Out(1)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.d.comb += [self.unlike.eq((self.i ^ self.sign.replicate(CHUNK_BITS)).any()),
                     self.some.eq(self.i.any())]
        return m


class _Zeros(wiring.Component):
    """Count the zeros above the highest 1 of a chunk; ``above``: a 1 at each position or above it.
    """

    i: In(CHUNK_BITS)
    o: Out(5)
    above: Out(CHUNK_BITS)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.d.comb += [self.o.eq(leading_zeros(self.i)),
                     self.above.eq(Cat(self.i[place:].any() for place in range(CHUNK_BITS)))]
        return m


class _Window(wiring.Component):
    """Select the upper 25 bits of a pair of chunks shifted left."""

    pair: In(2 * CHUNK_BITS)
    shift: In(5)
    o: Out(25)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.d.comb += self.o.eq((self.pair << self.shift)[2 * CHUNK_BITS - 25:2 * CHUNK_BITS])
        return m


class _Low(wiring.Component):
    """Detect a 1 of a pair of chunks below the window (``lost``), and at or below its lowest
    position (``some``).

    No shift is necessary: ``above`` is that of :class:`_Zeros` for the upper chunk.
    """

    pair: In(2 * CHUNK_BITS)
    above: In(CHUNK_BITS)
    lost: Out(1)
    some: Out(1)

    def elaborate(self, platform) -> Module:
        m = Module()

        def reach(bits: int) -> Value:
            """Return whether a 1 is below the ``bits`` bits from the leading one down."""
            least = bits - CHUNK_BITS
            return Cat(self.pair[place] & self.above[max(0, place + least)]
                       for place in range(CHUNK_BITS - least)).any()

        m.d.comb += [self.lost.eq(reach(25)), self.some.eq(reach(24))]
        return m


def _registers(**shapes: ShapeLike) -> list:
    """Return registers of these names and shapes, without reset. The logic before them leaves no
    time for the input of a shift register."""
    return [Signal(shape, name=name, reset_less=True, attrs=NO_SHIFT_REGISTER)
            for name, shape in shapes.items()]


def _selected(lead: Value, values: list[Value]) -> Value:
    """Return the element of ``values`` selected by the one-hot ``lead``."""
    result: Value = Const(0, 1)
    for bit, value in zip(lead, values):
        result = result | (value & bit.replicate(len(value)))
    return result


assert EXACT_VALUE_BITS < 1 << 9

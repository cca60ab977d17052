"""Float32 adder: IEEE-754 binary32, round to nearest even."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["FLOAT_ADDER_LATENCY", "FloatAdder"]

FLOAT_ADDER_LATENCY = 6
"""Cycles from the operands of :class:`FloatAdder` to their sum."""

_SUM_BITS = 28
"""Carry, 24 bits of significand, guard, round and sticky bit."""

_Special = data.StructLayout({"sign": 1, "subtract": 1, "keep": 1, "nan": 1, "infinite": 1})


class FloatAdder(wiring.Component):
    """``o = a + b`` in binary32, subnormals included; NaN is always 0x7FC00000.

    The significand of the operand of smaller magnitude is shifted into place with three more bits
    (guard, round, sticky), which are enough for one rounding: a difference that loses more than
    one leading bit comes of exponents at most one apart, and is exact.

    Latency :data:`FLOAT_ADDER_LATENCY` cycles, throughput one sum per cycle. There is no enable:
    who starts a sum takes it when it comes.

    Ports: ``a``, ``b``: operands; ``keep``: ``o`` is ``a``, bit for bit, NaN included; ``o``.
    """

    def __init__(self):
        super().__init__({"a": In(32), "b": In(32), "keep": In(1), "o": Out(32)})

    def elaborate(self, platform) -> Module:
        m = Module()

        # 1: order by magnitude. Adding -0 keeps everything but the bits of a NaN.
        b = Signal(32)
        swap = Signal()
        m.d.comb += [
            b.eq(Mux(self.keep, 1 << 31, self.b)),
            swap.eq(self.a[:31] < b[:31]),
        ]
        large, small = Signal(31), Signal(31)
        flags1 = Signal(_Special)
        m.d.sync += [
            large.eq(Mux(swap, b[:31], self.a[:31])),
            small.eq(Mux(swap, self.a[:31], b[:31])),
            flags1.sign.eq(Mux(swap, b[31], self.a[31])),
            flags1.subtract.eq(self.a[31] ^ b[31]),
            flags1.keep.eq(self.keep),
        ]

        # 2: shift the smaller one's significand into place. An exponent field of 0 means 1.
        large_exponent, distance = Signal(8), Signal(8)
        aligned = Signal(27)
        shifted, lost = _shift_right(m, Cat(Const(0, 3), small[:23], small[23:].any()), distance)
        large_infinite, small_infinite = large[23:].all(), small[23:].all()
        m.d.comb += [
            large_exponent.eq(large[23:] | ~large[23:].any()),
            distance.eq(large_exponent - (small[23:] | ~small[23:].any())),
        ]
        significand, exponent2 = Signal(24), Signal(8)
        flags2 = Signal(_Special)
        m.d.sync += [
            aligned.eq(shifted | lost), exponent2.eq(large_exponent),
            significand.eq(Cat(large[:23], large[23:].any())),
            flags2.eq(flags1),
            flags2.nan.eq(~flags1.keep & large_infinite & (
                large[:23].any() | (small_infinite & flags1.subtract))),
            flags2.infinite.eq(large_infinite & ~flags1.keep),
        ]

        # 3: add or subtract.
        total, exponent3, flags3 = Signal(_SUM_BITS), Signal(8), Signal(_Special)
        # One adder: -x is ~x + 1, and the 1 comes in by a bit below the others.
        change = aligned ^ flags2.subtract.replicate(len(aligned))
        raised = Cat(flags2.subtract, Const(0, 3), significand) + Cat(flags2.subtract, change)
        m.d.sync += [
            # A difference is positive: its carry out says so, and is no bit of it.
            total.eq(Cat(raised[1:28], raised[28] & ~flags2.subtract)),
            exponent3.eq(exponent2), flags3.eq(flags2),
        ]

        # 4: count leading zeros; a subnormal result is shifted no further than its exponent.
        zeros, above = _leading_zeros(total), Signal()
        shift, exponent4, total4 = Signal(5), Signal(9), Signal(_SUM_BITS)
        flags4 = Signal(_Special)
        m.d.comb += above.eq(exponent3 > zeros)
        m.d.sync += [
            shift.eq(Mux(above, zeros, exponent3[:5])), total4.eq(total),
            # The exponent of a carry bit, less the shift; 0 or less stands for a subnormal.
            exponent4.eq(Mux(above, exponent3 + 1 - zeros, 1)),
            flags4.eq(flags3),
            # x - x = +0, whatever the sign of x.
            flags4.sign.eq(flags3.sign & ~(flags3.subtract & (total == 0))),
        ]

        # 5: normalise.
        normal, exponent5, flags5 = Signal(_SUM_BITS), Signal(9), Signal(_Special)
        m.d.sync += [
            normal.eq((total4 << shift)[:_SUM_BITS]), exponent5.eq(exponent4), flags5.eq(flags4),
        ]

        # 6: round to nearest even; a carry runs on into the exponent, up to infinity.
        guard, rest, odd = normal[3], normal[:3].any(), normal[4]
        infinite = flags5.infinite | (~flags5.keep & exponent5[:8].all())
        packed = Signal(31)
        m.d.comb += packed.eq(
            Cat(normal[4:27], Mux(normal[27], exponent5[:8], 0)) + (guard & (rest | odd)))
        m.d.sync += [
            self.o.eq(Cat(packed, flags5.sign)),
        ]
        with m.If(flags5.nan):
            m.d.sync += self.o.eq(0x7FC00000)
        with m.Elif(infinite):
            m.d.sync += self.o.eq(Cat(Const(0xFF << 23, 31), flags5.sign))
        return m


def _shift_right(m: Module, value: Value, distance: Value) -> tuple[Value, Value]:
    """Return ``value >> distance`` and whether a bit that is 1 was lost."""
    lost: Value = Const(0, 1)
    # No bit of a significand is left after 31 places.
    near = distance[:5] | distance[5:].any().replicate(5)
    for step in (16, 8, 4, 2, 1):
        bit = near[step.bit_length() - 1]
        result, flag = Signal(len(value), name=f"shifted{step}"), Signal(name=f"lost{step}")
        m.d.comb += [
            result.eq(Mux(bit, value >> step, value)),
            flag.eq(lost | (bit & value[:step].any())),
        ]
        value, lost = result, flag
    return value, lost


def _leading_zeros(value: Value) -> Value:
    """Return how many bits above the highest 1 of ``value`` are 0 (31 or so if there is none)."""
    # Padded to 32 bits below, counted by halves.
    bits = Cat(Const(1, 32 - len(value)), value)
    count = []
    for half in (16, 8, 4, 2, 1):
        upper, lower = bits[half:], bits[:half]
        none = ~upper.any()
        count.append(none)
        bits = Mux(none, lower, upper)
    return Value.cast(Cat(*reversed(count)))

"""Float32 adder: IEEE-754 binary32, round to nearest even."""

from functools import partial

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.float.normalize import SUM_BITS, Normalizer
from rtl.float.shift import product_shifted, shift_factor
from rtl.shared import Shared

__all__ = ["FLOAT_ADDER_LATENCY", "MINUS_ZERO", "FloatAdder"]

FLOAT_ADDER_LATENCY = 6
"""Cycles from the operands of :class:`FloatAdder` to their sum."""

MINUS_ZERO = Const(1 << 31, 32)
"""The neutral element of addition; it changes only the bits of a NaN."""

_register = partial(Signal, reset_less=True)

_Special = data.StructLayout({"sign": 1, "subtract": 1, "keep": 1, "nan": 1, "infinite": 1})


class FloatAdder(wiring.Component):
    """Compute ``o = a + b`` in binary32, subnormals included; NaN is always 0x7FC00000.

    The significand of the operand of smaller magnitude is aligned with three more bits (guard,
    round, sticky). They are enough for one rounding: a difference that loses more than one leading
    bit has exponents at most one apart, and is exact. The alignment uses a DSP, which saves LUTs.
    The pipeline has no enable: the user must take each sum when it is ready.

    Parameters: ``keep``, add the port ``keep``.

    Ports
    -----
    a, b: operands.
    keep: ``o`` is ``a``, bit for bit, NaN included; ``b`` must be :data:`MINUS_ZERO`.
    o: the sum.
    """

    LATENCY = {("operands", "sum"): FLOAT_ADDER_LATENCY}
    RATE = "1 sum per cycle"

    def __init__(self, *, keep: bool = True):
        super().__init__({"a": In(32), "b": In(32), **({"keep": In(1)} if keep else {}),
                          "o": Out(32)})
        self._keep = keep

    def elaborate(self, platform) -> Module:
        m = Module()

        # 1: order by magnitude.
        a, b, swap, keep = self.a, self.b, Signal(), self.keep if self._keep else Const(0, 1)
        larger, smaller, distance, alike = Signal(8), Signal(8), _register(8), Signal()
        some_a, some_b = a[23:31].any(), b[23:31].any()
        m.d.comb += [
            swap.eq(a[:31] < b[:31]),
            larger.eq(Mux(swap, b[23:31], a[23:31])), smaller.eq(Mux(swap, a[23:31], b[23:31])),
            # An exponent field of 0 means 1, without a hidden bit. If only one field is 0, it is
            # the smaller one, and the distance is one less: -x is ~x + 1, without the 1.
            alike.eq(~(some_a ^ some_b)),
        ]
        first, second, swapped = _register(24), _register(24), _register()
        exponent1, unlike1, flags1 = _register(8), _register(), _register(_Special)
        m.d.sync += [
            first.eq(Cat(a[:23], some_a)), second.eq(Cat(b[:23], some_b)), swapped.eq(swap),
            exponent1.eq(larger), distance.eq((Cat(alike, larger) + Cat(alike, ~smaller))[1:9]),
            unlike1.eq(a[23:31].all() & b[23:31].all() & (a[31] ^ b[31])),
            flags1.sign.eq(a[31]), flags1.subtract.eq(a[31] ^ b[31]),
            flags1.keep.eq(keep),
        ]

        # 2: begin to align the smaller significand, in a DSP.
        large, small = Mux(swapped, second, first), Mux(swapped, first, second)
        product, far, beyond, significand = (
            _register(24 + 15), _register(), _register(), _register(24))
        exponent2, unlike2, flags2 = _register(8), _register(), _register(_Special)
        m.d.sync += [
            product.eq(small * shift_factor(distance)), far.eq(distance[4]),
            beyond.eq(distance[5:].any()), significand.eq(large),
            exponent2.eq(exponent1 | ~large[23]), unlike2.eq(unlike1), flags2.eq(flags1),
            flags2.infinite.eq(exponent1.all() & ~flags1.keep),
            # Sign of the larger operand: inverted if the signs differ and the operands are swapped.
            flags2.sign.eq(flags1.sign ^ (flags1.subtract & swapped)),
        ]

        # 3: align by 16 more, and add or subtract. The lowest of the 27 bits is the sticky bit.
        shifted, lost = product_shifted(Cat(Const(0, 3), product), far, 27)
        total, flags3 = _register(SUM_BITS), _register(_Special)
        # One adder: -x is ~x + 1, and the 1 enters one bit below the others. After 32 places no bit
        # of a significand is left.
        kept = Mux(beyond, product.any(), shifted | lost)
        change = kept ^ flags2.subtract.replicate(27)
        raised = Cat(flags2.subtract, Const(0, 3), significand) + Cat(flags2.subtract, change)
        m.d.sync += [
            # A difference is positive: its carry out only shows this, and is not part of it.
            total.eq(Cat(raised[1:28], raised[28] & ~flags2.subtract)),
            flags3.eq(flags2),
            flags3.nan.eq(flags2.infinite & (significand[:23].any() | unlike2)),
        ]

        # 4 and 5: normalise; the last step waits for the rounding.
        m.submodules.normalizer = normalizer = Shared(Normalizer(), "normalizer")
        total5, exponent5, last, none4 = (
            normalizer.o, normalizer.o_exponent, normalizer.last, normalizer.none)
        flags4, flags5 = _register(_Special), _register(_Special)
        m.d.comb += [normalizer.exponent.eq(exponent2), normalizer.total.eq(total)]
        m.d.sync += [
            flags4.eq(flags3), flags5.eq(flags4),
            # x - x = +0 for any sign of x.
            flags5.sign.eq(flags4.sign & ~(flags4.subtract & none4)),
        ]

        # 6: round to nearest even; a carry propagates into the exponent, up to infinity. The rest
        # of the exponent counts from the carry bit, so a hidden bit adds 1 to it.
        normal = Mux(last, total5 << 1, total5)[:SUM_BITS]
        guard, rest, odd = normal[3], normal[:3].any(), normal[4]
        packed, o = Signal(31), _register(32)
        m.d.comb += packed.eq((
            Cat(Const(1, 1), normal[4:27], exponent5)
            + Cat(guard & (rest | odd), Const(0, 23), normal[27]))[1:32])
        m.d.comb += self.o.eq(o)
        m.d.sync += o.eq(Cat(packed, flags5.sign))
        with m.If(flags5.nan):
            m.d.sync += o.eq(0x7FC00000)
        with m.Elif(flags5.infinite | (~flags5.keep & exponent5[1:].all())):
            m.d.sync += o.eq(Cat(Const(0xFF << 23, 31), flags5.sign))
        return m

"""Normalizer: the left shift of a float32 sum."""

from functools import partial

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["SUM_BITS", "Normalizer"]

_register = partial(Signal, reset_less=True)

SUM_BITS = 28
"""Bits of a sum: carry, 24 bits of significand, guard, round and sticky bit."""


class Normalizer(wiring.Component):
    """Shift a sum left until its highest bit is 1, limited by its exponent.

    The distance is the smaller one of ``exponent`` and the number of zeros above the highest 1. It
    is found bit by bit, 16 first: a step is taken if that many bits are 0 and that much of the
    exponent is left. Each step is decided for every outcome of the earlier steps in its cycle, so
    no step waits for a shift. Yosys maps the block separately, for its own depth: within the adder,
    whose comparison is deeper, Yosys would save LUTs at the expense of the depth here. The pipeline
    has no enable.

    Ports
    -----
    exponent: exponent of the sum, if its highest bit is 1.
    total: the sum, one cycle after ``exponent``.
    none: the sum is 0; one cycle after ``total``.
    o: the sum, shifted by the distance rounded down to an even number; two cycles after ``total``.
    last: the distance is odd.
    o_exponent: ``exponent`` less the distance; 0 if ``none``.
    """

    LATENCY = {("sum", "shifted sum"): 2}
    RATE = "1 sum per cycle"

    exponent: In(8)
    total: In(SUM_BITS)
    none: Out(1)
    o: Out(SUM_BITS)
    last: Out(1)
    o_exponent: Out(8)

    def elaborate(self, platform) -> Module:
        m = Module()
        total, exponent = self.total, _register(8)
        # Remaining exponent: at least 32, 16 or 8; at least 8 after a step of 16.
        left32, left16, left8, left8_16 = _register(), _register(), _register(), _register()
        m.d.sync += [
            exponent.eq(self.exponent), left32.eq(self.exponent[5:].any()),
            left16.eq(self.exponent[4:].any()), left8.eq(self.exponent[3:].any()),
            left8_16.eq(self.exponent[5:].any() | self.exponent[3]),
        ]

        # 1: by 16 and by 8.
        by16, by8 = Signal(), Signal()
        m.d.comb += [
            by16.eq(~total[12:].any() & left16),
            by8.eq(Mux(by16, ~total[4:12].any() & left8_16, ~total[20:].any() & left8)),
        ]
        partly, exponent1, done = _register(SUM_BITS), _register(8), _register(2)
        ample, none = _register(), _register()
        m.d.sync += [
            partly.eq(Mux(by16, Mux(by8, total << 24, total << 16),
                          Mux(by8, total << 8, total))),
            exponent1.eq(exponent), done.eq(Cat(by8, by16)), none.eq(~total.any()),
            # At least 8 of the exponent is left.
            ample.eq(Mux(by16, Mux(by8, left32, left8_16), Mux(by8, left16, left8))),
        ]

        # 2: by 4 and by 2; by 1 is only decided.
        by4, by2, by1 = Signal(), Signal(), Signal()
        top, (one, two, four) = partly[-8:], exponent1[:3]
        m.d.comb += [
            by4.eq(~top[4:].any() & (ample | four)),
            by2.eq(Mux(by4, ~top[2:4].any() & (ample | two),
                       ~top[6:].any() & (ample | four | two))),
            by1.eq(Mux(by4,
                       Mux(by2, ~top[1] & (ample | one), ~top[3] & (ample | two | one)),
                       Mux(by2, ~top[5] & (ample | four | one),
                           ~top[7] & (ample | four | two | one)))),
        ]
        o, last, o_exponent = _register(SUM_BITS), _register(), _register(8)
        m.d.sync += [
            o.eq(Mux(by4, Mux(by2, partly << 6, partly << 4), Mux(by2, partly << 2, partly))),
            last.eq(by1), o_exponent.eq(exponent1 - Cat(by1, by2, by4, done)),
        ]
        with m.If(none):
            m.d.sync += o_exponent.eq(0)
        m.d.comb += [
            self.none.eq(none), self.o.eq(o), self.last.eq(last), self.o_exponent.eq(o_exponent),
        ]
        return m

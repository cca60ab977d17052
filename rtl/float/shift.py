"""Right shift with sticky bit, in a DSP, and count of leading zeros."""

from amaranth.hdl import Cat, Const, Mux, Value

__all__ = ["leading_zeros", "product_shifted", "shift_factor"]

_POINT = 15
"""Bits of a product with a :func:`shift_factor` behind the point."""


def shift_factor(distance: Value) -> Value:
    """Return the factor that shifts right, in a DSP, by the lower 4 bits of ``distance``.

    The factor is a power of two of 16 bits: a shift by k multiplies by 2^(15 - k), and a DSP takes
    values of up to 26 bits.
    """
    return Value.cast(Cat(distance[:4] == _POINT - bit for bit in range(_POINT + 1)))


def product_shifted(product: Value, far: Value, width: int) -> tuple[Value, Value]:
    """Return a value of ``width`` bits that was multiplied by its :func:`shift_factor`, shifted
    right by 16 more if ``far``, and the sticky bit of all lost bits."""
    whole = Mux(far, product >> 16, product)[_POINT:_POINT + width]
    return Value.cast(whole), product[:_POINT].any() | (far & product[_POINT:_POINT + 16].any())


def leading_zeros(value: Value) -> Value:
    """Return the number of zeros above the highest 1 of ``value`` (5 bits; at most 31 bits wide).

    For 0 it returns the width. It needs four levels of LUTs, the first for four bits each.
    """
    bits = Cat(Const(-1, 4 - len(value) % 4), value)
    fours = [bits[at:at + 4] for at in reversed(range(0, len(bits), 4))]
    high: Value = Const(0, 3)
    low: Value = Const(0, 2)
    for number, four in reversed(list(enumerate(fours))):
        zeros = Mux(four[3], 0, Mux(four[2], 1, Mux(four[1], 2, 3)))
        high, low = Mux(four.any(), number, high), Mux(four.any(), zeros, low)
    return Value.cast(Cat(low[:2], high[:3]))

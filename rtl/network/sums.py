"""Sums with one carry chain: the carry-save step, and the beats of a packet of partials."""

from amaranth.hdl import C, Cat, Mux, Value

from rtl.formats import RECORDS_PER_BEAT

__all__ = ["carry_saved", "partial_beats"]


def carry_saved(first: Value, second: Value, third: Value) -> tuple[Value, Value]:
    """Return ``ones`` and ``twos`` such that the three numbers of equal width sum to ones + 2 *
    twos.

    A single carry chain then remains, instead of several in series.
    """
    return (first ^ second ^ third,
            (first & second) | (first & third) | (second & third))


def partial_beats(partials: Value, packing: Value) -> Value:
    """Return the payload beats of a packet of ``partials``: records, eight per beat, and values, of
    which 2 ** ``packing`` share a beat. ``packing`` is 0 to 2."""
    bits = len(partials)
    # Whole beats of values and of records, plus a partial beat of either.
    extra = Mux(packing == 2, partials[:2].any(), (packing == 1) & partials[0])
    ones, twos = carry_saved((partials >> packing)[:bits], Cat(partials[3:], C(0, 3)),
                             Cat(partials[:3].any(), C(0, bits - 1)))
    return ones + Cat(extra, twos)


assert RECORDS_PER_BEAT == 8

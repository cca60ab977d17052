"""CRC-32C over whole beats."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS

__all__ = ["Crc32c"]

_POLYNOMIAL = 0x82F63B78  # Castagnoli polynomial, bit-reflected: bits enter lowest first
_BITS = 32


def _columns(bits: int) -> list[int]:
    """Return the contribution of each of ``bits`` input bits, lowest first, to the remainder."""
    columns, value = [0] * bits, 1
    for position in reversed(range(bits)):
        value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        columns[position] = value
    return columns


def _product(columns: list[int], value: Value) -> Value:
    """Return the XOR of the columns whose bit of ``value`` is set."""
    masks = [sum((column >> bit & 1) << k for k, column in enumerate(columns))
             for bit in range(_BITS)]
    return Value.cast(Cat((value & mask).xor() for mask in masks))


class Crc32c(wiring.Component):
    """CRC-32C (RFC 3720 B.4) of the beats of a packet, byte 0 first.

    The remainder is linear. The contribution of a beat is one matrix product in its own pipeline
    stage (4 levels of LUTs). The previous remainder enters like the first 32 bits of a beat, so the
    loop from beat to beat is one small matrix product (2 levels).

    Ports
    -----
    valid, first, data: one beat; ``first`` marks the first beat of a packet.
    crc: CRC of the packet up to the beat two cycles ago; keeps its value without a new beat.
    idle: inactive until an input changes.
    """

    LATENCY = {("last beat of a packet", "its CRC"): 2}
    RATE = "1 beat per cycle"

    def __init__(self):
        super().__init__({
            "valid": In(1), "first": In(1), "data": In(BEAT_BITS), "crc": Out(_BITS),
            "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        columns = _columns(BEAT_BITS)
        valid, first, part = Signal(), Signal(), Signal(_BITS)
        remainder = Signal(_BITS)
        m.d.sync += valid.eq(self.valid)
        with m.If(self.valid):
            m.d.sync += [first.eq(self.first), part.eq(_product(columns, self.data))]
        with m.If(valid):
            before = Mux(first, (1 << _BITS) - 1, remainder)
            m.d.sync += remainder.eq(part ^ _product(columns[:_BITS], before))
        m.d.comb += [self.crc.eq(~remainder), self.idle.eq(~valid)]
        return m

"""Skid buffer: a register stage for a stream that cuts paths in both directions."""

from collections.abc import Iterator

from amaranth.hdl import Cat, Module, Shape, ShapeLike, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.memory import Ram

__all__ = ["SkidBuffer"]

_WIDE = 128
"""Least width of a field that LUTRAM stores: 14 bits of two items are 8 LUTs there, where registers
need a LUT per bit to select the next value. LUTRAM is read through a LUT, so short fields, which
control logic uses, remain registers."""


class SkidBuffer(wiring.Component):
    """Two-entry buffer with registered ``valid``, ``payload`` and ``ready``.

    LUTRAM stores fields of 128 bits and more.

    Parameters: ``shape`` of an item; ``lutram``: if false, every output bit is a register, as
    crossings between dies require.

    Ports: ``i`` and ``o``, streams of ``shape``; ``idle``.
    """

    LATENCY = {("item", "the same item"): 1}
    RATE = "1 item per cycle"

    def __init__(self, shape, *, lutram: bool = True):
        self._shape, self._lutram = shape, lutram
        super().__init__({
            "i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        incoming, outgoing = (Signal(Shape.cast(self._shape).width, name=name)
                              for name in ("incoming", "outgoing"))
        wide = list(_wide(self._shape)) if self._lutram else []
        ends = [0, *(end for part in wide for end in (part.start, part.stop)), len(incoming)]
        short = [slice(*pair) for pair in zip(ends[::2], ends[1::2])]
        entering, leaving = (Cat(word[part] for part in short) for word in (incoming, outgoing))
        held, front = (Signal(len(entering), reset_less=True, name=name)
                       for name in ("held", "front"))
        held_valid, front_valid = Signal(), Signal()
        # The inverse of ``held_valid``, which has one load per bit of the item.
        ready = Signal(init=1)
        m.d.comb += [
            incoming.eq(self.i.payload),
            self.i.ready.eq(ready),
            self.o.valid.eq(front_valid),
            leaving.eq(front), self.o.payload.eq(outgoing),
            self.idle.eq(~front_valid & ~held_valid),
        ]
        with m.If(self.o.ready | ~front_valid):
            with m.If(held_valid):
                m.d.sync += [front.eq(held), held_valid.eq(0), ready.eq(1), front_valid.eq(1)]
            with m.Else():
                m.d.sync += [front.eq(entering), front_valid.eq(self.i.valid)]
        with m.Elif(self.i.valid & ready):
            m.d.sync += [held_valid.eq(1), ready.eq(0)]
        # Load in any case, so that only a register enables it.
        with m.If(~held_valid):
            m.d.sync += held.eq(entering)

        if wide:
            m.submodules.ram = ram = Ram(sum(part.stop - part.start for part in wide), 2, latency=0)
            m.d.comb += [
                ram.write_en.eq(self.i.valid & ready),
                ram.write_data.eq(Cat(incoming[part] for part in wide)),
                Cat(outgoing[part] for part in wide).eq(ram.read_data),
            ]
            with m.If(ram.write_en):
                m.d.sync += ram.write_addr.eq(~ram.write_addr)
            with m.If(front_valid & self.o.ready):
                m.d.sync += ram.read_addr.eq(~ram.read_addr)
        return m


def _wide(shape: ShapeLike, offset: int = 0) -> Iterator[slice]:
    """Yield the wide fields of ``shape``, ascending."""
    if isinstance(shape, data.StructLayout):
        for _name, field in shape:
            yield from _wide(field.shape, offset + field.offset)
    elif (width := Shape.cast(shape).width) >= _WIDE:
        yield slice(offset, offset + width)

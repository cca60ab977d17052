"""Clock crossing of a stream."""

from amaranth.hdl import Module, ResetSignal, Shape
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import AsyncFIFO
from amaranth.lib.wiring import In, Out

__all__ = ["StreamCrossing"]


class StreamCrossing(wiring.Component):
    """Transfer a stream between unrelated clocks through a FIFO with Gray-coded pointers.

    Every path between the clocks must be shorter than the shorter period, see
    :mod:`gen.shells.xdc`. While the target side is in reset, the FIFO keeps its items. A reset of
    the source side empties the FIFO.

    Latency 1 cycle of ``source`` and 4 of ``target``; throughput 1 item per cycle of the slower
    clock.

    Parameters: ``shape`` of an item; ``source`` and ``target``, the domains; ``depth``, a power of
    two, at least 8.

    Ports: ``i``, stream of ``shape`` in ``source``; ``o``, stream of ``shape`` in ``target``.

    Raises ``ValueError`` for an invalid ``depth``.
    """

    def __init__(self, shape, source: str, target: str, depth: int = 16):
        if depth < 8 or depth & (depth - 1):
            raise ValueError(f"depth must be a power of two and at least 8, not {depth!r}")
        self._shape, self._source, self._target, self._depth = shape, source, target, depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.fifo = fifo = AsyncFIFO(
            width=Shape.cast(self._shape).width, depth=self._depth, w_domain=self._source,
            r_domain=self._target)
        awake = ~ResetSignal(self._target)
        m.d.comb += [
            fifo.w_data.eq(self.i.payload), fifo.w_en.eq(self.i.valid),
            self.i.ready.eq(fifo.w_rdy),
            self.o.payload.eq(fifo.r_data), self.o.valid.eq(fifo.r_rdy & awake),
            fifo.r_en.eq(self.o.ready & awake),
        ]
        return m

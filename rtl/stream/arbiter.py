"""Arbiter: merges several streams into one."""

from collections.abc import Callable

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.stream.skid import SkidBuffer

__all__ = ["Arbiter"]


class Arbiter(wiring.Component):
    """Merge ``ports`` streams, round robin, or with the lowest port first if ``priority``.

    With ``last``, a grant lasts from the first item of a packet to the item for which
    ``last(payload)`` is 1. With round robin, a port is served after at most one packet of each
    other port.

    Ports: ``i``, an array of input streams of ``shape``; ``o``, the output stream; ``grant``, the
    port whose item is taken in this cycle; ``idle``.
    """

    LATENCY = {("item", "the same item"): 1}
    RATE = "1 item per cycle"

    def __init__(self, shape, ports: int, *, last: Callable[..., Value] | None = None,
                 priority: bool = False):
        if not isinstance(ports, int) or ports < 1:
            raise ValueError(f"ports must be a positive integer, not {ports!r}")
        self._shape, self._ports, self._last, self._priority = shape, ports, last, priority
        super().__init__({
            "i": In(stream.Signature(shape)).array(ports), "o": Out(stream.Signature(shape)),
            "grant": Out(range(max(2, ports))), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.buffer = buffer = SkidBuffer(self._shape)
        wiring.connect(m, buffer.o, wiring.flipped(self.o))
        n = self._ports
        valids = Signal(n)
        m.d.comb += [valids[k].eq(self.i[k].valid) for k in range(n)]
        previous, choice = Signal(range(max(2, n))), Signal(range(max(2, n)))
        locked = Signal()
        # Grant the lowest requester after the previous grant, else the lowest requester.
        for k in reversed(range(n)):
            with m.If(valids[k]):
                m.d.comb += choice.eq(k)
        if not self._priority:
            for k in reversed(range(1, n)):
                with m.If(valids[k] & (previous < k)):
                    m.d.comb += choice.eq(k)
        with m.If(locked):
            m.d.comb += choice.eq(previous)
        m.d.comb += self.grant.eq(choice)
        taken = Signal()
        m.d.comb += [
            buffer.i.valid.eq(Mux(locked, valids.bit_select(previous, 1), valids.any())),
            taken.eq(buffer.i.valid & buffer.i.ready),
            self.idle.eq(~valids.any() & buffer.idle),
        ]
        with m.Switch(choice):
            for k in range(n):
                with m.Case(k):
                    m.d.comb += [buffer.i.payload.eq(self.i[k].payload),
                                 self.i[k].ready.eq(buffer.i.ready & buffer.i.valid)]
        with m.If(taken):
            m.d.sync += previous.eq(choice)
            if self._last is not None:
                m.d.sync += locked.eq(~self._last(buffer.i.payload))
        return m

"""Pooled router: sends pooled vectors to the host or to the interaction."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.interaction.records import PooledBeat

__all__ = ["PooledRouter"]


class PooledRouter(wiring.Component):
    """Send every pooled vector to ``vectors`` if ``interact``, else to ``packets``.

    The block is combinational and has no state. It is between the FIFO of the pooler and blocks
    with registered inputs.

    Ports
    -----
    i, packets, vectors: streams of :data:`~rtl.interaction.records.PooledBeat`.
    interact: selects the output; may change while ``i`` is empty.
    idle: always 1.
    """

    LATENCY = {("beat", "the same beat"): 0}
    RATE = "1 beat per cycle"

    def __init__(self):
        super().__init__({
            "i": In(stream.Signature(PooledBeat)), "packets": Out(stream.Signature(PooledBeat)),
            "vectors": Out(stream.Signature(PooledBeat)), "interact": In(1),
            "idle": Out(1, init=1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.d.comb += self.idle.eq(1)
        for chosen, way in ((~self.interact, self.packets), (self.interact, self.vectors)):
            m.d.comb += way.payload.eq(self.i.payload)
            with m.If(chosen):
                m.d.comb += [way.valid.eq(self.i.valid), self.i.ready.eq(way.ready)]
        return m

"""Vector router: sends a vector to this node's hold buffer or to the network."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import NODE_BITS, SizedBeat, VectorBeat
from rtl.stream import SkidBuffer

__all__ = ["VectorRouter"]


class VectorRouter(wiring.Component):
    """Send each vector beat to ``local`` if its tag names this node, else to ``remote``.

    Beats keep their order at each output.

    Parameter: ``sized``, vectors have different sizes.

    Ports
    -----
    i: stream of :data:`rtl.formats.VectorBeat`, or :data:`rtl.formats.SizedBeat` if ``sized``.
    local: stream of :data:`rtl.formats.VectorBeat`.
    remote: stream as ``i``.
    node: number of this node.
    idle: inactive until an input changes.
    """

    LATENCY = {
        ("vector beat", "own hold buffer"): 2,
        ("vector beat", "network"): 2,
    }
    RATE = "1 beat per cycle"

    def __init__(self, *, sized: bool = False):
        self._beat = SizedBeat if sized else VectorBeat
        super().__init__({
            "i": In(stream.Signature(self._beat)),
            "local": Out(stream.Signature(VectorBeat)),
            "remote": Out(stream.Signature(self._beat)),
            "node": In(NODE_BITS), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.head = head = SkidBuffer(self._beat)
        m.submodules.local_buffer = local = SkidBuffer(VectorBeat)
        m.submodules.remote_buffer = remote = SkidBuffer(self._beat)
        wiring.connect(m, wiring.flipped(self.i), head.i)
        wiring.connect(m, local.o, wiring.flipped(self.local))
        wiring.connect(m, remote.o, wiring.flipped(self.remote))
        for way in (local, remote):
            m.d.comb += [way.i.payload[name].eq(head.o.payload[name])
                         for name in way.i.payload.shape().members]
        with m.If(head.o.payload.tag.node == self.node):
            m.d.comb += [local.i.valid.eq(head.o.valid), head.o.ready.eq(local.i.ready)]
        with m.Else():
            m.d.comb += [remote.i.valid.eq(head.o.valid), head.o.ready.eq(remote.i.ready)]
        m.d.comb += self.idle.eq(head.idle & local.idle & remote.idle)
        return m

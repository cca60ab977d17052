"""Frame receiver and packet parser, connected as in the NIC."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.config import NicConfig
from rtl.network import FrameReceiver, PacketParser
from rtl.network.wire import edge_of

__all__ = ["Reception"]


class Reception(wiring.Component):
    """Receive frames with both blocks. Parameters are those of the receiver; ports are those of
    both blocks, except the connections between them."""

    def __init__(self, config: NicConfig, framing: str = "ethernet", *, depth: int = 512,
                 training: bool = False, bags: bool = False):
        receiver = FrameReceiver(config, framing, depth=depth, training=training, bags=bags)
        parser = PacketParser(config, edge_of(framing), training=training, bags=bags)
        self._blocks = {"receiver": receiver, "parser": parser}
        self._outer = [(block, name, member) for block in (receiver, parser)
                       for name, member in block.signature.members.items()
                       if name not in ("o", "header", "idle") and (block, name) != (parser, "i")]
        super().__init__({name: member for _, name, member in self._outer} | {"idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        for name, block in self._blocks.items():
            m.submodules[name] = block
        receiver, parser = self._blocks.values()
        wiring.connect(m, receiver.o, parser.i)
        if hasattr(receiver, "header"):
            m.d.comb += parser.header.eq(receiver.header)
        for block, name, member in self._outer:
            inner, outer = getattr(block, name), getattr(self, name)
            if not member.is_port:
                wiring.connect(m, inner, wiring.flipped(outer))
            else:
                m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        m.d.comb += self.idle.eq(receiver.idle & parser.idle)
        return m

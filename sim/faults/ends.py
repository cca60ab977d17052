"""Both ends of the reliable link of a NIC, without the NIC: packets in, frames out, and back."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import NicConfig
from rtl.formats import NODE_BITS, Beat, FrameInfo, RawBeat
from rtl.network import FrameAssembler, FrameReceiver
from rtl.network.layouts import PacketBeat
from rtl.network.link.ends import first_deadline, join_ends
from rtl.network.link.receiver import LINK_RECEIVER_COUNTERS
from rtl.network.link.rejoin import LinkRejoin, Order
from rtl.network.link.sender import LINK_SENDER_COUNTERS, LinkSender

__all__ = ["LinkEnd"]

_MAC, _IP, _PORT = 0x0245_4D42_0000, 0x0A45_0000, 0x4853
_SETTINGS = {"epoch": 8, "delay": 16, "timeout_first": 24, "timeout_least": 24, "timeout_most": 24,
             "tries": 8}


class LinkEnd(wiring.Component):
    """Link sender, frame assembler and frame receiver with its side of the link, as in a NIC.

    Parameters: ``config``; ``first_sequence``, number of the first packet to each node.

    Ports
    -----
    headers, payload: packets to send. o: packets that have come, which are always taken.
    net_tx, net_rx: frames.
    node, nodes; epoch, delay, timeout_first, timeout_least, timeout_most, tries: registers.
    time, idle, waits, deadline: as in :class:`rtl.nic.SmartNic`.
    order: :data:`rtl.network.link.rejoin.Order`: carried out once ``valid`` rises. working: it is.
    sent, received: counters of the two sides. given_up: nodes that failed, so far.
    """

    def __init__(self, config: NicConfig, first_sequence: int = 0):
        self._sender = LinkSender(config, first_sequence=first_sequence)
        self._assembler = FrameAssembler(config, link=True)
        self._receiver = FrameReceiver(config, link=True, first_sequence=first_sequence)
        self._rejoin = LinkRejoin()
        super().__init__({
            "headers": In(stream.Signature(FrameInfo)), "payload": In(stream.Signature(RawBeat)),
            "o": Out(stream.Signature(PacketBeat)),
            "net_tx": Out(stream.Signature(Beat)), "net_rx": In(stream.Signature(Beat)),
            "node": In(NODE_BITS), "nodes": In(NODE_BITS),
            **{name: In(width) for name, width in _SETTINGS.items()},
            "order": In(Order), "working": Out(1),
            "time": In(32), "idle": Out(1), "waits": Out(1), "deadline": Out(32),
            "sent": Out(LINK_SENDER_COUNTERS), "received": Out(LINK_RECEIVER_COUNTERS),
            "given_up": Out(8)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.sender = sender = self._sender
        m.submodules.assembler = assembler = self._assembler
        m.submodules.receiver = receiver = self._receiver
        m.submodules.rejoin = rejoin = self._rejoin
        for inner, outer in ((sender.headers, self.headers), (sender.payload, self.payload),
                             (receiver.i, self.net_rx)):
            wiring.connect(m, wiring.flipped(outer), inner)
        for inner, outer in ((receiver.o, self.o), (assembler.o, self.net_tx)):
            wiring.connect(m, inner, wiring.flipped(outer))
        for source, target in ((sender.header_out, assembler.headers),
                               (sender.payload_out, assembler.payload),
                               (receiver.links, sender.links),
                               (receiver.arrived, sender.arrived)):
            wiring.connect(m, source, target)
        m.d.comb += sender.node.eq(self.node)
        for block in (assembler, receiver):
            m.d.comb += [block.node.eq(self.node), block.epoch.eq(self.epoch),
                         block.mac_base.eq(_MAC), block.ip_base.eq(_IP), block.udp_port.eq(_PORT)]
        join_ends(m, sender, receiver, rejoin)
        ordered = Signal()
        m.d.sync += ordered.eq(self.order.valid)
        waits, deadline = first_deadline(sender, receiver)
        m.d.comb += [
            receiver.nodes.eq(self.nodes), receiver.vector_beats.eq(1),
            receiver.ack_delay.eq(self.delay), sender.tries.eq(self.tries),
            *(getattr(sender, name).eq(getattr(self, name))
              for name in _SETTINGS if name.startswith("timeout")),
            sender.time.eq(self.time), receiver.time.eq(self.time),
            rejoin.order.eq(self.order), rejoin.order.valid.eq(self.order.valid & ~ordered),
            rejoin.epoch.eq(self.epoch), rejoin.settled.eq(1), rejoin.cleared.eq(1),
            rejoin.renewed.eq(1),
            self.working.eq(rejoin.working),
            self.idle.eq(sender.idle & assembler.idle & receiver.idle & rejoin.idle
                         & (self.order.valid == ordered)),
            self.waits.eq(waits), self.deadline.eq(deadline),
            self.sent.eq(sender.counters), self.received.eq(receiver.link_counters),
        ]
        with m.If(sender.failed.valid):
            m.d.sync += self.given_up.eq(self.given_up + 1)
        return m

"""Link receiver: admits each packet of each peer once, and acknowledges what has come."""

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS
from rtl.formats import NODE_BITS, SEQUENCE_BITS
from rtl.monitor.counters import CounterLayout
from rtl.network.layouts import AtNode
from rtl.network.link.layouts import Acknowledged, Arrivals

__all__ = ["LINK_RECEIVER_COUNTERS", "GoodPacket", "LinkReceiver", "PacketNumber", "link_ports"]

LINK_RECEIVER_COUNTERS = CounterLayout(
    "duplicates", "outside", "bad_epochs", "acknowledgements", "arrivals_dropped")

PacketNumber = data.StructLayout({"source": NODE_BITS, "sequence": SEQUENCE_BITS})
"""A packet's sender and its number there."""

GoodPacket = data.StructLayout({
    "valid": 1, "link": 1, "room": 1, "bad_epoch": 1, "number": PacketNumber,
    "acknowledge": SEQUENCE_BITS, "data": BEAT_BITS})
"""Event: the last beat, ``data``, of a packet that is good; or, with ``bad_epoch`` and without
``valid``, of one that is good but for its epoch. ``link``: a LINK packet. ``room``: it can be
stored."""


def link_ports() -> dict[str, wiring.Member]:
    """Return the ports of the receive side to the rest of the NIC.

    ack_delay: cycles that an acknowledgement waits for a header that carries it.
    time: cycles; may jump, while ``idle``, up to ``deadline``.
    ack_node, ack_value: the ``acknowledge`` for a header to ``ack_node``, combinational: the first
        of its packets that has not come.
    told: event :data:`rtl.network.layouts.AtNode`: a header leaves for ``node`` with what
        ``ack_value`` was, in the same cycle or up to four before.
    acknowledged: event :data:`rtl.network.link.layouts.Acknowledged` of each good packet, admitted
        or not.
    arrived: stream of :data:`rtl.network.link.layouts.Arrivals`, what LINK packets say.
    links: stream of the same, what LINK packets are to say.
    deadline, waits: while ``idle`` and ``waits``, something moves when ``time`` is ``deadline``.
    link_counters: :data:`LINK_RECEIVER_COUNTERS`: packets that had come before, packets beyond the
        window, packets of another epoch; LINK packets made; LINK packets that came and found no
        room.
    """
    return {
        "ack_delay": In(16), "time": In(32), "ack_node": In(NODE_BITS),
        "ack_value": Out(SEQUENCE_BITS), "told": In(AtNode), "acknowledged": Out(Acknowledged),
        "arrived": Out(stream.Signature(Arrivals)), "links": Out(stream.Signature(Arrivals)),
        "deadline": Out(32), "waits": Out(1), "link_counters": Out(LINK_RECEIVER_COUNTERS)}


class LinkReceiver(wiring.Component):
    """Tell of each packet whether it is the first of its number; keep and tell what has come.

    Parameters: ``nodes``; ``first_sequence``, number of each peer's first packet.

    Ports
    -----
    look: :data:`PacketNumber` of the packet that comes; any in other cycles.
    fresh, duplicate, outside: of what was at ``look`` two cycles ago: it has not come; it has; it
        is beyond the window. None of them before ``ready``.
    packet: event :data:`GoodPacket`, not in two cycles in a row, two cycles after its number was at
        ``look``. It is admitted if it is no LINK packet, ``fresh`` and has ``room``.
    ready: the state is cleared after reset.
    idle: nothing moves before ``time`` is ``deadline``.
    The others: see :func:`link_ports`.
    """

    def __init__(self, nodes: int, *, first_sequence: int = 0):
        self._nodes, self._first = nodes, first_sequence
        super().__init__({
            "look": In(PacketNumber), "fresh": Out(1), "duplicate": Out(1), "outside": Out(1),
            "packet": In(GoodPacket), "ready": Out(1), "idle": Out(1)} | link_ports())

    def elaborate(self, platform) -> Module:
        return Module()

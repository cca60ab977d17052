"""Peer windows: sequence numbers of the packets in flight to each peer."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import NODE_BITS, SEQUENCE_BITS
from rtl.memory import Ram, sweep
from rtl.network.layouts import AtNode
from rtl.network.link.layouts import WINDOW, Acknowledged
from rtl.network.link.renewal import Wipe

__all__ = ["AtSequence", "PeerWindows"]

AtSequence = data.StructLayout({"valid": 1, "node": NODE_BITS, "sequence": SEQUENCE_BITS})
"""Event: ``node`` has reached ``sequence``."""


class PeerWindows(wiring.Component):
    """Store four sequence numbers per peer, each at or behind the next one, modulo 2^24.

    ``oldest``: first packet that is not freed. ``told``: first packet that the peer has not
    acknowledged. ``sent``: first packet that has not left completely. ``next``: number of the next
    packet, at most a window ahead of ``oldest``. Packets of a failed peer are freed without
    acknowledgement, and ``told`` may stay behind.

    Parameters
    ----------
    nodes: number of peers.
    first_sequence: number of each peer's first packet.

    Ports
    -----
    new_node, next, full: destination of the next packet, its number, and whether its window is
        full. Combinational.
    number: that packet gets its number.
    kept: event :data:`AtSequence`: the packet with that number has left completely.
    acknowledged: event :data:`rtl.network.link.layouts.Acknowledged`.
    heard: event :data:`rtl.network.layouts.AtNode`: ``told`` has advanced.
    bad: event: an acknowledgement of packets that were not sent.
    node, oldest, told, sent: a peer and its numbers, combinational.
    freed: event :data:`AtSequence`: the new ``oldest``.
    held, none: a peer, and whether all its numbers are freed; combinational.
    wipe: :data:`rtl.network.link.renewal.Wipe`: the numbers of the peer get their values after
        reset; only while no event of the peer occurs.
    idle: inactive until an input changes.
    """

    LATENCY = {("acknowledgement", "told, and heard"): 2}
    RATE = "1 event of each kind per cycle"

    def __init__(self, nodes: int, first_sequence: int = 0):
        self._nodes, self._first = nodes, first_sequence
        super().__init__({
            "new_node": In(NODE_BITS), "next": Out(SEQUENCE_BITS), "full": Out(1),
            "number": In(1), "kept": In(AtSequence), "acknowledged": In(Acknowledged),
            "heard": Out(AtNode), "bad": Out(1), "node": In(NODE_BITS),
            "oldest": Out(SEQUENCE_BITS), "told": Out(SEQUENCE_BITS), "sent": Out(SEQUENCE_BITS),
            "freed": In(AtSequence), "held": In(NODE_BITS), "none": Out(1), "wipe": In(Wipe),
            "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        address, swept = sweep(m, self._nodes)
        event = Signal(Acknowledged)
        m.d.sync += [event.eq(self.acknowledged),
                     event.valid.eq(self.acknowledged.valid & swept)]

        def numbers(name, valid, node, value, *readers, busy=None):
            """Return the outputs of memories with equal contents, one for each of the ``readers``.
            They have no free cycle while ``busy``, by default ``valid``."""
            shown = []
            counts = swept & ((valid if busy is None else busy) | ~self.wipe.valid)
            for k, reader in enumerate(readers):
                m.submodules[f"{name}{k}"] = ram = Ram(SEQUENCE_BITS, self._nodes, latency=0)
                m.d.comb += [
                    ram.write_en.eq(valid | ~counts),
                    ram.write_addr.eq(Mux(counts, node, Mux(swept, self.wipe.node, address))),
                    ram.write_data.eq(Mux(counts, value, self._first)),
                    ram.read_addr.eq(reader),
                ]
                shown.append(ram.read_data)
            return shown

        moves = Signal()
        following, numbered = numbers(
            "next", self.number, self.new_node, self.next + 1, self.new_node, self.held)
        sent, sent_heard = numbers(
            "sent", self.kept.valid, self.kept.node, self.kept.sequence + 1, self.node, event.node)
        oldest, oldest_new, oldest_held = numbers(
            "oldest", self.freed.valid, self.freed.node, self.freed.sequence, self.node,
            self.new_node, self.held)
        told, told_heard = numbers(
            "told", moves, event.node, event.acknowledge, self.node, event.node,
            busy=event.valid)
        ahead, beyond = (Signal(SEQUENCE_BITS, name=name) for name in ("ahead", "beyond"))
        used = Signal(WINDOW.bit_length())
        m.d.comb += [
            self.next.eq(following), self.sent.eq(sent), self.oldest.eq(oldest),
            self.told.eq(told), used.eq(following - oldest_new),
            self.full.eq(used[-1] & swept), self.none.eq(numbered == oldest_held),
            # A window is far less than half of the numbers, so the signs decide.
            ahead.eq(event.acknowledge - told_heard), beyond.eq(sent_heard - event.acknowledge),
            moves.eq(event.valid & (event.acknowledge != told_heard) & ~ahead[-1] & ~beyond[-1]),
            self.idle.eq(swept & ~event.valid & ~self.heard.valid),
        ]
        m.d.sync += [self.heard.valid.eq(moves), self.heard.node.eq(event.node),
                     self.bad.eq(event.valid & beyond[-1])]
        return m

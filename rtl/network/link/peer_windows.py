"""Peer windows: which sequence numbers are on their way to each peer."""

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
"""Event: something of ``node`` has reached ``sequence``."""


class PeerWindows(wiring.Component):
    """Keep four sequence numbers a peer, each at or behind the next one, modulo 2^24.

    ``oldest``: the first that is not freed; ``told``: the first that the peer has not
    acknowledged; ``sent``: the first that has not left whole; ``next``: that of the next packet,
    at most a window ahead of ``oldest``. Once a peer is given up, all are freed unacknowledged, and
    ``told`` may stay behind. Latency and rate: see ``LATENCY`` and ``RATE``.

    Parameters: ``nodes``; ``first_sequence``, where all begin.

    Ports
    -----
    new_node: to whom a packet is to go; next: its number; full: the window is. Combinational.
        number: that packet gets its number.
    kept: event :data:`AtSequence`: a packet with that number has left whole.
    acknowledged: event :data:`rtl.network.link.layouts.Acknowledged`. heard: event
        :data:`rtl.network.layouts.AtNode`: ``told`` has moved. bad: it was beyond what was sent.
    node: whose numbers ``oldest``, ``told`` and ``sent`` are, combinational.
    freed: event :data:`AtSequence`: ``oldest`` moves there.
    held: a node; none: all of its numbers are freed, combinational.
    wipe: :data:`rtl.network.link.renewal.Wipe`: its numbers become those after reset; only while
        nothing of it happens.
    idle.
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
            """Return what memories with the same contents show of each of the ``readers``; they
            have no free cycle while ``busy``, which is ``valid`` unless given."""
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
            # As a window is far less than half of the numbers, their signs tell.
            ahead.eq(event.acknowledge - told_heard), beyond.eq(sent_heard - event.acknowledge),
            moves.eq(event.valid & ahead.any() & ~ahead[-1] & ~beyond[-1]),
            self.idle.eq(swept & ~event.valid & ~self.heard.valid),
        ]
        m.d.sync += [self.heard.valid.eq(moves), self.heard.node.eq(event.node),
                     self.bad.eq(event.valid & beyond[-1])]
        return m

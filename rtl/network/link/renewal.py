"""Rejoin support: epochs of received packets, and the sender's reset of a peer's state."""

from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data

from rtl.formats import NODE_BITS, EmberHeader
from rtl.network.link.layouts import WINDOW

__all__ = ["EPOCH_BITS", "PeerEpoch", "Rejoined", "Wipe", "renew"]

EPOCH_BITS = EmberHeader["epoch"].width

PeerEpoch = data.StructLayout(
    {"valid": 1, "node": NODE_BITS, "closed": 1, "change": EPOCH_BITS})
"""Event: from now on packets of ``node`` are rejected if ``closed``; else their epoch must be
register ``link_epoch`` XOR ``change``."""

Rejoined = data.StructLayout({"valid": 1, "node": NODE_BITS, "change": EPOCH_BITS})
"""Event: from now on packets to ``node`` have the epoch register ``link_epoch`` XOR ``change``; the
peer is no longer failed."""

Wipe = data.StructLayout({"valid": 1, "node": NODE_BITS, "word": range(WINDOW // 64)})
"""The state of ``node`` gets its value after reset, in a free cycle of each memory; of the bits of
a window, the bits of ``word``. Each word lasts two cycles: every event except that of a kept packet
leaves a free cycle in two consecutive cycles."""


def renew(m: Module, sender: Any, parts: SimpleNamespace) -> None:
    """Let ``sender``, a :class:`rtl.network.link.sender.LinkSender` with ``parts``, close a peer,
    clear its state, and open it again."""
    windows, walker, room, peers = parts.windows, parts.walker, parts.room, parts.peers
    clear, wipe = parts.deadlines.clear, sender.wipe
    with m.If(sender.headers.valid & sender.headers.ready):
        m.d.sync += peers.step.eq(sender.headers.payload.step)
    m.d.comb += [
        peers.close.eq(sender.close), sender.closed.eq(peers.closed),
        peers.rejoined.eq(sender.rejoined), walker.held.eq(sender.held),
        windows.held.eq(sender.held.node), room.held.eq(sender.held.node),
        sender.busy.eq(walker.busy),
        # Packets admitted from now on are discarded, or get new numbers.
        parts.intake.again.eq(sender.close.valid | sender.rejoined.valid),
        *(part.wipe.eq(wipe) for part in (windows, walker, parts.trips)),
    ]
    wiped = Signal()
    m.d.sync += [sender.empty.eq(windows.none & room.none), wiped.eq(wipe.valid & (wipe.word == 0))]
    # A walk does not end in two consecutive cycles, which are the cycles of a word.
    m.d.comb += [clear.valid.eq(walker.clear.valid | wiped),
                 clear.node.eq(Mux(walker.clear.valid, walker.clear.node, wipe.node))]

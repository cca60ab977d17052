"""What lets a peer come back: which packets of it count, and what the sender forgets of it."""

from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Module
from amaranth.lib import data

from rtl.formats import NODE_BITS, EmberHeader
from rtl.network.link.layouts import WINDOW

__all__ = ["EPOCH_BITS", "PeerEpoch", "Rejoined", "Wipe", "renew"]

EPOCH_BITS = EmberHeader["epoch"].width

PeerEpoch = data.StructLayout(
    {"valid": 1, "node": NODE_BITS, "closed": 1, "change": EPOCH_BITS})
"""Event: from now on packets of ``node`` are refused, if ``closed``, or else belong to the link if
their epoch is that of register ``link_epoch`` exclusive-or ``change``."""

Rejoined = data.StructLayout({"valid": 1, "node": NODE_BITS, "change": EPOCH_BITS})
"""Event: packets to ``node`` have, from now on, the epoch of register ``link_epoch`` exclusive-or
``change``; the peer is no longer given up."""

Wipe = data.StructLayout({"valid": 1, "node": NODE_BITS, "word": range(WINDOW // 64)})
"""What is kept of ``node`` gets its value after reset, whenever its memory has a free cycle; of the
bits of a window, those of ``word``. It lasts two cycles a word, since no event but that of a kept
packet comes in two cycles in a row."""


def renew(m: Module, sender: Any, parts: SimpleNamespace) -> None:
    """Let ``sender``, a :class:`rtl.network.link.sender.LinkSender` of ``parts``, give up a peer,
    forget it, and take it back."""
    windows, walker, room, peers = parts.windows, parts.walker, parts.room, parts.peers
    clear, wipe = parts.deadlines.clear, sender.wipe
    with m.If(sender.headers.valid & sender.headers.ready):
        m.d.sync += peers.step.eq(sender.headers.payload.step)
    m.d.comb += [
        peers.close.eq(sender.close), sender.closed.eq(peers.closed),
        peers.rejoined.eq(sender.rejoined), walker.held.eq(sender.held),
        windows.held.eq(sender.held.node), room.held.eq(sender.held.node),
        sender.busy.eq(walker.busy),
        # What is let in from now on is swallowed, or gets new numbers.
        parts.intake.again.eq(sender.close.valid | sender.rejoined.valid),
        *(part.wipe.eq(wipe) for part in (windows, walker, parts.trips)),
    ]
    m.d.sync += [sender.empty.eq(windows.none & room.none), clear.eq(walker.clear)]
    # A walk does not end in two cycles in a row, which are those of a word.
    with m.If(wipe.valid & (wipe.word == 0) & ~walker.clear.valid):
        m.d.sync += [clear.valid.eq(1), clear.node.eq(wipe.node)]

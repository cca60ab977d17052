"""Rejoin: closes the link to a restarted peer, clears its state, and opens it with a new epoch."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import NODE_BITS
from rtl.network.layouts import AtNode
from rtl.network.link.layouts import Failed
from rtl.network.link.renewal import EPOCH_BITS, PeerEpoch, Rejoined, Wipe

__all__ = ["LinkRejoin", "Order"]

Order = data.StructLayout({"valid": 1, "node": NODE_BITS, "epoch": EPOCH_BITS})
"""Event: ``node`` was restarted, and has ``epoch``."""

SETTLING = 8
"""Cycles until the effects of a peer's last packet have reached all blocks, except queues."""


class LinkRejoin(wiring.Component):
    """Restart the link to a peer in both directions without affecting other peers.

    1. The peer is declared failed, unless it has failed. Its packets in the pool are freed, and its
       received packets are rejected.
    2. When its last received packet has left, no packet to it remains, and no walk over its packets
       runs, all its state in sender and receiver gets the values after reset.
    3. When all other blocks have finished with the peer (``settled``), the count of its consumed
       beats is cleared.
    4. The sender opens. In the next cycle the credits that the peer returns restart. Then the
       receiver opens.

    A peer that fails in the sender is closed in the receiver too.

    Ports
    -----
    order: event :data:`Order`; not while ``working``.
    epoch: register ``link_epoch``.
    failed: event of the sender.
    close, closed, held, empty, sender_busy, wipe, rejoined: connections to a
        :class:`rtl.network.link.sender.LinkSender`.
    peer, mark, passed, receiver_busy, held, wipe: connections to the receiver,
        :func:`rtl.network.link.receiver.link_ports`.
    settled: no data of ``held.node`` is in flight in the NIC; relevant while the peer is held.
    clear, cleared: set the consumed beats of ``held.node`` to 0; no header leaves for it meanwhile.
    renew, renewed: restart the credits that ``held.node`` returns, from the cycle after
        ``rejoined`` until ``renewed``.
    working: an order is in progress.
    idle: no order in progress, and none arrives.
    """

    LATENCY = {("order", "rejoined, if nothing is under way"): 88}

    def __init__(self):
        super().__init__({
            "order": In(Order), "epoch": In(EPOCH_BITS), "failed": In(Failed),
            "close": Out(AtNode), "closed": In(1), "held": Out(AtNode), "empty": In(1),
            "sender_busy": In(1), "wipe": Out(Wipe), "rejoined": Out(Rejoined),
            "peer": Out(PeerEpoch), "mark": Out(1), "passed": In(1), "receiver_busy": In(1),
            "settled": In(1), "clear": Out(1), "cleared": In(1), "renew": Out(1),
            "renewed": In(1), "working": Out(1), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        node, change = Signal(NODE_BITS), Signal(EPOCH_BITS)
        count = Signal(range(2 << len(self.wipe.word)))
        waited = count[:SETTLING.bit_length()] == SETTLING
        m.d.comb += [
            self.close.node.eq(node), self.held.node.eq(node), self.wipe.node.eq(node),
            self.wipe.word.eq(count >> 1), self.rejoined.node.eq(node),
            self.rejoined.change.eq(change),
        ]
        m.d.sync += [
            count.eq(0),
            # A failed peer is rejected in the receiver too.
            self.peer.valid.eq(self.failed.valid), self.peer.node.eq(self.failed.node),
            self.peer.closed.eq(1), self.peer.change.eq(change),
        ]
        opens = Signal()
        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.sync += [node.eq(self.order.node), change.eq(self.order.epoch ^ self.epoch)]
                with m.If(self.order.valid):
                    m.d.sync += self.close.valid.eq(1)
                    m.next = "CLOSE"
            with m.State("CLOSE"):
                with m.If(self.closed):
                    m.d.sync += self.close.valid.eq(0)
                    m.next = "SETTLE"
            with m.State("SETTLE"):
                m.d.sync += count.eq(count + 1)
                with m.If(waited):
                    m.d.comb += self.mark.eq(1)
                    m.next = "MARKED"
            with m.State("MARKED"):
                m.next = "DRAIN"
            with m.State("DRAIN"):
                with m.If(self.passed & self.empty):
                    m.d.sync += self.held.valid.eq(1)
                    m.next = "HOLD"
            with m.State("HOLD"):
                m.d.sync += count.eq(count + ~waited)
                with m.If(waited & ~self.sender_busy & ~self.receiver_busy):
                    m.d.sync += [count.eq(0), self.wipe.valid.eq(1)]
                    m.next = "WIPE"
            with m.State("WIPE"):
                m.d.sync += count.eq(count + 1)
                with m.If(count.all()):
                    m.d.sync += self.wipe.valid.eq(0)
                    m.next = "WAIT"
            with m.State("WAIT"):
                with m.If(self.settled):
                    m.next = "CLEAR"
            with m.State("CLEAR"):
                m.d.comb += self.clear.eq(1)
                with m.If(self.cleared):
                    m.d.sync += self.rejoined.valid.eq(1)
                    m.next = "SEND"
            with m.State("SEND"):
                m.d.sync += [self.held.valid.eq(0), self.rejoined.valid.eq(0)]
                m.next = "RENEW"
            with m.State("RENEW"):
                m.d.comb += self.renew.eq(1)
                with m.If(self.renewed):
                    m.next = "OPEN"
            with m.State("OPEN"):
                with m.If(~self.failed.valid):
                    # Unless the peer has failed again.
                    m.d.comb += opens.eq(~self.closed)
                    m.next = "IDLE"
        with m.If(opens):
            m.d.sync += [self.peer.valid.eq(1), self.peer.node.eq(node), self.peer.closed.eq(0)]
        m.d.comb += [self.working.eq(~fsm.ongoing("IDLE")),
                     self.idle.eq(fsm.ongoing("IDLE") & ~self.order.valid & ~self.peer.valid)]
        return m

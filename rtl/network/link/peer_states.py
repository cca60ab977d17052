"""Peer states: failed peers, and the epoch of the packets to each peer."""

from amaranth.hdl import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import NODE_BITS
from rtl.memory import Ram, sweep
from rtl.network.layouts import AtNode
from rtl.network.link.layouts import Failed
from rtl.network.link.renewal import EPOCH_BITS, Rejoined

__all__ = ["PeerStates"]


class PeerStates(wiring.Component):
    """Store for each peer whether it has failed, and the epoch change of packets to it.

    Parameters: ``nodes``.

    Ports
    -----
    spent: event :data:`rtl.network.link.layouts.Failed`: a packet was sent for the last time.
    close, closed, step: :data:`rtl.network.layouts.AtNode`, held until ``closed``: declare the peer
        failed unless it has failed; ``step`` is then the step in ``failed``.
    failed: event :data:`rtl.network.link.layouts.Failed`: a peer has failed, from the next cycle
        on.
    lost: bit mask of failed peers.
    rejoined: event :data:`rtl.network.link.renewal.Rejoined`.
    node, change: a peer and its epoch change, combinational.
    """

    LATENCY = {("failed, rejoined", "lost"): 1}

    def __init__(self, nodes: int):
        self._nodes = nodes
        super().__init__({
            "spent": In(Failed), "close": In(AtNode), "step": In(Failed["step"].shape),
            "closed": Out(1), "failed": Out(Failed), "lost": Out(nodes),
            "rejoined": In(Rejoined), "node": In(NODE_BITS), "change": Out(EPOCH_BITS)})

    def elaborate(self, platform) -> Module:
        m = Module()
        failed, spent, close, back = self.failed, self.spent, self.close, self.rejoined
        m.submodules.changes = changes = Ram(EPOCH_BITS, self._nodes, latency=0)
        address, swept = sweep(m, self._nodes)
        m.d.comb += [
            self.closed.eq(self.lost.bit_select(close.node, 1)),
            # ``spent`` has priority; its peer may have failed meanwhile.
            failed.valid.eq(Mux(spent.valid, ~self.lost.bit_select(spent.node, 1),
                                close.valid & ~self.closed)),
            failed.node.eq(Mux(spent.valid, spent.node, close.node)),
            failed.step.eq(Mux(spent.valid, spent.step, self.step)),
            changes.write_en.eq(back.valid | ~swept),
            changes.write_addr.eq(Mux(swept, back.node, address)),
            changes.write_data.eq(Mux(swept, back.change, 0)),
            changes.read_addr.eq(self.node), self.change.eq(Mux(swept, changes.read_data, 0)),
        ]
        with m.If(failed.valid):
            m.d.sync += self.lost.bit_select(failed.node, 1).eq(1)
        with m.If(back.valid):
            m.d.sync += self.lost.bit_select(back.node, 1).eq(0)
        return m

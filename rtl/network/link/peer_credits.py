"""Peer credits: credits of lookups count from 0 for a peer that comes back, and nothing is owed."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import CREDIT_BITS, NODE_BITS, RECORDS_PER_BEAT, Opcode
from rtl.memory import Ram, sweep
from rtl.network.credits import CreditCounter
from rtl.network.layouts import AtNode, Credit, FreedBeats

__all__ = ["Leaving", "PeerCredits"]

Leaving = data.StructLayout({"valid": 1, "node": NODE_BITS, "opcode": 8, "count": 16})
"""Event: the link takes a packet for ``node``, to be sent or dropped."""


class PeerCredits(wiring.Component):
    """Follow the lookups of each peer until their answers reach the link, and beats of lookups to
    each until they do; keep the credits of a peer that comes back apart from those before.

    The counts of a credit gate go on: the credit that a new peer returns is less than them by the
    beats that had reached the link when it was taken back. Beats behind the gate that had not are
    sent to the new peer. All counts are modulo 2^16, which is more than may be under way. Latency:
    see ``LATENCY``.

    Parameters: ``nodes``.

    Ports
    -----
    asked: event :data:`rtl.network.layouts.FreedBeats`: as many lookups of ``node`` were taken.
        refused: event: one of them gets no answer. leaving: event :data:`Leaving`.
    held: a node; settled: each of its lookups was answered, and the answer has reached the link.
    returned: event :data:`rtl.network.layouts.Credit` of a header. credit: the same for the gate of
        lookups.
    renew: until ``renewed``, from the cycle after the link takes ``held`` back: the credits of it
        begin anew. No header of it comes meanwhile, and no packet for it leaves in the first cycle
        and the one before.
    idle.
    """

    LATENCY = {("returned", "credit"): 0, ("leaving", "settled"): 3}

    def __init__(self, nodes: int):
        self._nodes = nodes
        super().__init__({
            "asked": In(FreedBeats), "refused": In(AtNode), "leaving": In(Leaving),
            "held": In(NODE_BITS), "settled": Out(1), "returned": In(Credit),
            "credit": Out(Credit), "renew": In(1), "renewed": Out(1), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        counters = {name: CreditCounter(self._nodes, several=True)
                    for name in ("asked", "refused", "answered", "sent")}
        for name, counter in counters.items():
            m.submodules[name] = counter
            m.d.comb += counter.node[0].eq(self.held)
        asked, refused, answered, sent = counters.values()
        leaving, beats = Signal(Leaving), RECORDS_PER_BEAT.bit_length() - 1
        m.d.sync += [
            asked.freed.eq(self.asked), leaving.eq(self.leaving),
            refused.freed.valid.eq(self.refused.valid), refused.freed.node.eq(self.refused.node),
            refused.freed.beats.eq(1),
            self.settled.eq(asked.value[0] == (refused.value[0] + answered.value[0])[:CREDIT_BITS]),
        ]
        for counter, opcode, count in (
                (answered, Opcode.VECTORS, leaving.count),
                (sent, Opcode.LOOKUPS, (leaving.count + RECORDS_PER_BEAT - 1) >> beats)):
            m.d.comb += [
                counter.freed.valid.eq(leaving.valid & (leaving.opcode == opcode)),
                counter.freed.node.eq(leaving.node), counter.freed.beats.eq(count),
            ]
        # Credits of a peer that came back are that far behind.
        m.submodules.behind = behind = Ram(CREDIT_BITS, self._nodes, latency=0)
        address, swept = sweep(m, self._nodes)
        renewing, before = Signal(), Signal(CREDIT_BITS, reset_less=True)
        m.d.comb += [
            self.renewed.eq(renewing & ~self.returned.valid),
            behind.read_addr.eq(self.returned.node),
            behind.write_en.eq(self.renewed | ~swept),
            behind.write_addr.eq(Mux(swept, self.held, address)),
            behind.write_data.eq(Mux(swept, before, 0)),
            self.credit.valid.eq(self.returned.valid | self.renewed),
            self.credit.node.eq(Mux(self.returned.valid, self.returned.node, self.held)),
            self.credit.value.eq(Mux(self.returned.valid, self.returned.value + behind.read_data,
                                     before)),
            self.idle.eq(swept & ~leaving.valid & ~asked.freed.valid & ~refused.freed.valid
                         & asked.idle),
        ]
        # What is let in since then is sent to the new peer.
        m.d.sync += renewing.eq(self.renew & ~self.renewed)
        with m.If(~renewing):
            m.d.sync += before.eq(sent.value[0])
        return m

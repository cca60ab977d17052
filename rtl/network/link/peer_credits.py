"""Peer credits: restart the credits of lookups or bags at 0 for a peer that rejoins."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import CREDIT_BITS, NODE_BITS, RECORDS_PER_BEAT, Opcode
from rtl.memory import Ram, sweep
from rtl.network.credits import CreditCounter
from rtl.network.layouts import AtNode, Credit, FreedBeats

__all__ = ["Leaving", "PeerCredits"]

Leaving = data.StructLayout({"valid": 1, "node": NODE_BITS, "opcode": 8, "count": 16})
"""Event: the link takes a packet for ``node``, to send or to discard."""


class PeerCredits(wiring.Component):
    """Track the lookups of each peer until their answers reach the link, and the lookup beats to
    each peer until they reach it; keep the credits of a rejoined peer apart from the previous ones.
    With ``bags``, do the same for bags.

    The counts of a credit gate continue. The credit that a rejoined peer returns is lower by the
    beats that had reached the link before the peer rejoined. Beats behind the gate that had not
    reached the link go to the rejoined peer. All counts are modulo 2^16, more than may be in
    flight.

    Parameters: ``nodes``; ``bags``, whether packets of bags are tracked instead of lookups.

    Ports
    -----
    asked: event :data:`rtl.network.layouts.FreedBeats`: number of lookups, or of beats of bags,
        taken from ``node``.
    refused: event: one of these lookups gets no answer, or one of these beats was consumed.
    passed: event, with ``bags``: a bag of ``node`` gets an answer; no later than the event of its
        last beat.
    leaving: event :data:`Leaving`.
    held: a node.
    settled: every lookup or bag of ``held`` was answered, and the answers have reached the link.
    returned: event :data:`rtl.network.layouts.Credit` of a header.
    credit: event :data:`rtl.network.layouts.Credit` for the gate of lookups or bags.
    renew, renewed: restart the credits of ``held``, from the cycle after the link takes it back
        until ``renewed``. No header of the peer arrives meanwhile, and no packet to it leaves in
        the first cycle or the one before.
    idle: inactive until an input changes.
    """

    LATENCY = {("returned", "credit"): 0, ("leaving", "settled"): 3}

    def __init__(self, nodes: int, *, bags: bool = False):
        self._nodes, self._bags = nodes, bags
        self._asks, self._answers = (
            (Opcode.BAGS, Opcode.BAG_VECTORS) if bags else (Opcode.LOOKUPS, Opcode.VECTORS))
        super().__init__({
            "asked": In(FreedBeats), "refused": In(AtNode), "leaving": In(Leaving),
            "held": In(NODE_BITS), "settled": Out(1), "returned": In(Credit),
            "credit": Out(Credit), "renew": In(1), "renewed": Out(1), "idle": Out(1),
            **({"passed": In(AtNode)} if bags else {})})

    def elaborate(self, platform) -> Module:
        m = Module()
        counters = {name: CreditCounter(self._nodes, several=True)
                    for name in ("asked", "refused", "answered", "sent")}
        for name, counter in counters.items():
            m.submodules[name] = counter
            m.d.comb += counter.node[0].eq(self.held)
        asked, refused, answered, sent = counters.values()
        owed, pending = asked.value[0], refused.freed.valid
        if self._bags:
            m.submodules.passed = passed = CreditCounter(self._nodes)
            m.d.sync += passed.freed.eq(self.passed)
            m.d.comb += passed.node[0].eq(self.held)
            # Beats that were not consumed, and bags without an answer: neither hides the other.
            owed, pending = (owed + passed.value[0])[:CREDIT_BITS], pending | passed.freed.valid
        leaving, beats = Signal(Leaving), RECORDS_PER_BEAT.bit_length() - 1
        m.d.sync += [
            asked.freed.eq(self.asked), leaving.eq(self.leaving),
            refused.freed.valid.eq(self.refused.valid), refused.freed.node.eq(self.refused.node),
            refused.freed.beats.eq(1),
            self.settled.eq(owed == (refused.value[0] + answered.value[0])[:CREDIT_BITS]),
        ]
        for counter, opcode, count in (
                (answered, self._answers, leaving.count),
                (sent, self._asks, (leaving.count + RECORDS_PER_BEAT - 1) >> beats)):
            m.d.comb += [
                counter.freed.valid.eq(leaving.valid & (leaving.opcode == opcode)),
                counter.freed.node.eq(leaving.node), counter.freed.beats.eq(count),
            ]
        # The number of beats by which the credits of a rejoined peer are behind.
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
            self.idle.eq(swept & ~leaving.valid & ~asked.freed.valid & ~pending
                         & asked.idle),
        ]
        # Packets admitted since then go to the rejoined peer.
        m.d.sync += renewing.eq(self.renew & ~self.renewed)
        with m.If(~renewing):
            m.d.sync += before.eq(sent.value[0])
        return m

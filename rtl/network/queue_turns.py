"""Queue turns: selects the next queue and the number of its records that leave."""

from itertools import pairwise

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.formats import CREDIT_BITS, NODE_BITS
from rtl.network.layouts import AtNode
from rtl.network.queue_room import Found, Gone

__all__ = ["BURST", "LEAST", "QueueTurns"]

BURST = 15
"""Most records of a turn: one less than a power of two."""
LEAST = 8
"""Fewest records of a turn if the credit covers only some records. Without this bound, each record
would leave as credit arrives, in its own beat and soon in its own packet."""


class QueueTurns(wiring.Component):
    """Serve the queues that have records in turn, within their credit.

    A queue is due when a record arrives or when records were left behind. At its turn, as many
    records leave as the credit covers, at most :data:`BURST`, one after the other. The next queues
    are inspected meanwhile. If the credit covers only some records and less than ``least``, none
    leave. A queue is inspected again only after its records have left, so no credit is used twice.

    Every due queue is inspected at the latest after one burst of each other queue.

    Parameters
    ----------
    nodes: number of queues.
    places: records of a queue.

    Ports
    -----
    arrived: event: a record is in the queue of ``node``.
    look: a node.
    found: counts of node ``look``, combinational (:func:`~rtl.network.queue_room.Found`).
    least: fewest records that leave if the credit covers only some; 0 counts as 1.
    free: a record may leave.
    pop, node, place: the record at ``place`` of the queue of ``node`` leaves.
    gone: event :data:`~rtl.network.queue_room.Gone`, before the node is inspected again.
    short: event: a queue has more records than beats of credit.
    idle: no queue has records.
    """

    LATENCY = {("arrival", "pop"): 6}
    RATE = "1 record per cycle, 1 look per cycle"

    def __init__(self, nodes: int, places: int):
        self._nodes, self._found = nodes, Found(places)
        super().__init__({
            "arrived": In(AtNode), "look": Out(NODE_BITS), "found": In(self._found),
            "least": In(range(LEAST + 1)), "free": In(1), "pop": Out(1), "node": Out(NODE_BITS),
            "place": Out(range(places)),
            "gone": Out(Gone), "short": Out(1), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        n = self._nodes
        # Queues that are due, and queues that were chosen and are not finished.
        due, busy = Signal(n), Signal(n)
        come, chosen, back, done = (Signal(n, name=name)
                                    for name in ("come", "chosen", "back", "done"))
        move, finish = Signal(), Signal()
        m.d.comb += come.eq(Mux(self.arrived.valid, 1 << self.arrived.node, 0))
        m.d.sync += [due.eq((due & ~chosen) | come | back), busy.eq((busy & ~done) | chosen)]

        # The queue in each pipeline stage: its one-hot bit, which avoids decoding its number; its
        # number, from the second stage on; its counts, and the number of records that may leave.
        bits, found = BURST.bit_length(), self.found
        parts = ({}, {"node": NODE_BITS}, {"node": NODE_BITS, "found": self._found},
                 {"node": NODE_BITS, "waiting": bits, "longer": 1, "credit": bits,
                  "gone": CREDIT_BITS},
                 {"node": NODE_BITS, "left": bits, "more": 1, "short": 1, "gone": CREDIT_BITS})
        names = ("line", "named", "seen", "cut", "burst")
        valid = [Signal(name=f"{name}_valid") for name in names]
        line, named, seen, cut, burst = stages = [
            Signal(data.StructLayout({"queue": n} | part), reset_less=True, name=name)
            for name, part in zip(names, parts, strict=True)]

        # Round robin: the first one after the last one chosen, else the first of all. The last
        # choice is known one cycle late, when it cannot be chosen again anyway.
        able, later, after = Signal(n), Signal(n), Signal(n)
        m.d.comb += [
            able.eq(due & ~busy), later.eq(able & after),
            chosen.eq(Mux(move, Mux(later.any(), _lowest(later), _lowest(able)), 0)),
        ]
        with m.If(valid[0]):
            m.d.sync += after.eq(~(line.queue | (line.queue - 1)))

        place, short, enough = Signal.like(self.place, reset_less=True), Signal(), Signal()
        m.d.comb += [self.look.eq(named.node), short.eq(cut.waiting > cut.credit),
                     enough.eq(cut.credit >= self.least)]
        with m.If(move):
            m.d.sync += [now.eq(before) for before, now in pairwise((able.any(), *valid))]
            m.d.sync += [now.queue.eq(before.queue) for before, now in pairwise(stages)]
            m.d.sync += [now.node.eq(before.node) for before, now in pairwise(stages[1:])]
            m.d.sync += [
                line.queue.eq(chosen),
                named.node.eq(Cat(Cat(line.queue[k] for k in range(n) if k >> bit & 1).any()
                                  for bit in range(max(1, ceil_log2(n))))),
                seen.found.eq(found),
                cut.waiting.eq(_cut(seen.found.waiting, bits)),
                cut.longer.eq(seen.found.waiting[bits:].any()),
                cut.credit.eq(_cut(seen.found.credit.as_signed(), bits)),
                cut.gone.eq(seen.found.gone),
                burst.left.eq(Mux(~short, cut.waiting, Mux(enough, cut.credit, 0))),
                burst.short.eq(short),
                burst.more.eq(short | cut.longer),
                burst.gone.eq(cut.gone), place.eq(cut.gone),
            ]
        with m.Elif(self.pop):
            m.d.sync += [burst.left.eq(burst.left - 1), place.eq(place + 1)]

        fresh = Signal()
        m.d.sync += fresh.eq(move & valid[-2])
        m.d.comb += [
            self.pop.eq(valid[-1] & burst.left.any() & self.free),
            self.node.eq(burst.node), self.place.eq(place),
            finish.eq(valid[-1] & ((burst.left == 0) | ((burst.left == 1) & self.free))),
            move.eq(~valid[-1] | finish),
            done.eq(Mux(finish, burst.queue, 0)), back.eq(Mux(burst.more, done, 0)),
            self.gone.valid.eq(fresh), self.gone.node.eq(burst.node),
            self.gone.value.eq(burst.gone + burst.left),
            self.short.eq(finish & burst.short),
            self.idle.eq(~(due | busy).any()),
        ]
        return m


def _lowest(queues: Value) -> Value:
    """Return the lowest set bit of ``queues``, alone."""
    return queues & (~queues + 1)[:len(queues)]


def _cut(value: Value, bits: int) -> Value:
    """Return ``value`` limited to the range 0 to 2^bits - 1."""
    below = value[-1] if value.shape().signed else C(0)
    over = value[bits:len(value) - value.shape().signed].any()
    return Mux(below, 0, Mux(over, (1 << bits) - 1, value[:bits]))

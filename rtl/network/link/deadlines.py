"""Deadlines: the time of each peer's next check, and the earliest of these times."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import NODE_BITS
from rtl.memory import Ram
from rtl.network.layouts import AtNode

__all__ = ["Deadline", "Deadlines"]

Deadline = data.StructLayout({"valid": 1, "node": NODE_BITS, "time": 32})
"""Event: a check of ``node`` is due at ``time``."""


class Deadlines(wiring.Component):
    """Store one deadline per node, and report when it is over.

    After each change, and when the earliest deadline is over, the block scans all nodes, one per
    cycle. Then it stays inactive until ``time`` reaches ``deadline``.

    Parameters: ``nodes``.

    Ports
    -----
    set: event :data:`Deadline`.
    clear: event :data:`rtl.network.layouts.AtNode`: removes the deadline; not of the node of
        ``set`` in the same cycle.
    active: bit mask of nodes that have a deadline, from the cycle after the event on.
    time: cycle counter; may jump, while ``idle``, up to ``deadline``.
    due: event: the deadline of ``node`` is over, and is removed.
    deadline, waits: while ``idle`` and ``waits``, ``deadline`` is the earliest deadline.
    idle: inactive until ``time`` reaches ``deadline``.
    """

    LATENCY = {("deadline over", "due, at most"): "nodes + 3"}
    RATE = "1 event per cycle; while they come in every cycle, none is due"

    def __init__(self, nodes: int):
        self._nodes = nodes
        super().__init__({
            "set": In(Deadline), "clear": In(AtNode), "active": Out(nodes), "time": In(32),
            "due": Out(AtNode), "deadline": Out(32), "waits": Out(1), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        n = self._nodes
        m.submodules.times = times = Ram(32, n, latency=0)
        look, left = Signal(range(max(2, n))), Signal(range(n + 1))
        seen, node = Signal(), Signal.like(look, reset_less=True)
        at, best = Signal(32, reset_less=True), Signal(32, reset_less=True)
        some, changed, over, expired = Signal(), Signal(), Signal(), Signal()
        earlier, counts, settled = Signal(), Signal(), Signal()
        m.d.comb += [
            changed.eq(self.set.valid | self.clear.valid),
            times.write_en.eq(self.set.valid), times.write_addr.eq(self.set.node),
            times.write_data.eq(self.set.time), times.read_addr.eq(look),
            counts.eq(seen & self.active.bit_select(node, 1) & ~changed),
            over.eq(~(self.time - at)[31]), earlier.eq((at - best)[31] | ~some),
            self.due.valid.eq(counts & over), self.due.node.eq(node),
            settled.eq((left == 0) & ~seen), expired.eq(settled & some & ~(self.time - best)[31]),
            self.deadline.eq(best), self.waits.eq(settled & some),
            self.idle.eq(settled & ~expired & ~changed),
        ]
        m.d.sync += [seen.eq((left != 0) & ~changed), node.eq(look), at.eq(times.read_data)]
        with m.If(changed | expired):
            m.d.sync += [left.eq(n), some.eq(0)]
        with m.Elif(left != 0):
            m.d.sync += [left.eq(left - 1), look.eq(Mux(look == n - 1, 0, look + 1))]
        with m.If(counts & ~over & earlier):
            m.d.sync += [best.eq(at), some.eq(1)]
        with m.If(self.due.valid):
            m.d.sync += self.active.bit_select(node, 1).eq(0)
        with m.If(self.clear.valid):
            m.d.sync += self.active.bit_select(self.clear.node, 1).eq(0)
        with m.If(self.set.valid):
            m.d.sync += self.active.bit_select(self.set.node, 1).eq(1)
        return m

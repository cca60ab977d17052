"""Resolver: carries out the decisions of a tag pipeline, in order."""

from amaranth.hdl import Module, Shape, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.cache.tags import decision_layout, slot_bits
from rtl.stream import CreditQueue

__all__ = ["Resolver", "operation_layout"]

QUEUE = 8
"""Operations in flight or waiting, for the store or ``misses``: each takes a place for 6 cycles."""


def operation_layout(key_bits: int, meta_shape, rows: int, in_flight: int) -> data.StructLayout:
    """Layout of the operation of a lookup: read its slot or, after a ``miss``, fetch its vector."""
    return data.StructLayout({
        "miss": 1, "id": max(1, ceil_log2(in_flight)), "slot": slot_bits(rows),
        "key": key_bits, "meta": Shape.cast(meta_shape).width})


class Resolver(wiring.Component):
    """Let each lookup read its slot, request a fetch, or wait in the scatter list of a fetch.

    The block has three steps: 1 query the miss table, 2 its answer, 3 append and queue. Only step 1
    waits, for a place in the queue of operations and a node of the scatter lists. Step 2 shows
    whether a hit needs its node. While no node is free, a hit that needs no node is therefore
    detected in two cycles before step 1.

    Ports
    -----
    decisions: input stream of :func:`rtl.cache.tags.decision_layout`.
    operations: output stream of :func:`operation_layout`, in order.
    id, slot, allocated, phase, open, waiting: connections to the miss table.
    space, reserve, unused, add, add_first, add_id, add_meta: connections to the scatter lists.
    done: step 3: ``valid``, a lookup was carried out, as in ``decision``; ``pending``: it waits in
        the list of a fetch.
    blocked: a decision waits: for the queue of operations if ``full``, else for a node.
    idle: no decision inside.
    """

    LATENCY = {("decision", "append"): 2,
               ("decision", "operation"): 2 + CreditQueue.LATENCY["item", "the same item"]}
    RATE = "1 decision per cycle; a hit takes 3 cycles while no node is free"

    def __init__(self, key_bits: int, meta_shape, *, rows: int, in_flight: int):
        self._decision = decision_layout(key_bits, meta_shape, rows, in_flight)
        self._operation = operation_layout(key_bits, meta_shape, rows, in_flight)
        id_bits = len(Signal(self._decision).id)
        super().__init__({
            "decisions": In(stream.Signature(self._decision)),
            "operations": Out(stream.Signature(self._operation)),
            "id": Out(id_bits), "slot": Out(slot_bits(rows)), "allocated": Out(1),
            "phase": Out(1), "open": Out(1), "waiting": In(1),
            "space": In(1), "reserve": Out(1), "unused": Out(1), "add": Out(1),
            "add_first": Out(1), "add_id": Out(id_bits), "add_meta": Out(meta_shape),
            "done": Out(data.StructLayout(
                {"valid": 1, "pending": 1, "decision": self._decision})),
            "blocked": Out(data.StructLayout({"valid": 1, "full": 1})), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.queue = queue = CreditQueue(self._operation, QUEUE)
        wiring.connect(m, queue.o, wiring.flipped(self.operations))

        # Step 1. An answer of the miss table applies to the decision that was in front one cycle
        # earlier.
        decision, go = self.decisions.payload, Signal()
        stayed, direct = Signal(), Signal()
        m.d.comb += [
            self.decisions.ready.eq(queue.free & (self.space | direct)),
            go.eq(self.decisions.valid & self.decisions.ready),
            queue.reserve.eq(go), self.reserve.eq(go & ~direct),
            self.id.eq(decision.id), self.slot.eq(decision.slot),
            self.allocated.eq(decision.allocate), self.phase.eq(decision.phase),
            self.open.eq(go & ~decision.hit),
            self.blocked.valid.eq(self.decisions.valid & ~go), self.blocked.full.eq(~queue.free),
        ]
        m.d.sync += [stayed.eq(self.decisions.valid & ~go),
                     direct.eq(stayed & ~go & decision.hit & ~self.waiting)]

        # Step 2.
        asked, reserved, kept = Signal(), Signal(), Signal(self._decision, reset_less=True)
        m.d.sync += [asked.eq(go), reserved.eq(~direct), kept.eq(decision)]

        # Step 3. A lookup that waits in a list makes no operation.
        done, op, now = self.done, queue.i.payload, Signal(self._decision, reset_less=True)
        m.d.sync += [
            done.valid.eq(asked), done.pending.eq(asked & kept.hit & self.waiting),
            now.eq(kept), self.add.eq(asked & (~kept.hit | self.waiting)),
            self.unused.eq(asked & reserved & kept.hit & ~self.waiting),
            queue.i.valid.eq(asked & ~(kept.hit & self.waiting)),
        ]
        m.d.comb += [
            done.decision.eq(now),
            self.add_first.eq(~now.hit), self.add_id.eq(now.id), self.add_meta.eq(now.meta),
            queue.unused.eq(done.pending), op.miss.eq(~now.hit),
            op.id.eq(now.id), op.slot.eq(now.slot), op.key.eq(now.key), op.meta.eq(now.meta),
            self.idle.eq(~self.decisions.valid & ~asked & ~done.valid & queue.idle),
        ]
        return m

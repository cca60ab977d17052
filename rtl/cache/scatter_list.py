"""Scatter lists: the lookups that wait for the vector of each miss id."""

from amaranth.hdl import Module, Shape, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.cache.free_list import FreeList
from rtl.cache.number_pool import NumberPool
from rtl.memory import Ram
from rtl.stream import SkidBuffer, StreamFIFO

__all__ = ["ScatterList", "waiter_layout"]


def waiter_layout(meta_shape, in_flight: int) -> data.StructLayout:
    """Layout of a waiter: the id of its vector, its meta, whether it is the id's last waiter."""
    return data.StructLayout({
        "meta": meta_shape, "id": max(1, ceil_log2(in_flight)), "last": 1})


class ScatterList(wiring.Component):
    """One linked list of waiters per id, from a common pool of ``waiters`` nodes.

    A waiter is appended while the id is outstanding. When the id is closed its list is queued;
    lists are walked in closing order, waiters in append order. An append in the same cycle as the
    closing still enters the list. Nodes are released as they are read.

    Latency and rate: see ``LATENCY`` and ``RATE``.

    Ports
    -----
    space: a node is free; a register. reserve: take it for a later ``add`` or, if there is none,
        ``unused``. Only while ``space``.
    add: 1: append ``add_meta`` to the list of ``add_id``; ``add_first``: the list begins with it.
        Two cycles after ``reserve`` or later.
    close: 1: the list of ``close_id`` is complete. It must have a waiter.
    waiters: output stream of :func:`waiter_layout`.
    idle: no list is closed but not yet given out.
    """

    LATENCY = {("close", "first waiter"): 6}
    RATE = "1 append and 1 waiter out per cycle, without a gap between lists"

    def __init__(self, meta_shape, *, in_flight: int, waiters: int):
        self._meta_bits = Shape.cast(meta_shape).width
        self._in_flight, self._nodes = in_flight, waiters
        id_bits = max(1, ceil_log2(in_flight))
        self._layout = waiter_layout(meta_shape, in_flight)
        super().__init__({
            "add": In(1), "add_first": In(1), "add_id": In(id_bits), "add_meta": In(meta_shape),
            "space": Out(1), "reserve": In(1), "unused": In(1),
            "close": In(1), "close_id": In(id_bits),
            "waiters": Out(stream.Signature(self._layout)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        ids, nodes = self._in_flight, self._nodes
        node_bits = max(1, ceil_log2(nodes))
        m.submodules.free = free = FreeList(nodes)
        m.submodules.pool = pool = NumberPool(nodes)
        wiring.connect(m, free.taken, pool.numbers)
        m.submodules.metas = metas = Ram(
            self._meta_bits, nodes, style="lutram" if nodes <= 64 else "bram")
        m.submodules.following = following = Ram(node_bits, nodes, style="lutram", latency=0)
        m.submodules.heads = heads = Ram(node_bits, ids, style="lutram", latency=0)
        # The append and the walk both read the tail, and memories have one read port.
        m.submodules.tails = tails = Ram(node_bits, ids, style="lutram", latency=0)
        m.submodules.tails_walk = tails_walk = Ram(node_bits, ids, style="lutram", latency=0)
        # There is room for every id, so a closing never waits.
        m.submodules.closed = closed = StreamFIFO(range(ids), ids)
        # Whether the next list is needed is known late, too late for the RAM of the queue.
        m.submodules.ahead = ahead = SkidBuffer(range(ids))
        wiring.connect(m, closed.o, ahead.i)

        node = pool.number
        m.d.comb += [
            self.space.eq(pool.free), pool.reserve.eq(self.reserve), pool.use.eq(self.add),
            pool.unused.eq(self.unused),
            metas.write_en.eq(self.add), metas.write_addr.eq(node),
            metas.write_data.eq(self.add_meta),
            tails.read_addr.eq(self.add_id),
            following.write_en.eq(self.add & ~self.add_first),
            following.write_addr.eq(tails.read_data), following.write_data.eq(node),
            heads.write_en.eq(self.add & self.add_first), heads.write_addr.eq(self.add_id),
            heads.write_data.eq(node),
            closed.i.valid.eq(self.close), closed.i.payload.eq(self.close_id),
        ]
        for ram in (tails, tails_walk):
            m.d.comb += [ram.write_en.eq(self.add), ram.write_addr.eq(self.add_id),
                         ram.write_data.eq(node)]

        # The next list, whose ends are read ahead, so that it follows the current without a gap.
        next_valid, next_id = Signal(), Signal.like(self.close_id)
        next_head, next_tail = Signal(node_bits), Signal(node_bits)
        valid, here, tail = Signal(), Signal(node_bits), Signal(node_bits)
        # The same, inverted so that it stays a register of its own: ``here`` drives a large RAM.
        there = Signal(node_bits)
        id_ = Signal.like(self.close_id)
        out_valid, out_id, out_last = Signal(), Signal.like(self.close_id), Signal()
        step, at_end, load = Signal(), Signal(), Signal()
        m.d.comb += [
            ahead.o.ready.eq(~next_valid | load),
            heads.read_addr.eq(ahead.o.payload), tails_walk.read_addr.eq(ahead.o.payload),
            at_end.eq(~there == tail),
            step.eq(valid & (~out_valid | self.waiters.ready)),
            load.eq(next_valid & (~valid | (step & at_end))),
            following.read_addr.eq(here),
            metas.read_en.eq(step), metas.read_addr.eq(here),
            free.given.valid.eq(step), free.given.number.eq(~there),
            self.waiters.valid.eq(out_valid), self.waiters.payload.meta.eq(metas.read_data),
            self.waiters.payload.id.eq(out_id), self.waiters.payload.last.eq(out_last),
            self.idle.eq(~out_valid & ~valid & ~next_valid & closed.idle & ahead.idle & free.idle
                         & pool.idle),
        ]
        with m.If(ahead.o.ready):
            m.d.sync += [next_valid.eq(ahead.o.valid), next_id.eq(ahead.o.payload),
                         next_head.eq(heads.read_data), next_tail.eq(tails_walk.read_data)]
        with m.If(load):
            m.d.sync += [valid.eq(1), here.eq(next_head), there.eq(~next_head), tail.eq(next_tail),
                         id_.eq(next_id)]
        with m.Elif(step):
            m.d.sync += [valid.eq(~at_end), here.eq(following.read_data),
                         there.eq(~following.read_data)]
        with m.If(step):
            m.d.sync += [out_valid.eq(1), out_id.eq(id_), out_last.eq(at_end)]
        with m.Elif(self.waiters.ready):
            m.d.sync += out_valid.eq(0)
        return m

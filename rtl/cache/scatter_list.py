"""Scatter lists: the lookups that wait for the vector of each miss id."""

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.cache.free_list import FreeList
from rtl.cache.number_pool import NumberPool
from rtl.memory import Ram
from rtl.stream import CreditQueue, Level, StreamFIFO

__all__ = ["AHEAD", "OUT", "ScatterList", "waiter_layout"]

AHEAD = 4
"""Lists whose ends are read ahead, a power of two: each takes a place for 3 cycles."""
OUT = 8
"""Waiters between the read of their node and the output: each takes a place for 5 cycles."""


def waiter_layout(meta_shape, in_flight: int) -> data.StructLayout:
    """Layout of a waiter: the id of its vector, its meta, and whether it is the id's last waiter.
    """
    return data.StructLayout({
        "meta": meta_shape, "id": max(1, ceil_log2(in_flight)), "last": 1})


class ScatterList(wiring.Component):
    """Store one linked list of waiters per id, in a common pool of ``waiters`` nodes.

    A waiter is appended while the id is outstanding. When the id is closed, its list is queued.
    Lists leave in closing order, waiters in append order. An append in the cycle of the closing
    still enters the list. Nodes are released as they are read.

    All memories are clocked. A node is read only with a reserved place for its waiter behind the
    RAMs, so registers alone control the walk. The next node is read at the address that the RAM has
    just output.

    Parameters
    ----------
    meta_shape: shape of the data of a waiter.
    in_flight: number of ids.
    waiters: number of nodes.

    Ports
    -----
    space: a node is free; a register.
    reserve: take the node for a later ``add`` or ``unused``; only while ``space``.
    unused: release the reservation.
    add, add_first, add_id, add_meta: append ``add_meta`` to the list of ``add_id``, at least two
        cycles after ``reserve``; ``add_first``: it begins the list.
    close, close_id: the list of ``close_id`` is complete. It must have a waiter.
    waiters: output stream of :func:`waiter_layout`.
    idle: no closed list is left.
    """

    LATENCY = {
        ("close", "its list queued"): StreamFIFO.LATENCY["item", "the same item"],
        ("list queued", "its ends known"): 2,
        ("node read", "its waiter"): 1 + CreditQueue.LATENCY["item", "the same item"],
        ("close", "first waiter"): 8,
    }
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
        m.submodules.free = free = FreeList(self._nodes)
        m.submodules.pool = pool = NumberPool(self._nodes)
        wiring.connect(m, free.taken, pool.numbers)
        node = pool.number
        metas = self._memory(m, "metas", self._meta_bits, self._nodes)
        following = self._memory(m, "following", len(node), self._nodes)
        heads, tails = (self._memory(m, name, len(node), self._in_flight)
                        for name in ("heads", "tails"))
        # The waiter before the last one of a list, and whether the list has only one.
        befores = self._memory(m, "befores", len(node) + 1, self._in_flight)

        # The tail is known one cycle after the append, and then gets its successor.
        added, first = Signal(), Signal(reset_less=True)
        to, successor = (Signal.like(of, reset_less=True) for of in (self.add_id, node))
        m.d.sync += [added.eq(self.add), first.eq(self.add_first), to.eq(self.add_id),
                     successor.eq(node)]
        m.d.comb += [
            self.space.eq(pool.free), pool.reserve.eq(self.reserve), pool.use.eq(self.add),
            pool.unused.eq(self.unused),
            metas.write_en.eq(self.add), metas.write_addr.eq(node),
            metas.write_data.eq(self.add_meta),
            heads.write_en.eq(self.add & self.add_first), heads.write_addr.eq(self.add_id),
            heads.write_data.eq(node),
            tails.write_en.eq(self.add), tails.write_addr.eq(self.add_id),
            tails.write_data.eq(node), tails.read_addr.eq(self.add_id),
            following.write_en.eq(added & ~first), following.write_addr.eq(tails.read_data),
            following.write_data.eq(successor),
            befores.write_en.eq(added), befores.write_addr.eq(to),
            befores.write_data.eq(Cat(tails.read_data, first)),
        ]
        load = Signal()
        some, ends, resting = self._ahead(m, heads, befores, load)
        walking = self._walk(m, free, metas, following, some, ends, load)
        m.d.comb += self.idle.eq(~walking & ~some & resting & free.idle & pool.idle)
        return m

    def _memory(self, m: Module, name: str, width: int, depth: int) -> Ram:
        m.submodules[name] = ram = Ram(width, depth, style="lutram" if depth <= 64 else "bram")
        return ram

    def _ahead(self, m: Module, heads: Ram, befores: Ram, load: Signal) -> tuple:
        """Read the ends of lists ahead; ``load`` takes the next list.

        Return whether a list is ready; its id, its head, the waiter before its last one, and
        whether it has only one; and whether no list is on its way here.
        """
        # The FIFO has room for every id, so a closing never waits.
        m.submodules.closed = closed = StreamFIFO(range(self._in_flight), self._in_flight)
        m.submodules.room = room = Level(AHEAD, init=AHEAD)
        m.submodules.known = known = Level(AHEAD)
        id_, fetch = Signal.like(self.close_id, reset_less=True), Signal()
        found = Cat(id_, heads.read_data, befores.read_data)
        m.submodules.ends = ends = Ram(len(found), AHEAD, style="lutram", latency=0)
        m.d.comb += [
            closed.i.valid.eq(self.close), closed.i.payload.eq(self.close_id),
            closed.o.ready.eq(room.some), fetch.eq(closed.o.valid & room.some),
            heads.read_addr.eq(closed.o.payload), befores.read_addr.eq(closed.o.payload),
            ends.write_en.eq(known.up), ends.write_data.eq(found),
            room.down.eq(fetch), room.up.eq(load), known.down.eq(load),
        ]
        m.d.sync += [known.up.eq(fetch), id_.eq(closed.o.payload),
                     ends.write_addr.eq(ends.write_addr + known.up),
                     ends.read_addr.eq(ends.read_addr + load)]
        list_id, head, before, only = (
            Signal.like(id_), *(Signal.like(heads.read_data) for _ in range(2)), Signal())
        m.d.comb += Cat(list_id, head, before, only).eq(ends.read_data)
        return known.some, (list_id, head, before, only), closed.idle & ~known.up

    def _walk(self, m: Module, free: FreeList, metas: Ram, following: Ram, some: Value,
              ends: tuple, load: Signal) -> Value:
        """Walk the lists, beginning with the ``ends`` of the next; return whether one is inside."""
        m.submodules.out = out = CreditQueue(self._layout, OUT)
        wiring.connect(m, out.o, wiring.flipped(self.waiters))
        id_, head, before, last = (Signal.like(end, reset_less=True) for end in ends)
        next_id, next_head, next_before, next_last = ends
        # The head is to be read; the node behind it is the last. The address of the current node
        # comes from a RAM, so the last node is detected one node earlier.
        fresh, pair = Signal(reset_less=True), Signal(reset_less=True)
        valid, here, step = Signal(), Signal.like(head), Signal()
        read, read_id, read_last = Signal(), Signal.like(id_), Signal(reset_less=True)
        m.d.comb += [
            here.eq(Mux(fresh, head, following.read_data)),
            step.eq(valid & out.free), out.reserve.eq(step),
            load.eq(some & (~valid | (out.free & last))),
            # The successor stays until its turn.
            following.read_en.eq(step), following.read_addr.eq(here), metas.read_addr.eq(here),
            free.given.valid.eq(step), free.given.number.eq(here),
            out.i.valid.eq(read), out.i.payload.meta.eq(metas.read_data),
            out.i.payload.id.eq(read_id), out.i.payload.last.eq(read_last),
        ]
        m.d.sync += [
            valid.eq(load | (valid & ~(step & last))), fresh.eq(load | (fresh & ~step)),
            read.eq(step), read_id.eq(id_), read_last.eq(last),
        ]
        with m.If(load):
            m.d.sync += [id_.eq(next_id), head.eq(next_head), before.eq(next_before),
                         pair.eq(next_head == next_before), last.eq(next_last)]
        with m.Elif(step):
            m.d.sync += last.eq(Mux(fresh, pair, following.read_data == before))
        return valid | read | ~out.idle

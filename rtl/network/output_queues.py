"""Virtual output queues: lookups wait by destination, so that none waits for another's room."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.formats import CREDIT_BITS, NODE_BITS, OutgoingRecord
from rtl.memory import Ram, sweep
from rtl.network.credits import check_nodes
from rtl.network.layouts import AtNode, Credit
from rtl.network.queue_room import QueueRoom
from rtl.network.queue_turns import LEAST, QueueTurns
from rtl.stream import CreditQueue

__all__ = ["OUT", "READ", "OutputQueues"]

READ = 2
"""Cycles of a read of the records' RAM."""
OUT = 8
"""Records that may be read, or wait to be taken."""
_URAM = 2048
"""From this depth on, records lie in UltraRAM."""


class OutputQueues(wiring.Component):
    """Give each destination of lookups a queue of its own, in front of a packager with credits.

    A record leaves its queue when there is a beat of credit for it, in case it is alone in its
    beat. So every packet passes the credit gate when it comes there, no packet buffer is held for
    long, and a destination that is slow, or returns no credit, holds back its own records only.
    Records of a destination keep their order. Destinations with credit are served in turn
    (:class:`QueueTurns`).

    The credit of a destination is ``window`` beats, less those that were sent and are not
    acknowledged, those of packets in the packager, and one for each record on its way there. Where
    that does not do for all that wait, some go once it is a quarter of the window, or
    :data:`~rtl.network.queue_turns.LEAST` beats.

    A queue has ``places``, and no more records of one destination may be inside at once. Lookups
    keep that: each has a miss id, of which there are so many, until it is answered. So no queue is
    ever full.

    Latency and rate: see ``LATENCY`` and ``RATE``.

    Parameters: ``destinations``; ``places`` of a queue, a power of two.

    Ports
    -----
    i, o: streams of :data:`rtl.formats.OutgoingRecord`. ``i`` is ready ``destinations`` cycles
        after reset, and then always, but without queues.
    on: 0: no queues, ``o`` is ``i``. Fixed once there were records; reset to change it.
    window, lost: see :class:`~rtl.network.CreditGate`.
    joined: event: a record that has left here shares a beat of a packet with the one before.
    acknowledged: event :data:`~rtl.network.layouts.Credit`: all that the gate knows of ``node``.
    short: event: a queue was looked at that has more records than beats of credit. short_node: the
        last such; a register.
    idle: no record inside. One that waits for credit is looked at again and again, hence not idle.
    """

    LATENCY = {
        ("record, with queues", "the same record"): 11,
        ("record, without queues", "the same record"): 0,
    }
    RATE = "1 record per cycle"

    def __init__(self, destinations: int, places: int):
        check_nodes(destinations)
        if isinstance(places, bool) or not isinstance(places, int):
            raise TypeError(f"places must be an integer, not {places!r}")
        if places < 2 or places & (places - 1):
            raise ValueError(f"places must be a power of two, at least 2, not {places!r}")
        self._nodes, self._places = destinations, places
        super().__init__({
            "i": In(stream.Signature(OutgoingRecord)), "o": Out(stream.Signature(OutgoingRecord)),
            "on": In(1), "window": In(CREDIT_BITS), "lost": In(destinations), "joined": In(AtNode),
            "acknowledged": In(Credit), "short": Out(1), "short_node": Out(NODE_BITS),
            "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        n, item = self._nodes, self.i.payload
        on, bits = self.on, max(1, ceil_log2(n))
        address, swept = sweep(m, n)
        m.submodules.room = room = QueueRoom(n, self._places)
        m.submodules.turns = turns = QueueTurns(n, self._places)
        m.submodules.queue = queue = CreditQueue(OutgoingRecord, OUT)
        # A cycle late, for short paths: until then there is less credit.
        known, told = Signal(Credit, reset_less=True), Signal()
        m.d.sync += [known.eq(self.acknowledged), told.eq(self.acknowledged.valid & on)]
        m.d.comb += [
            room.acknowledged.eq(known), room.acknowledged.valid.eq(told),
            room.joined.node.eq(self.joined.node), room.joined.valid.eq(self.joined.valid & on),
            room.clear.eq(~swept), room.clear_node.eq(address),
            room.window.eq(self.window), room.lost.eq(self.lost), room.look.eq(turns.look),
            turns.found.eq(room.found),
            room.gone.eq(turns.gone), self.short.eq(turns.short),
        ]

        quarter, least = self.window[2:], Signal.like(turns.least, reset_less=True)
        m.d.sync += least.eq(Mux(quarter < LEAST, quarter, LEAST))
        m.d.comb += turns.least.eq(least)
        with m.If(turns.short):
            m.d.sync += self.short_node.eq(turns.node)

        # A record comes: to the last place of its queue, which is then looked at.
        depth = n << ceil_log2(self._places)
        word = Signal(OutgoingRecord, reset_less=True)
        come, arrived = Signal(), Signal()
        place = Signal(range(self._places), reset_less=True)
        m.submodules.records = records = Ram(
            len(Cat(word.record, word.step)), depth, latency=READ,
            style="uram" if depth >= _URAM else "bram")
        m.d.comb += [
            come.eq(self.i.valid & on & swept),
            room.entered.valid.eq(come), room.entered.node.eq(item.destination),
            records.write_en.eq(arrived),
            records.write_addr.eq(Cat(place, word.destination[:bits])),
            records.write_data.eq(Cat(word.record, word.step)),
            turns.arrived.valid.eq(arrived), turns.arrived.node.eq(word.destination),
        ]
        m.d.sync += [arrived.eq(come), word.eq(item), place.eq(room.last_place)]

        # Records leave by turns, with a place reserved behind the RAM.
        m.d.comb += [
            turns.free.eq(queue.free), queue.reserve.eq(turns.pop),
            records.read_en.eq(1), records.read_addr.eq(Cat(turns.place, turns.node[:bits])),
        ]
        valid, node = turns.pop, turns.node
        under_way = []
        for k in range(READ):
            read, target = Signal(name=f"read{k}"), Signal(NODE_BITS, reset_less=True,
                                                           name=f"target{k}")
            m.d.sync += [read.eq(valid), target.eq(node)]
            valid, node = read, target
            under_way.append(valid)
        m.d.comb += [
            queue.i.valid.eq(valid), queue.i.payload.destination.eq(node),
            Cat(queue.i.payload.record, queue.i.payload.step).eq(records.read_data),
            self.o.valid.eq(Mux(on, queue.o.valid, self.i.valid)),
            self.o.payload.eq(Mux(on, queue.o.payload, item)),
            self.i.ready.eq(Mux(on, swept, self.o.ready)), queue.o.ready.eq(on & self.o.ready),
            self.idle.eq(swept & ~self.i.valid & ~arrived & turns.idle & ~Cat(under_way).any()
                         & queue.idle),
        ]
        return m

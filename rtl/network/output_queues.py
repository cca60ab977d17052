"""Virtual output queues: lookups wait per destination, without blocking other destinations."""

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
"""Places for records behind the RAM: being read, or waiting at the output."""
_URAM = 2048
"""Depth from which the records are stored in UltraRAM."""


class OutputQueues(wiring.Component):
    """Queue lookups per destination, in front of a packager with credits.

    A record leaves its queue when a beat of credit is available for it, since the record may be
    alone in its beat. Every packet therefore passes the credit gate immediately, no packet buffer
    is held for long, and a destination that is slow or returns no credit delays only its own
    records. Records of one destination keep their order. Destinations with credit are served in
    turn (:class:`QueueTurns`).

    The credit of a destination is ``window`` beats, minus unacknowledged beats, minus beats in the
    packager, minus one beat for each record on its way to the packager. If the credit covers only
    some of the waiting records, they leave once the credit reaches a quarter of the window or
    :data:`~rtl.network.queue_turns.LEAST` beats.

    Each queue has ``places`` records, and at most that many records of a destination may be inside.
    Lookups satisfy this limit, because each holds one of ``places`` miss ids until it is answered.
    A queue is therefore never full.

    Parameters
    ----------
    destinations: number of destinations.
    places: records of a queue, a power of two.

    Ports
    -----
    i, o: streams of :data:`rtl.formats.OutgoingRecord`. With ``on``, ``i`` is always ready from
        ``destinations`` cycles after reset on.
    on: 1: use the queues; 0: connect ``i`` to ``o``. Must not change after the first record; reset
        to change it.
    window, lost: see :class:`~rtl.network.CreditGate`.
    joined: event: a record that has left this block shares a beat with the previous record.
    acknowledged: event :data:`~rtl.network.layouts.Credit` from the gate: the count of ``node``.
    short: event: the inspected queue has more records than beats of credit.
    short_node: destination of the last ``short``, a register.
    idle: no record inside. A queue that waits for credit is inspected repeatedly, which clears
        ``idle``.
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
        # One cycle late, to shorten paths: the credit is lower until then.
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

        # An arriving record goes to the last place of its queue, which then becomes due.
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

        # Records leave in turn, with a reserved place behind the RAM.
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

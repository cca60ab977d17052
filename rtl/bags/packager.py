"""Bag packager: gathers bags into packets, one destination each."""

from amaranth.hdl import Mux, Signal
from amaranth.lib.wiring import In

from rtl.bags.layouts import OutgoingSegment
from rtl.bags.pool import BagPool
from rtl.bags.word_store import WordStore
from rtl.formats import CREDIT_BITS, RECORDS_PER_BEAT
from rtl.gateable import Gateable
from rtl.monitor.counters import CounterLayout, count
from rtl.network.packager import PACKAGER_EVENTS, Packager, latency_of

__all__ = ["BAG_PACKAGER_COUNTERS", "BagPackager"]

_EVENTS = ("bags", "keys", *PACKAGER_EVENTS)
BAG_PACKAGER_COUNTERS = CounterLayout("segments", *_EVENTS)


class BagPackager(Gateable, Packager):
    """Gather bags by destination and step; send full or expired packets.

    The words of a packet's bags follow each other without gaps, and no packet cuts a bag. Bags of
    one destination keep their order, within and across packets. Unused words of the last beat are
    zero.

    Parameters
    ----------
    destinations: number of destinations.
    max_beats: payload beats of the largest packet.
    opcode: opcode of the packets.
    credited: beats need credit of their destination.
    buffers: packet buffers, by default 2 per destination, at least 4.
    most_bags: a packet has at most ``batch`` bags.
    pauses: packets close in pauses.
    unreported: the destination may leave a quarter of the window unreported.

    Ports
    -----
    i: stream of :data:`rtl.bags.layouts.OutgoingSegment`. The segments of a bag follow each other.
        A bag has 2 to 8 * ``max_beats`` words and, with ``credited``, at most 8 * ``window``.
    headers, payload: streams of :data:`rtl.formats.FrameInfo` and :data:`rtl.formats.RawBeat`, to a
        frame assembler; ``count`` is the number of words.
    batch: bags that close a packet (0 counts as 1); with ``most_bags``.
    time, timeout: when a packet closes, at the end of a bag, see :class:`rtl.bags.pool.BagPool`.
    moving, waiting: the source of the bags moves; it has more to send, but cannot move; with
        ``pauses``.
    window, credit_in, lost, credit_node, credit, next_node: see
        :class:`rtl.network.RecordPackager`.
    counters: ``segments``, ``bags`` and their ``keys`` taken; ``packets`` sent; cycles in which a
        packet waited for credit or a bag for a buffer; packets closed as ``full``, also before a
        bag that does not fit, by ``timeouts`` and by ``step_changes``.
    idle: no bag inside. Waiting for credit clears ``idle``, because it is counted.

    Raises
    ------
    TypeError, ValueError
        A size is not an integer or out of range.
    """

    LATENCY = latency_of("segment")
    RATE = ("1 segment per cycle, less 1 cycle where a packet closes before a bag that does not "
            "fit, by step or by time-out")

    def __init__(self, destinations: int, max_beats: int, opcode: int, credited: bool, *,
                 buffers: int | None = None, most_bags: bool = False, pauses: bool = False,
                 unreported: bool = False):
        self._check(destinations, max_beats, 1)
        self._most_bags, self._pauses, self._unreported = most_bags, pauses, unreported
        super().__init__(
            OutgoingSegment, max_beats * RECORDS_PER_BEAT, destinations, max_beats, opcode,
            credited, buffers, items="segments", events=_EVENTS,
            **({"batch": In(16)} if most_bags else {}),
            **({"moving": In(1), "waiting": In(1)} if pauses else {}))

    def _make_pool(self):
        return BagPool(self._destinations, self._buffers, self._units, most_bags=self._most_bags,
                       pauses=self._pauses)

    def _offer(self, pool, offered):
        segment = offered.segment
        return [pool.head.eq(segment.head), pool.last.eq(segment.tail), pool.size.eq(segment.size),
                pool.words.eq(offered.words),
                *([pool.batch.eq(self.batch)] if self._most_bags else []),
                *([pool.moving.eq(self.moving), pool.waiting.eq(self.waiting)]
                  if self._pauses else [])]

    def _units_of(self, place):
        return place.positions

    def _closings(self, pool):
        return {"full": pool.full | pool.outgrown, "timeouts": pool.expired,
                "step_changes": pool.stepped & ~pool.outgrown}

    def _room(self, window):
        return (window - (window >> 2))[:CREDIT_BITS] if self._unreported else window

    def _limit(self, m, beats, limit):
        m.d.sync += limit.eq(beats << 3)

    def _beats(self, units):
        return (units + RECORDS_PER_BEAT - 1) >> 3

    def _store(self, m, pool, item, reader):
        m.submodules.store = store = WordStore(self._buffers, self._max_beats)
        segment = item.segment
        m.d.comb += [
            store.write.eq(pool.ready), store.buffer.eq(pool.buffer),
            store.position.eq(pool.position), store.words.eq(segment.words),
            store.first.eq(segment.first), store.size.eq(segment.size),
            store.read_en.eq(reader.read_en), store.read_buffer.eq(reader.read_buffer),
            store.read_beat.eq(reader.read_beat), store.read_units.eq(reader.read_units),
            reader.data.eq(store.data),
        ]
        # A cycle later, off the critical path.
        keys, taken = Signal.like(segment.keys, reset_less=True), Signal()
        m.d.sync += [keys.eq(segment.keys), taken.eq(pool.ready & segment.head)]
        count(m, self.counters, bags=taken, keys=Mux(taken, keys, 0))

"""Bag check: accepts only bags whose rows exist and pool at this node."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.bags.bounds import RowBounds
from rtl.bags.layouts import BagBeat, OwnedSegment, Segment
from rtl.bags.splitter import SegmentSplit
from rtl.bags.store import SegmentStore
from rtl.config import NicConfig
from rtl.formats import NODE_BITS, STEP_BITS, BagHead, Status
from rtl.keys.owner_split import DESCRIPTOR_WRITES, OwnerSplit
from rtl.monitor.counters import CounterLayout, count
from rtl.network.layouts import AtNode, Freed
from rtl.stream import CreditQueue

__all__ = ["BAG_CHECK_COUNTERS", "BagCheck"]

BAG_CHECK_COUNTERS = CounterLayout(
    "bags", "keys", "bad_table", "bad_pool", "bad_owner", "bad_length", "bad_row")
_REASONS = list(BAG_CHECK_COUNTERS.members)[2:]

SEGMENTS = 512
"""Segments in the store. An unfinished bag has at most the 140 beats of a packet."""
AHEAD = 16
"""Segments in the pipeline, or behind it in front of the store: each takes a place for 9 cycles."""
_ORIGIN = data.StructLayout({"node": NODE_BITS, "step": STEP_BITS})
_ITEM = data.StructLayout(
    {"segment": Segment, "origin": _ORIGIN, "wide": 1, "bad_length": 1, "beat_last": 1})
_JUDGED = data.StructLayout({
    "owned": OwnedSegment, "beat_last": 1, "keys": BagHead["keys"].width, "wrong": 1,
    "reasons": len(_REASONS), "unfinished": 1})
"""A segment, with the verdict on its bag so far: ``wrong``, and then the reason, one bit for each
counter. ``unfinished``: the bag before it has no end."""


class BagCheck(wiring.Component):
    """Pass bags that pool at this node and whose rows exist; drop and count all other bags.

    A bag is dropped whole. An honest peer never sends such a bag. The reasons, in the order in
    which they are counted:

    - ``bad_table``: the table has no valid descriptor, or its owner is not among ``nodes``.
    - ``bad_pool``: the table pools at the requester, or is split by rows or columns.
    - ``bad_owner``: another node owns the table.
    - ``bad_length``: no key; more than ``bag_words`` words; a part of a bag; or the words of the
      bag are not whole in one packet.
    - ``bad_row``: a row beyond the table.

    Segments do not stall while they are judged: they enter with a place in the queue behind.

    A beat returns its credit after its last word, whatever its bags contain. A dropped bag has no
    answer. The order of bags is kept.

    Parameters: ``config``; ``tables`` is the number of table descriptors.

    Ports
    -----
    i: stream of :data:`~rtl.bags.layouts.BagBeat`.
    o: stream of :data:`~rtl.bags.layouts.OwnedSegment`, whole bags.
    freed: event :data:`rtl.network.layouts.Freed`: a beat of that requester was consumed.
    passed: event :data:`rtl.network.layouts.AtNode`: a bag of that requester was accepted, no later
        than the event of its last beat.
    refused: event :data:`rtl.network.layouts.AtNode`: a bag of that requester was dropped.
    node, nodes: number of this node, and the number of nodes.
    write_en, write_table, write_word, write_data, write_ready: writes to the table descriptors, see
        :class:`rtl.keys.owner_split.OwnerSplit`.
    counters: ``bags`` passed and their ``keys``; dropped bags, by reason.
    idle: inactive until an input changes.
    """

    LATENCY = {
        ("beat with the tail of a bag", "the bag's first segment"):
            SegmentSplit.LATENCY["beat", "its first item"] + OwnerSplit.LATENCY["key", "its owner"]
            + CreditQueue.LATENCY["item", "the same item"]
            + SegmentStore.LATENCY["commit", "its first segment"]}
    RATE = "1 segment per cycle; a dropped bag takes 1 cycle more, or 2 if its end is missing"

    def __init__(self, config: NicConfig):
        self._tables, self._most = config.tables, config.bag_words
        super().__init__({
            "i": In(stream.Signature(BagBeat)), "o": Out(stream.Signature(OwnedSegment)),
            "freed": Out(Freed), "passed": Out(AtNode), "refused": Out(AtNode),
            "node": In(NODE_BITS), "nodes": In(NODE_BITS),
            **DESCRIPTOR_WRITES, "write_ready": Out(1),
            "counters": Out(BAG_CHECK_COUNTERS), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.items = items = SegmentSplit(_ORIGIN, self._most, plain=False)
        m.submodules.split = split = OwnerSplit(_ITEM, self._tables, bags=True)
        m.submodules.bounds = bounds = RowBounds()
        m.submodules.queue = queue = CreditQueue(_JUDGED, AHEAD)
        m.submodules.store = store = SegmentStore(SEGMENTS, OwnedSegment)
        wiring.connect(m, store.o, wiring.flipped(self.o))
        beat, item, entry = items.i.payload, items.o.payload, split.i.payload
        head = data.View(BagHead, item.record)
        m.d.comb += [
            items.i.valid.eq(self.i.valid), self.i.ready.eq(items.i.ready),
            *(beat[name].eq(self.i.payload[name]) for name in ("data", "records", "last", "fresh")),
            beat.user.node.eq(self.i.payload.source), beat.user.step.eq(self.i.payload.step),
            split.i.valid.eq(items.o.valid & queue.free),
            items.o.ready.eq(split.i.ready & queue.free),
            queue.reserve.eq(items.o.valid & items.o.ready), split.o.ready.eq(1),
            entry.key.eq(item.record), entry.bag.eq(1),
            entry.user.segment.eq(item.segment), entry.user.origin.eq(item.user),
            entry.user.wide.eq(head.wide), entry.user.beat_last.eq(item.beat_last),
            entry.user.bad_length.eq(item.cut | item.long | (head.keys == 0)
                                     | (head.part != 0) | head.more),
            *split.follow(self),
            bounds.segment.eq(split.coming.segment), bounds.rows.eq(split.rows),
            bounds.wide.eq(split.coming.wide), bounds.enable.eq(split.moves),
        ]
        self._judge(m, split, bounds.bad, queue)
        quiet = self._decide(m, queue.o, store)
        m.d.comb += self.idle.eq(items.idle & split.idle & queue.idle & quiet & store.idle)
        return m

    def _judge(self, m: Module, split: OwnerSplit, bad_row: Value, queue: CreditQueue) -> None:
        """Put the segments that leave ``split`` into ``queue``."""
        found, item, judged = split.o.payload, split.o.payload.user, queue.i.payload
        # Of the last segment: its bag goes on; a row of its bag is bad.
        goes_on, spoiled, bad = Signal(), Signal(reset_less=True), Signal()
        of_pool = found.refused & (found.status == Status.KIND)
        owned = ~found.refused & found.own
        m.d.comb += [
            bad.eq(bad_row | (spoiled & ~item.segment.head)), queue.i.valid.eq(split.o.valid),
            judged.owned.segment.eq(item.segment), judged.owned.node.eq(item.origin.node),
            judged.owned.step.eq(item.origin.step), judged.beat_last.eq(item.beat_last),
            judged.keys.eq(found.key.row), judged.unfinished.eq(item.segment.head & goes_on),
            judged.wrong.eq(~owned | item.bad_length | bad),
            # In the order of the counters.
            judged.reasons.eq(Cat(found.refused & ~of_pool, of_pool, ~found.refused & ~found.own,
                                  owned & item.bad_length, owned & ~item.bad_length)),
        ]
        with m.If(split.o.valid):
            m.d.sync += [goes_on.eq(~item.segment.tail), spoiled.eq(bad)]

    def _decide(self, m: Module, queued, store: SegmentStore) -> Value:
        """Store the segments of stream ``queued``, and commit or revoke their bags. Return whether
        nothing moves."""
        item, segment = queued.payload, queued.payload.owned.segment
        # The bag without an end was revoked.
        done, abort = Signal(), Signal()
        requester = Signal(NODE_BITS, reset_less=True)
        take, good, drop = Signal(), Signal(), Signal()
        m.d.comb += [
            abort.eq(queued.valid & item.unfinished & ~done),
            store.i.valid.eq(queued.valid & ~abort), store.i.payload.eq(item.owned),
            queued.ready.eq(store.i.ready & ~abort), take.eq(store.i.valid & store.i.ready),
            good.eq(take & segment.tail & ~item.wrong), drop.eq(take & segment.tail & item.wrong),
            store.commit.eq(good), store.revoke.eq(drop | abort),
        ]
        m.d.sync += [
            self.freed.valid.eq(take & item.beat_last), self.freed.node.eq(item.owned.node),
            self.passed.valid.eq(good), self.passed.node.eq(item.owned.node),
            self.refused.valid.eq(drop | abort),
            self.refused.node.eq(Mux(abort, requester, item.owned.node)),
        ]
        with m.If(abort):
            m.d.sync += done.eq(1)
        with m.Elif(take):
            m.d.sync += [done.eq(0), requester.eq(item.owned.node)]
        events = {name: drop & reason for name, reason in zip(_REASONS, item.reasons, strict=True)}
        events["bad_length"] |= abort
        count(m, self.counters, bags=good, keys=Mux(good, item.keys, 0), **events)
        return Value.cast(~self.freed.valid & ~self.passed.valid & ~self.refused.valid)

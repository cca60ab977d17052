"""Bag check: accepts only bags whose rows exist and pool at this node."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.bags.bounds import RowBounds
from rtl.bags.layouts import BagBeat, OwnedSegment, Segment
from rtl.bags.splitter import SegmentSplit
from rtl.bags.store import SegmentStore
from rtl.config import NicConfig
from rtl.formats import NODE_BITS, STEP_BITS, TABLE_BITS, BagHead, Status
from rtl.keys.owner_split import OwnerSplit
from rtl.monitor.counters import CounterLayout, count
from rtl.network.layouts import AtNode, Freed

__all__ = ["BAG_CHECK_COUNTERS", "BagCheck"]

BAG_CHECK_COUNTERS = CounterLayout(
    "bags", "keys", "bad_table", "bad_pool", "bad_owner", "bad_length", "bad_row")

_SEGMENTS = 512
"""Segments in the store. An unfinished bag has at most the 140 beats of a packet."""
_ORIGIN = data.StructLayout({"node": NODE_BITS, "step": STEP_BITS})
_ITEM = data.StructLayout(
    {"segment": Segment, "origin": _ORIGIN, "wide": 1, "bad_length": 1, "beat_last": 1})


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

    A beat returns its credit after its last word, whatever its bags contain. A dropped bag has no
    answer. The order of bags is kept.

    Parameters: ``config``; ``tables`` is the number of table descriptors.

    Ports
    -----
    i: stream of :data:`~rtl.bags.layouts.BagBeat`.
    o: stream of :data:`~rtl.bags.layouts.OwnedSegment`, whole bags.
    freed: event :data:`rtl.network.layouts.Freed`: a beat of that requester was consumed.
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
            + SegmentStore.LATENCY["commit", "its first segment"]}
    RATE = "1 segment per cycle; a dropped bag takes 1 cycle more, or 2 if its end is missing"

    def __init__(self, config: NicConfig):
        self._tables, self._most = config.tables, config.bag_words
        super().__init__({
            "i": In(stream.Signature(BagBeat)), "o": Out(stream.Signature(OwnedSegment)),
            "freed": Out(Freed), "refused": Out(AtNode),
            "node": In(NODE_BITS), "nodes": In(NODE_BITS),
            "write_en": In(1), "write_table": In(TABLE_BITS),
            "write_word": In(3), "write_data": In(32), "write_ready": Out(1),
            "counters": Out(BAG_CHECK_COUNTERS), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.items = items = SegmentSplit(_ORIGIN, self._most, plain=False)
        m.submodules.split = split = OwnerSplit(_ITEM, self._tables, bags=True)
        m.submodules.bounds = bounds = RowBounds()
        m.submodules.store = store = SegmentStore(_SEGMENTS, OwnedSegment)
        wiring.connect(m, store.o, wiring.flipped(self.o))
        beat, item, entry = items.i.payload, items.o.payload, split.i.payload
        head = data.View(BagHead, item.record)
        m.d.comb += [
            items.i.valid.eq(self.i.valid), self.i.ready.eq(items.i.ready),
            *(beat[name].eq(self.i.payload[name]) for name in ("data", "records", "last", "fresh")),
            beat.user.node.eq(self.i.payload.source), beat.user.step.eq(self.i.payload.step),
            split.i.valid.eq(items.o.valid), items.o.ready.eq(split.i.ready),
            entry.key.eq(item.record), entry.bag.eq(1),
            entry.user.segment.eq(item.segment), entry.user.origin.eq(item.user),
            entry.user.wide.eq(head.wide), entry.user.beat_last.eq(item.beat_last),
            entry.user.bad_length.eq(item.cut | item.long | (head.keys == 0)
                                     | (head.part != 0) | head.more),
            split.node.eq(self.node), split.nodes.eq(self.nodes),
            self.write_ready.eq(split.write_ready),
            split.write_en.eq(self.write_en), split.write_table.eq(self.write_table),
            split.write_word.eq(self.write_word), split.write_data.eq(self.write_data),
            bounds.segment.eq(split.coming.segment), bounds.rows.eq(split.rows),
            bounds.wide.eq(split.coming.wide), bounds.enable.eq(split.moves),
            self.idle.eq(items.idle & split.idle & store.idle
                         & ~self.freed.valid & ~self.refused.valid),
        ]
        self._decide(m, split, bounds.bad, store)
        return m

    def _decide(self, m: Module, split: OwnerSplit, bad_row: Value, store: SegmentStore) -> None:
        """Store the segments that leave ``split``, and commit or revoke their bags."""
        found, come = split.o.payload, split.o.valid
        item = found.user
        # Of the bag that has begun: its requester, and whether one of its rows is bad.
        open_, requester, spoiled = Signal(), Signal(NODE_BITS, reset_less=True), Signal()
        abort, take, good, drop = Signal(), Signal(), Signal(), Signal()
        wrong = Signal()
        m.d.comb += [
            # The bag that has begun has no end.
            abort.eq(come & item.segment.head & open_),
            take.eq(come & ~abort & store.i.ready), split.o.ready.eq(~abort & store.i.ready),
            store.i.valid.eq(come & ~abort), store.i.payload.segment.eq(item.segment),
            store.i.payload.node.eq(item.origin.node), store.i.payload.step.eq(item.origin.step),
            wrong.eq(found.refused | ~found.own | item.bad_length | bad_row | spoiled),
            good.eq(take & item.segment.tail & ~wrong),
            drop.eq(take & item.segment.tail & wrong),
            store.commit.eq(good), store.revoke.eq(drop | abort),
        ]
        with m.If(abort):
            m.d.sync += [open_.eq(0), spoiled.eq(0)]
        with m.Elif(take):
            m.d.sync += [open_.eq(~item.segment.tail), requester.eq(item.origin.node),
                         spoiled.eq(~item.segment.tail & (spoiled | bad_row))]
        m.d.sync += [
            self.freed.valid.eq(take & item.beat_last), self.freed.node.eq(item.origin.node),
            self.refused.valid.eq(drop | abort),
            self.refused.node.eq(Mux(abort, requester, item.origin.node)),
        ]
        reason = data.View(data.StructLayout(dict.fromkeys(_REASONS, 1)), Signal(len(_REASONS)))
        with m.If(found.status == Status.KIND):
            m.d.comb += reason.bad_pool.eq(drop)
        with m.Elif(found.refused):
            m.d.comb += reason.bad_table.eq(drop)
        with m.Elif(~found.own):
            m.d.comb += reason.bad_owner.eq(drop)
        with m.Elif(item.bad_length):
            m.d.comb += reason.bad_length.eq(drop)
        with m.Else():
            m.d.comb += reason.bad_row.eq(drop)
        count(m, self.counters, bags=good,
              keys=Mux(good, found.key.row[:BagHead["keys"].width], 0),
              **{name: reason[name] for name in _REASONS if name != "bad_length"},
              bad_length=reason.bad_length | abort)


_REASONS = [name for name in BAG_CHECK_COUNTERS.members if name.startswith("bad_")]

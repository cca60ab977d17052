"""Query checker: validates each sample from the host as a whole, then passes or rejects it."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.bags import BagUnpacker, RowBounds, SegmentStore
from rtl.bags.layouts import Segment
from rtl.config import NicConfig
from rtl.formats import (
    BEAT_INDEX_BITS,
    CREDIT_BITS,
    NODE_BITS,
    STEP_BITS,
    ErrorRecord,
    Key,
    QueryBag,
    QueryRecord,
    RecordBeat,
    RecordKind,
    SampleRecord,
    repeat_fields,
)
from rtl.gateable import Gateable
from rtl.keys.owner_split import DESCRIPTOR_WRITES, OwnerSplit
from rtl.monitor.counters import CounterLayout, count
from rtl.query.judge import BAG_USER, USER, flags_of, head_of, judge
from rtl.query.unpacker import QueryUnpacker
from rtl.stream import PacketFIFO, SkidBuffer, packet_layout

__all__ = ["QUERY_COUNTERS", "QueryChecker", "Slot", "slot_layout"]

_COUNTERS = ("samples", "keys", "empty_bags", "rejected", "strays", "over_credit")

QUERY_COUNTERS = CounterLayout(*_COUNTERS)


def slot_layout(bags: bool, positions: int = 0) -> data.StructLayout:
    """Layout of a checked slot.

    mine: this node owns the key. last: last slot of its sample. An EMPTY slot has no key and no
    owner. ends: the slot belongs to no sample and ends the share of its step.

    With ``bags``, bag: the slot is a bag that pools at its owner. Its ``kind`` is KEY_END,
    ``key.table`` its table; bits 0 to 15 of ``key.row`` are its number of keys. mean: mean bit of
    the slot's table. final_beat: number of the last beat of the table's vectors.

    positions: see :func:`rtl.formats.repeat_fields`.
    """
    return data.StructLayout({
        "key": Key, "kind": 2, "owner": NODE_BITS, "mine": 1, "sample": 32, "step": STEP_BITS,
        "ends": 1, "last": 1,
    } | ({"bag": 1, "mean": 1, "final_beat": BEAT_INDEX_BITS} if bags else {})
        | repeat_fields(positions))


Slot = slot_layout(False)
"""A checked slot, in NICs without owner-pooled bags."""

class QueryChecker(Gateable, wiring.Component):
    """Pass valid samples as a whole, and answer each invalid sample with one error.

    The first fault of a sample determines its status:

    - TABLE: the table of a key has no valid descriptor, or its owner is outside the cluster, or
      the vectors of a table that pools at its owner are longer than ``vector_beats``;
    - KIND: the table of a key is split by columns;
    - ROW: the row of a key is beyond its table;
    - SAMPLE_SIZE: the sample has 0 slots, more than ``config.sample_slots``, or, if it ends a
      share, more than one slot; its last slot leaves the bag open; an EMPTY slot is inside a bag;
    - STEP: in training, the step is more than one ahead of the open step, and would block it;
    - TRUNCATED: a SAMPLE record arrives before the last slot of the sample;
    - CREDIT: beats of the sample were sent without a credit, and dropped;
    - NO_SAMPLE: slot records outside a sample. The error names no sample and is sent once for each
      run of these records, except for a run that begins at dropped beats.

    Dropped beats cause one CREDIT error. It names the open sample unless that sample was answered
    already. A sample may continue in the next packet; its step is that of its SAMPLE record.

    With ``config.owner_bags``, a slot may be a bag that pools at its owner. Further faults of a
    sample are:

    - KIND: a key of a table that pools at its owner, a bag of a table that does not, or of kind
      ROW, or a bag behind a KEY;
    - ROW: a row of a bag is beyond its table, or has more than 36 bits;
    - SAMPLE_SIZE: a bag has 0 keys, more than ``config.bag_words`` words, or a part; the sample has
      more than ``config.bag_segments`` segments;
    - TRUNCATED: a packet ends before the bag does.

    Ports
    -----
    i: stream of :data:`rtl.formats.RecordBeat`; always ready.
    o: stream of :func:`slot_layout`.
    segments (with bags): stream of :data:`rtl.bags.layouts.Segment`: the bags among the slots of
        ``o``, in order, with any bits above bit 47 of a head.
    errors: stream of :data:`rtl.formats.ErrorRecord`.
    consumed: beats consumed, modulo 2^16: the credit of the host.
    node, nodes: number of this node, and of all nodes.
    vector_beats (with bags): beats of the vector of a key; may change while idle.
    training, open_step: steps are separated, and the open step; see :class:`rtl.query.Dispatcher`.
    write_en, write_table, write_word, write_data, write_ready: table descriptors, see
        :class:`rtl.keys.owner_split.OwnerSplit`.
    counters: ``samples``, ``keys`` and ``empty_bags`` passed on; samples ``rejected``; ``strays``,
        slot records outside a sample; ``over_credit``, beats dropped. With bags: ``bags`` and
        ``bag_keys`` passed on; ``keys`` are those of other tables.
    idle: also 1 while an incomplete sample waits for the host.
    """

    LATENCY = {("last record of a sample", "its first slot"): 12,
               ("last word of a sample, in a NIC with bags", "its first slot"): 16,
               ("last word of a sample, in a NIC with bags", "its first segment"): 16}
    RATE = "1 record or segment per cycle, and a cycle more for each TRUNCATED or CREDIT"

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self._config, self._bags = config, config.owner_bags > 0
        self._slot = slot_layout(self._bags)
        super().__init__({
            "i": In(stream.Signature(RecordBeat)),
            "o": Out(stream.Signature(self._slot)), "errors": Out(stream.Signature(ErrorRecord)),
            "consumed": Out(CREDIT_BITS), "training": In(1), "open_step": In(STEP_BITS),
            "node": In(NODE_BITS), "nodes": In(NODE_BITS, init=(1 << NODE_BITS) - 1),
            **DESCRIPTOR_WRITES, "write_ready": Out(1),
            "counters": Out(CounterLayout(*_COUNTERS, *("bags", "bag_keys") * self._bags)),
            "idle": Out(1),
            **({"segments": Out(stream.Signature(Segment)),
                "vector_beats": In(5, init=config.vector_beats)} if self._bags else {}),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config, bags = self._config, self._bags
        m.submodules.unpacker = unpacker = (
            BagUnpacker(config.query_beats, config.bag_words) if bags else
            QueryUnpacker(config.query_beats))
        m.submodules.split = split = OwnerSplit(
            BAG_USER if bags else USER, config.tables, bags=bags)
        # Cut the path from the checks to the pointers of the FIFO.
        stored = data.StructLayout({
            name: shape for name, shape in self._slot.members.items() if name != "last"})
        m.submodules.staged = staged = SkidBuffer(packet_layout(stored))
        m.submodules.slots = slots = PacketFIFO(stored, config.sample_slots)
        m.submodules.error_buffer = error = SkidBuffer(ErrorRecord)
        wiring.connect(m, wiring.flipped(self.i), unpacker.i)
        wiring.connect(m, staged.o, slots.i)
        wiring.connect(m, error.o, wiring.flipped(self.errors))

        query = data.View(QueryRecord, unpacker.o.payload.record)
        user = unpacker.o.payload.user if bags else unpacker.o.payload
        # Check each record alone here; this shortens later paths.
        key, distance, size_bad = split.i.payload.key, Signal(STEP_BITS), Signal()
        ends = Signal()
        slots_in = head_of(key).slots
        m.d.comb += [
            distance.eq(user.step - self.open_step),
            size_bad.eq((slots_in == 0) | (slots_in > config.sample_slots)
                        | (ends & (slots_in != 1))),
            ends.eq(data.View(SampleRecord, unpacker.o.payload.record).ends),
            split.i.payload.user.ends.eq(ends),
            split.i.valid.eq(unpacker.o.valid), unpacker.o.ready.eq(split.i.ready),
            split.i.payload.key.row.eq(query.row), split.i.payload.key.table.eq(query.table),
            split.i.payload.user.kind.eq(query.kind),
            split.i.payload.user.step.eq(user.step),
            split.i.payload.user.size_bad.eq(size_bad),
            split.i.payload.user.refused.eq(
                size_bad | (self.training & ~distance[-1] & distance[1:].any())),
            split.i.payload.user.gap.eq(user.gap & ~user.marker),
            split.i.payload.user.marker.eq(user.marker),
            *split.follow(self),
            self.consumed.eq(unpacker.consumed),
        ]
        checked, flags = split.o, flags_of(m, split)
        if bags:
            checked = self._segments(m, unpacker, split, flags)
            flags = checked.payload.flags
        rejected, stray = judge(m, checked, flags, staged.i, error.i, self.node,
                                m.submodules.store if bags else None)

        given, kind = Signal(), slots.o.payload.item.kind
        idle = unpacker.idle & split.idle & staged.idle & slots.idle & error.idle
        if bags:
            idle &= m.submodules.checked.idle & m.submodules.store.idle
        for name in stored.members:
            m.d.comb += self.o.payload[name].eq(slots.o.payload.item[name])
        m.d.comb += [
            self.o.payload.last.eq(slots.o.payload.last),
            self.o.valid.eq(slots.o.valid), slots.o.ready.eq(self.o.ready),
            given.eq(self.o.valid & self.o.ready),
            self.idle.eq(idle),
        ]
        keys = given & (kind != RecordKind.EMPTY)
        if bags:
            is_bag = slots.o.payload.item.bag
            count(m, self.counters, bags=given & is_bag, bag_keys=Mux(
                given & is_bag, self.o.payload.key.row[:QueryBag["keys"].width], 0))
            keys &= ~is_bag
        count(m, self.counters, samples=given & slots.o.payload.last, keys=keys,
              empty_bags=given & (kind == RecordKind.EMPTY),
              rejected=rejected, strays=stray, over_credit=unpacker.dropped)
        return m

    def _segments(self, m: Module, unpacker, split: OwnerSplit, flags):
        """Pass segments beside the records to the checks, with the bounds of their rows.

        Return the stream of records and segments with their flags and ``bad_row``.
        """
        m.submodules.store = store = SegmentStore(self._config.bag_segments)
        m.submodules.bounds = bounds = RowBounds()
        wiring.connect(m, store.o, wiring.flipped(self.segments))
        item, user, coming = unpacker.o.payload, split.i.payload.user, split.coming
        head = data.View(QueryBag, item.record)
        m.d.comb += [
            split.i.payload.bag.eq(~item.plain), user.plain.eq(item.plain),
            user.segment.eq(item.segment), user.wide.eq(head.wide), user.cut.eq(item.cut),
            user.size.eq((head.keys == 0) | (head.part != 0) | head.more | item.long),
            bounds.segment.eq(coming.segment), bounds.wide.eq(coming.wide),
            bounds.rows.eq(split.rows), bounds.enable.eq(split.moves),
        ]
        # Cut the path from the checks to the many registers of the split.
        found = split.o.payload
        m.submodules.checked = checked = SkidBuffer(data.StructLayout(
            found.shape().members | {"flags": flags.shape(), "bad_row": 1}))
        m.d.comb += [
            *(checked.i.payload[name].eq(found[name]) for name in found.shape().members),
            checked.i.payload.flags.eq(flags), checked.i.payload.bad_row.eq(bounds.bad),
            checked.i.valid.eq(split.o.valid), split.o.ready.eq(checked.i.ready),
        ]
        return checked.o

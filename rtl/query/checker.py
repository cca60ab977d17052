"""Query checker: validates each sample from the host as a whole, then passes or rejects it."""

from amaranth.hdl import C, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import NicConfig
from rtl.formats import (
    CREDIT_BITS,
    NO_SAMPLE,
    NODE_BITS,
    STEP_BITS,
    TABLE_BITS,
    ErrorRecord,
    Key,
    QueryRecord,
    RecordBeat,
    RecordKind,
    SampleRecord,
    Status,
)
from rtl.gateable import Gateable
from rtl.keys.owner_split import OwnerSplit
from rtl.monitor.counters import CounterLayout, count
from rtl.query.unpacker import QueryUnpacker
from rtl.stream import PacketFIFO, SkidBuffer, packet_layout

__all__ = ["QUERY_COUNTERS", "QueryChecker", "Slot", "slot_layout"]

QUERY_COUNTERS = CounterLayout(
    "samples", "keys", "empty_bags", "rejected", "strays", "over_credit")


def slot_layout(bags: bool) -> data.StructLayout:
    """Layout of a checked slot.

    mine: this node owns the key. last: last slot of its sample. An EMPTY slot has no key and no
    owner. ends: the slot belongs to no sample and ends the share of its step.

    With ``bags``, bag: the slot is a bag that pools at its owner. Its ``kind`` is KEY_END,
    ``key.table`` its table; bits 0 to 15 of ``key.row`` are its number of keys, and bit 16 is the
    ``mean`` of its table.
    """
    return data.StructLayout({
        "key": Key, "kind": 2, "owner": NODE_BITS, "mine": 1, "sample": 32, "step": STEP_BITS,
        "ends": 1, "last": 1,
    } | ({"bag": 1} if bags else {}))


Slot = slot_layout(False)
"""A checked slot, in NICs without owner-pooled bags."""

_Stored = data.StructLayout({
    "key": Key, "kind": 2, "owner": NODE_BITS, "mine": 1, "sample": 32, "step": STEP_BITS,
    "ends": 1,
})
_User = data.StructLayout({
    "kind": 2, "step": STEP_BITS, "gap": 1, "marker": 1, "ends": 1, "size_bad": 1, "refused": 1})
"""Data beside a key.

gap: beats before this record were lost. ends: field of a SAMPLE record. size_bad: the SAMPLE record
has an invalid number of slots. refused: the SAMPLE record has an invalid size or step.
"""

_Flags = data.StructLayout({
    "head": 1, "key": 1, "inner": 1, "empty": 1, "refused": 1, "gap": 1, "marker": 1})
"""Kind of a record.

head: SAMPLE. refused: a SAMPLE to be rejected. key: KEY or KEY_END. inner: KEY. empty: EMPTY. gap:
beats before it were lost. marker: a gap without a record.
"""


class QueryChecker(Gateable, wiring.Component):
    """Pass valid samples as a whole, and answer each invalid sample with one error.

    The first fault of a sample determines its status:

    - TABLE: the table of a key has no valid descriptor, or its owner is outside the cluster;
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

    Ports
    -----
    i: stream of :data:`rtl.formats.RecordBeat`; always ready.
    o: stream of :data:`Slot`.
    errors: stream of :data:`rtl.formats.ErrorRecord`.
    consumed: beats consumed, modulo 2^16: the credit of the host.
    node, nodes: number of this node, and of all nodes.
    training, open_step: steps are separated, and the open step; see :class:`rtl.query.Dispatcher`.
    write_en, write_table, write_word, write_data, write_ready: table descriptors, see
        :class:`rtl.keys.owner_split.OwnerSplit`.
    counters: ``samples``, ``keys`` and ``empty_bags`` passed on; samples ``rejected``; ``strays``,
        slot records outside a sample; ``over_credit``, beats dropped.
    idle: also 1 while an incomplete sample waits for the host.
    """

    LATENCY = {("last record of a sample", "its first slot"): 12}
    RATE = "1 record per cycle, and a cycle more for each TRUNCATED or CREDIT"

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i": In(stream.Signature(RecordBeat)),
            "o": Out(stream.Signature(Slot)), "errors": Out(stream.Signature(ErrorRecord)),
            "consumed": Out(CREDIT_BITS), "training": In(1), "open_step": In(STEP_BITS),
            "node": In(NODE_BITS), "nodes": In(NODE_BITS, init=(1 << NODE_BITS) - 1),
            "write_en": In(1), "write_table": In(TABLE_BITS), "write_word": In(3),
            "write_data": In(32), "write_ready": Out(1),
            "counters": Out(QUERY_COUNTERS), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.unpacker = unpacker = QueryUnpacker(self._config.query_beats)
        m.submodules.split = split = OwnerSplit(_User, self._config.tables)
        # Cut the path from the checks to the pointers of the FIFO.
        m.submodules.staged = staged = SkidBuffer(packet_layout(_Stored))
        m.submodules.slots = slots = PacketFIFO(_Stored, self._config.sample_slots)
        m.submodules.error_buffer = error = SkidBuffer(ErrorRecord)
        wiring.connect(m, wiring.flipped(self.i), unpacker.i)
        wiring.connect(m, staged.o, slots.i)
        wiring.connect(m, error.o, wiring.flipped(self.errors))

        query = data.View(QueryRecord, unpacker.o.payload.record)
        # Check each record alone here; this shortens later paths.
        key, distance, size_bad = split.i.payload.key, Signal(STEP_BITS), Signal()
        ends = Signal()
        slots_in = _head(key).slots
        m.d.comb += [
            distance.eq(unpacker.o.payload.step - self.open_step),
            size_bad.eq((slots_in == 0) | (slots_in > self._config.sample_slots)
                        | (ends & (slots_in != 1))),
            ends.eq(data.View(SampleRecord, unpacker.o.payload.record).ends),
            split.i.payload.user.ends.eq(ends),
            split.i.valid.eq(unpacker.o.valid), unpacker.o.ready.eq(split.i.ready),
            split.i.payload.key.row.eq(query.row), split.i.payload.key.table.eq(query.table),
            split.i.payload.user.kind.eq(query.kind),
            split.i.payload.user.step.eq(unpacker.o.payload.step),
            split.i.payload.user.size_bad.eq(size_bad),
            split.i.payload.user.refused.eq(
                size_bad | (self.training & ~distance[-1] & distance[1:].any())),
            split.i.payload.user.gap.eq(unpacker.o.payload.gap & ~unpacker.o.payload.marker),
            split.i.payload.user.marker.eq(unpacker.o.payload.marker),
            split.node.eq(self.node), split.nodes.eq(self.nodes),
            split.write_en.eq(self.write_en), split.write_table.eq(self.write_table),
            split.write_word.eq(self.write_word), split.write_data.eq(self.write_data),
            self.write_ready.eq(split.write_ready),
            self.consumed.eq(unpacker.consumed),
        ]
        rejected, stray = self._check(m, split.o, self._flags(m, split), staged.i, error.i)

        given, kind = Signal(), slots.o.payload.item.kind
        for name in _Stored.members:
            m.d.comb += self.o.payload[name].eq(slots.o.payload.item[name])
        m.d.comb += [
            self.o.payload.last.eq(slots.o.payload.last),
            self.o.valid.eq(slots.o.valid), slots.o.ready.eq(self.o.ready),
            given.eq(self.o.valid & self.o.ready),
            self.idle.eq(unpacker.idle & split.idle & staged.idle & slots.idle & error.idle),
        ]
        count(m, self.counters, samples=given & slots.o.payload.last,
              keys=given & (kind != RecordKind.EMPTY),
              empty_bags=given & (kind == RecordKind.EMPTY),
              rejected=rejected, strays=stray, over_credit=unpacker.dropped)
        return m

    def _flags(self, m: Module, split: OwnerSplit):
        """Return the flags of the record that leaves ``split``, as registers."""
        flags, user = Signal(_Flags), split.coming
        with m.If(split.moves):
            m.d.sync += [
                flags.head.eq(user.kind == RecordKind.SAMPLE),
                flags.refused.eq((user.kind == RecordKind.SAMPLE) & user.refused),
                flags.key.eq((user.kind == RecordKind.KEY) | (user.kind == RecordKind.KEY_END)),
                flags.inner.eq(user.kind == RecordKind.KEY),
                flags.empty.eq(user.kind == RecordKind.EMPTY),
                flags.gap.eq(user.gap | user.marker), flags.marker.eq(user.marker & ~user.gap),
            ]
        return flags

    def _check(self, m: Module, i, flags, o, errors) -> tuple[Signal, Signal]:
        """Judge each record, and commit or revoke each sample at its end."""
        user, record = i.payload.user, i.payload.key
        head = _head(record)
        # State of the sample: open until its last slot; bad after its error; final before its last
        # slot; in_bag after a KEY. straying: in a run of stray records. bridged: gap handled.
        open_, bad, final, in_bag, straying, bridged = (Signal(name=n) for n in (
            "open", "bad", "final", "in_bag", "straying", "bridged"))
        left, sample, step = Signal(16), Signal(32), Signal(STEP_BITS)
        ends = Signal(reset_less=True)  # the share of its step

        is_head, cut = flags.head, Signal()
        fault, go, status = Signal(), Signal(), Signal(8)
        write, end = Signal(), Signal()
        m.d.comb += [
            # End the open sample; the record stays and is judged in the next cycle.
            cut.eq((flags.gap & ~bridged) | (is_head & open_)),
        ]
        with m.If(flags.gap & ~bridged):
            m.d.comb += [fault.eq(1), status.eq(Status.CREDIT)]
        with m.Elif(is_head & open_):
            m.d.comb += [fault.eq(~bad), status.eq(Status.TRUNCATED)]
        with m.Elif(is_head):
            m.d.comb += [fault.eq(flags.refused),
                         status.eq(Mux(user.size_bad, Status.SAMPLE_SIZE, Status.STEP))]
        with m.Elif(~open_):
            m.d.comb += [fault.eq(~straying), status.eq(Status.NO_SAMPLE)]
        with m.Elif(flags.key & i.payload.refused):
            m.d.comb += [fault.eq(~bad), status.eq(i.payload.status)]
        with m.Elif((flags.empty & in_bag) | (flags.inner & final)):
            m.d.comb += [fault.eq(~bad), status.eq(Status.SAMPLE_SIZE)]

        about_head, named = Signal(), Signal()
        m.d.comb += [
            # A bad sample stores only the end that revokes it. Any fault other than a slot's ends
            # the open sample.
            end.eq(open_ & (cut | final)),
            write.eq(open_ & (cut | final | ~(bad | (flags.key & i.payload.refused)
                                              | (flags.empty & in_bag)))),
            o.payload.last.eq(end), o.payload.drop.eq(bad | fault),
            o.payload.item.key.eq(record), o.payload.item.kind.eq(user.kind),
            o.payload.item.owner.eq(i.payload.owner),
            # Compare here: the output of the store arrives late in the cycle.
            o.payload.item.mine.eq(flags.key & (i.payload.owner == self.node)),
            o.payload.item.sample.eq(sample), o.payload.item.step.eq(step),
            o.payload.item.ends.eq(ends & flags.empty),
            go.eq(i.valid & o.ready & errors.ready),
            o.valid.eq(i.valid & errors.ready & write),
            i.ready.eq(o.ready & errors.ready & (~cut | flags.marker)),
            # Name the new sample, else the open sample if it has no answer yet.
            about_head.eq(is_head & ~cut), named.eq(about_head | (open_ & ~bad)),
            errors.valid.eq(i.valid & o.ready & fault),
            errors.payload.sample.eq(Mux(
                about_head, head.sample, Mux(named, sample, NO_SAMPLE))),
            errors.payload.step.eq(Mux(named & ~about_head, step, user.step)),
            errors.payload.status.eq(status), errors.payload.node.eq(0),
        ]
        with m.If(go):
            m.d.sync += bridged.eq(flags.gap & ~flags.marker & cut)
            with m.If(cut):
                # The error for the gap covers the rest of the sample.
                m.d.sync += [open_.eq(0), straying.eq(1)]
            with m.Elif(is_head):
                m.d.sync += [
                    # Skip the slots of a sample that is too large; a sample of 0 slots is closed.
                    open_.eq(head.slots != 0), bad.eq(flags.refused), in_bag.eq(0),
                    straying.eq(0), sample.eq(head.sample), step.eq(user.step), ends.eq(user.ends),
                    left.eq(head.slots), final.eq(head.slots == 1),
                ]
            with m.Elif(open_):
                m.d.sync += [
                    bad.eq(bad | fault), in_bag.eq(flags.inner),
                    left.eq(left - 1), final.eq(left == 2), open_.eq(~final),
                ]
            with m.Else():
                m.d.sync += straying.eq(1)
        rejected, stray = Signal(), Signal()
        m.d.comb += [rejected.eq(go & fault & named),
                     stray.eq(go & ~cut & ~is_head & ~open_)]
        return rejected, stray


def _head(key) -> data.View:
    """Return a SAMPLE record from the bits of ``key``."""
    return data.View(SampleRecord, key.as_value() | C(0, SampleRecord.size))

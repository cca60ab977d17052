"""Verdicts of the query checker: the fault of each record and segment, and the end of each sample.
"""

from contextlib import nullcontext

from amaranth.hdl import C, Module, Mux, Signal, Value
from amaranth.lib import data

from rtl.bags import SegmentStore
from rtl.bags.layouts import Segment
from rtl.formats import NO_SAMPLE, STEP_BITS, QueryBag, RecordKind, SampleRecord, Status
from rtl.keys.owner_split import OwnerSplit

__all__ = ["BAG_USER", "USER", "flags_of", "head_of", "judge"]

USER = data.StructLayout({
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

BAG_USER = data.StructLayout(
    USER.members | {"segment": Segment, "plain": 1, "wide": 1, "size": 1, "cut": 1})
"""The same in a NIC with bags. plain: the item is a record, not a segment. wide: the segment has a
row per word. size: its bag has an invalid size. cut: its packet ends before its bag."""

_BagFlags = data.StructLayout(_Flags.members | {"bag": 1, "slot": 1, "size": 1, "cut": 1})
"""The same in a NIC with bags. bag: a segment; ``key`` is 1 too. slot: a record, or the last
segment of its bag. size, cut: see :data:`BAG_USER`, 0 for a record."""


def head_of(key) -> data.View:
    """Return a SAMPLE record from the bits of ``key``."""
    return data.View(SampleRecord, key.as_value() | C(0, SampleRecord.size))


def flags_of(m: Module, split: OwnerSplit) -> Signal:
    """Return the flags of the record that leaves ``split``, as registers."""
    bags = "plain" in split.coming.shape().members
    flags, user = Signal(_BagFlags if bags else _Flags), split.coming
    with m.If(split.moves):
        m.d.sync += [
            flags.head.eq(user.kind == RecordKind.SAMPLE),
            flags.refused.eq((user.kind == RecordKind.SAMPLE) & user.refused),
            flags.key.eq((user.kind == RecordKind.KEY) | (user.kind == RecordKind.KEY_END)),
            flags.inner.eq(user.kind == RecordKind.KEY),
            flags.empty.eq(user.kind == RecordKind.EMPTY),
            flags.gap.eq(user.gap | user.marker), flags.marker.eq(user.marker & ~user.gap),
        ]
        if bags:
            m.d.sync += [
                flags.bag.eq(~user.plain), flags.slot.eq(user.plain | user.segment.tail),
                flags.size.eq(~user.plain & user.size), flags.cut.eq(~user.plain & user.cut),
            ]
    return flags


def judge(m: Module, i, flags, o, errors, node,
          store: SegmentStore | None = None) -> tuple[Signal, Signal]:
    """Judge each record, and commit or revoke each sample at its end.

    i: stream of :func:`rtl.keys.owner_split.split_layout` with :data:`USER` or :data:`BAG_USER`; in
        a NIC with bags also ``bad_row``, the segment has a bad row.
    flags: of its item, see :func:`flags_of`.
    o: stream of :func:`rtl.stream.packet_layout` of slots.
    errors: stream of :data:`rtl.formats.ErrorRecord`.
    node: number of this node.
    store (with bags): store of the segments of good samples.

    Return the events: a sample is rejected; a slot outside a sample.
    """
    user, record = i.payload.user, i.payload.key
    head = head_of(record)
    # State of the sample: open until its last slot; bad after its error; final before its last
    # slot; in_bag after a KEY. straying: in a run of stray records. bridged: gap handled.
    open_, bad, final, in_bag, straying, bridged = (Signal(name=n) for n in (
        "open", "bad", "final", "in_bag", "straying", "bridged"))
    left, sample, step = Signal(16), Signal(32), Signal(STEP_BITS)
    ends = Signal(reset_less=True)  # the share of its step

    is_head, cut = flags.head, Signal()
    fault, go, status = Signal(), Signal(), Signal(8)
    write, end = Signal(), Signal()
    # unfit: the record is not stored. last: it is the last of its sample. room: behind it.
    unfit = bad | (flags.key & i.payload.refused) | (flags.empty & in_bag)
    last, room = final, o.ready
    if store is not None:
        wrong, full = Signal(), Signal()
        bad_row = i.payload.bad_row
        m.d.comb += wrong.eq(flags.bag & (in_bag | flags.size | full | bad_row | flags.cut))
        # Wait for the store, unless it may contain only segments of this sample. A segment never
        # follows directly behind a revoked sample.
        room &= ~store.full | bad | full
        last = final & flags.slot
        _store(m, store, i, i.valid & room & errors.ready, full, begin=is_head & ~cut,
               write=open_ & flags.bag & ~(cut | unfit | wrong), end=end, drop=bad | fault)
        unfit |= wrong | ~flags.slot
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
    if store is not None:
        with m.Elif(wrong):
            m.d.comb += [fault.eq(~bad), status.eq(Mux(
                in_bag, Status.KIND, Mux(flags.size | full, Status.SAMPLE_SIZE, Mux(
                    bad_row, Status.ROW, Status.TRUNCATED))))]

    about_head, named = Signal(), Signal()
    m.d.comb += [
        # A bad sample stores only the end that revokes it. Any fault other than a slot's ends
        # the open sample.
        end.eq(open_ & (cut | last)),
        write.eq(open_ & (cut | last | ~unfit)),
        o.payload.last.eq(end), o.payload.drop.eq(bad | fault),
        o.payload.item.key.eq(record), o.payload.item.kind.eq(user.kind),
        o.payload.item.owner.eq(i.payload.owner),
        # Compare here: the output of the store arrives late in the cycle.
        o.payload.item.mine.eq(flags.key & (i.payload.owner == node)),
        o.payload.item.sample.eq(sample), o.payload.item.step.eq(step),
        o.payload.item.ends.eq(ends & flags.empty),
        go.eq(i.valid & room & errors.ready),
        o.valid.eq(i.valid & errors.ready & write if store is None else go & write),
        i.ready.eq(room & errors.ready & (~cut | flags.marker)),
        # Name the new sample, else the open sample if it has no answer yet.
        about_head.eq(is_head & ~cut), named.eq(about_head | (open_ & ~bad)),
        errors.valid.eq(i.valid & room & fault),
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
            m.d.sync += bad.eq(bad | fault)
            with nullcontext() if store is None else m.If(flags.slot):
                m.d.sync += [
                    in_bag.eq(flags.inner), left.eq(left - 1), final.eq(left == 2),
                    open_.eq(~final),
                ]
        with m.Else():
            m.d.sync += straying.eq(1)
    rejected, stray = Signal(), Signal()
    m.d.comb += [rejected.eq(go & fault & named),
                 stray.eq(go & ~cut & ~is_head & ~open_)]
    if store is not None:
        m.d.comb += [o.payload.item.bag.eq(flags.bag), o.payload.item.mean.eq(i.payload.mean),
                     o.payload.item.final_beat.eq(i.payload.final_beat)]
        with m.If(flags.bag):
            m.d.comb += o.payload.item.key.row.eq(record.row[:QueryBag["keys"].width])
        stray &= flags.slot
    return rejected, stray


def _store(m: Module, store: SegmentStore, i, go: Value, full: Signal, *, begin: Value,
           write: Value, end: Value, drop: Value) -> None:
    """Store the segment of a good sample, and commit or revoke the sample's segments at its end.

    full: the sample has as many segments as the store.
    """
    used = Signal(range(store.depth))
    m.d.comb += [
        store.i.valid.eq(go & write), store.i.payload.eq(i.payload.user.segment),
        store.commit.eq(go & end & ~drop), store.revoke.eq(go & end & drop),
    ]
    with m.If(go & begin):
        m.d.sync += [used.eq(0), full.eq(0)]
    with m.Elif(store.i.valid):
        m.d.sync += [used.eq(used + 1), full.eq(used == store.depth - 1)]

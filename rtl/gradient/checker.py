"""Gradient check: checks whole packets of gradients from the host before they have any effect."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import NicConfig
from rtl.formats import (
    NODE_BITS,
    STEP_BITS,
    GradientRecord,
    Key,
    RecordKind,
    Refused,
    Status,
)
from rtl.gradient.bags import BagKey, GradientItem, bag_length, packet_records
from rtl.keys.owner_split import DESCRIPTOR_WRITES, OwnerSplit
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import PacketFIFO, SkidBuffer, StreamFIFO, packet_layout

__all__ = ["GRADIENT_CHECK_COUNTERS", "GradientCheck"]

GRADIENT_CHECK_COUNTERS = CounterLayout("packets", "dropped")

_User = data.StructLayout({
    "end": 1, "empty": 1, "other": 1, "step": STEP_BITS, "late": 1, "bare": 1, "lost": 1, "last": 1,
    "beats": 8})
"""``end``, ``empty``, ``other``: the kind of the record, unless it is KEY. ``late``: its step does
not accept gradients now."""

_Judged = data.StructLayout({
    "key": Key, "step": STEP_BITS, "end": 1, "over": 1, "last": 1, "vectors": 1, "fault": 1,
    "status": 8})
"""A record and its fault, of ``status``. ``over``: the record ends the step. ``vectors``: its
packet has vectors."""

_Flags = data.StructLayout({
    "end": 1, "over": 1, "ends": 1, "early": 1, "early_status": 8, "kind": 1, "open": 1,
    "differs": 2})
"""Properties of a record and of the earlier records of its packet, except those that depend on its
table or on ended steps.

end: the record ends a bag.
over: the only record of a packet that ends the step.
ends: as ``over``, and no earlier fault applies.
early, early_status: a fault with priority over the faults below.
kind: fault of the record kind.
open: fault: the last record leaves its bag open.
differs: fault of the number of vector beats, if the last vector does not begin a beat, and if it
does.
"""

_VERDICTS = 16
"""Checked packets whose result may wait for the vectors of earlier packets."""


class GradientCheck(wiring.Component):
    """Pass valid packets whole; reject each invalid packet with one message.

    The first fault of a packet determines its status:

    - CREDIT: the packet was sent without credit, and lost;
    - LENGTH: the packet has no record;
    - STEP: its step does not accept gradients now, or has ended;
    - KIND: a record is neither KEY nor KEY_END, or its table is split by columns or replicated;
    - TABLE: the table has no valid descriptor, or an owner outside the cluster;
    - ROW: the row is beyond its table;
    - TRUNCATED: the last record leaves its bag open;
    - LENGTH: the number of vector beats does not match one vector per KEY_END.

    A packet of one EMPTY record without vectors ends its step. The end is an item in the stream of
    keys. The order of packets is kept.

    Ports
    -----
    i: stream of :data:`~rtl.gradient.bags.GradientItem`.
    keys: packet stream (:func:`rtl.stream.packet_layout`) of :data:`~rtl.gradient.bags.BagKey`.
    bags: packet stream of the number of keys of each bag.
    verdicts: stream of 1 bit per packet with vectors: 1 drops the vectors.
    refused: stream of :data:`rtl.formats.Refused`.
    step: the step that accepts gradients; may change while idle.
    vector_beats: beats of a vector; may change while idle.
    vector_packing: log2 of the vectors that share a beat of a packet, 0 to 2; must be 0 if a vector
        has several beats. It may change while idle.
    node, nodes: number of this node, and the number of nodes.
    write_en, write_table, write_word, write_data, write_ready: writes to the table descriptors, see
        :class:`rtl.keys.owner_split.OwnerSplit`.
    counters: ``packets`` passed on and ``dropped``.
    idle: inactive until an input changes.
    """

    LATENCY = {("last record of a packet", "its first key"): 9}
    RATE = "1 record per cycle"

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self._config = config
        self._length = bag_length(config)
        super().__init__({
            "i": In(stream.Signature(GradientItem)),
            "keys": Out(stream.Signature(packet_layout(BagKey))),
            "bags": Out(stream.Signature(packet_layout(self._length))),
            "verdicts": Out(stream.Signature(1)), "refused": Out(stream.Signature(Refused)),
            "step": In(STEP_BITS), "vector_beats": In(5), "vector_packing": In(2),
            "node": In(NODE_BITS), "nodes": In(NODE_BITS, init=(1 << NODE_BITS) - 1),
            **DESCRIPTOR_WRITES, "write_ready": Out(1),
            "counters": Out(GRADIENT_CHECK_COUNTERS), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        # One packet may be read while the next one is checked.
        depth = 2 * packet_records(self._config)
        m.submodules.split = split = OwnerSplit(_User, self._config.tables, replicated=False)
        m.submodules.keys = keys = PacketFIFO(BagKey, depth)
        m.submodules.bags = bags = PacketFIFO(self._length, depth)
        m.submodules.verdicts = verdicts = StreamFIFO(1, _VERDICTS)
        m.submodules.refused = refused = SkidBuffer(Refused)
        m.submodules.judged = judged = SkidBuffer(_Judged)
        # These buffers cut the paths from the checks to the pointers of the FIFOs.
        m.submodules.staged_key = staged_key = SkidBuffer(packet_layout(BagKey))
        m.submodules.staged_bag = staged_bag = SkidBuffer(packet_layout(self._length))
        wiring.connect(m, staged_key.o, keys.i)
        wiring.connect(m, staged_bag.o, bags.i)
        for block, port in ((keys, self.keys), (bags, self.bags), (verdicts, self.verdicts),
                            (refused, self.refused)):
            wiring.connect(m, block.o, wiring.flipped(port))

        item, taken = self.i.payload, split.i.payload
        record = data.View(GradientRecord, item.record)
        m.d.comb += [
            split.i.valid.eq(self.i.valid), self.i.ready.eq(split.i.ready),
            taken.key.row.eq(record.row), taken.key.table.eq(record.table),
            taken.user.end.eq(record.kind == RecordKind.KEY_END),
            taken.user.empty.eq(record.kind == RecordKind.EMPTY),
            taken.user.other.eq(record.kind == RecordKind.SAMPLE),
            taken.user.late.eq(item.step != self.step),
            *split.follow(self),
            *(taken.user[name].eq(item[name])
              for name in ("step", "bare", "lost", "last", "beats")),
        ]
        blocks = split, judged, staged_key, staged_bag, keys, bags, verdicts, refused
        m.d.comb += self.idle.eq(Cat(block.idle for block in blocks).all())
        self._judge(m, split.o, self._flags(m, split), judged.i)
        self._track(m, judged.o, staged_key.i, staged_bag.i, verdicts.i, refused.i)
        return m

    def _flags(self, m: Module, split: OwnerSplit):
        """Return the flags of the record that leaves ``split``, from registers: computed one cycle
        earlier, which shortens the path of the next cycle."""
        user, known = split.coming, Signal(_Flags, reset_less=True)
        # Beats of vectors before this record, and with the next beat; vectors in the current one.
        beats, more, place = Signal(16), Signal(16), Signal(2)
        first, final_place = Signal(init=1), Signal.like(place)  # the packet begins here
        begins, over = Signal(), Signal()
        m.d.sync += final_place.eq((1 << self.vector_packing) - 1)
        m.d.comb += [
            begins.eq(user.end & (place == 0)), over.eq(user.empty & first & user.last),
        ]
        with m.If(split.moves):
            m.d.sync += [
                known.end.eq(user.end), known.over.eq(over),
                known.ends.eq(over & ~user.bare & ~user.late),
                known.early.eq(user.bare | user.late),
                known.early_status.eq(Mux(user.bare, Mux(
                    user.lost, Status.CREDIT, Status.LENGTH), Status.STEP)),
                known.kind.eq(user.other | (user.empty & ~over)),
                known.open.eq(user.last & ~user.end & ~over),
                # Compared with both, because the relevant one is known late.
                known.differs.eq(Cat(user.last & ~begins & (beats != user.beats),
                                     user.last & begins & (more != user.beats))),
            ]
            with m.If(beats == 0):
                m.d.sync += more.eq(self.vector_beats)
            with m.If(split.comes):
                m.d.sync += first.eq(user.last)
                with m.If(user.end):
                    m.d.sync += place.eq(Mux(place == final_place, 0, place + 1))
                with m.If(begins):
                    m.d.sync += [beats.eq(more), more.eq(more + self.vector_beats)]
                with m.If(user.last):
                    m.d.sync += [beats.eq(0), more.eq(self.vector_beats), place.eq(0)]
        return known

    def _judge(self, m: Module, i, known, judged) -> None:
        """Find the fault of each record, or of its packet at the last record."""
        user, item = i.payload.user, judged.payload
        # The last step that ended. A record that is not ``late`` belongs to the step that accepts
        # gradients, unless that step has ended (``closed``), known one cycle earlier.
        ended, closed = Signal(STEP_BITS + 1), Signal()
        m.d.comb += [
            i.ready.eq(judged.ready), judged.valid.eq(i.valid),
            item.key.eq(i.payload.key), item.step.eq(user.step), item.end.eq(known.end),
            item.over.eq(known.over), item.last.eq(user.last), item.vectors.eq(user.beats != 0),
        ]
        faults = (
            (known.early, known.early_status),
            (closed, Status.STEP),
            (known.kind, Status.KIND),
            (~known.over & i.payload.refused, i.payload.status),
            (known.open, Status.TRUNCATED),
            (known.differs.any(), Status.LENGTH),
        )
        for n, (holds, reason) in enumerate(faults):
            with m.If(holds) if n == 0 else m.Elif(holds):
                m.d.comb += [item.fault.eq(1), item.status.eq(reason)]
        m.d.sync += closed.eq(Cat(self.step, 1) == ended)
        with m.If(i.valid & judged.ready & known.ends & ~closed & ~known.differs[0]):
            m.d.sync += [ended.eq(Cat(user.step, 1)), closed.eq(1)]

    def _track(self, m: Module, i, keys, bags, verdicts, refused) -> None:
        """Pass on the records of valid packets; commit or revoke at the end of each packet."""
        item, go, ready, drop = i.payload, Signal(), Signal(), Signal()
        # Fault of an earlier record of the packet, and its status; keys of the bag before this
        # record.
        bad, kept, length = Signal(), Signal(8), Signal(self._length)
        m.d.comb += [
            drop.eq(bad | item.fault),
            ready.eq(keys.ready & bags.ready & verdicts.ready & refused.ready),
            go.eq(i.valid & ready), i.ready.eq(ready),
            # An invalid packet stores only the end that revokes it.
            keys.valid.eq(go & (item.last | ~drop)),
            keys.payload.item.key.eq(item.key), keys.payload.item.over.eq(item.over),
            keys.payload.item.step.eq(item.step), keys.payload.item.end.eq(item.end),
            keys.payload.last.eq(item.last), keys.payload.drop.eq(drop),
            bags.valid.eq(go & ~item.over & (item.last | (item.end & ~drop))),
            bags.payload.item.eq(length + 1),
            bags.payload.last.eq(item.last), bags.payload.drop.eq(drop),
            verdicts.valid.eq(go & item.last & item.vectors), verdicts.payload.eq(drop),
            refused.valid.eq(go & item.last & drop),
            refused.payload.status.eq(Mux(bad, kept, item.status)),
            refused.payload.step.eq(item.step),
        ]
        with m.If(go):
            m.d.sync += [bad.eq(drop & ~item.last),
                         length.eq(Mux(item.end | item.last, 0, length + 1))]
            with m.If(~bad):
                m.d.sync += kept.eq(item.status)
        count(m, self.counters, packets=go & item.last & ~drop, dropped=go & item.last & drop)

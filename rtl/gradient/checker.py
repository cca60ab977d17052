"""Gradient check: checks whole packets of gradients from the host before they have any effect."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import NicConfig
from rtl.formats import (
    NODE_BITS,
    STEP_BITS,
    TABLE_BITS,
    GradientRecord,
    RecordKind,
    Refused,
    Status,
)
from rtl.gradient.bags import BagKey, GradientItem, bag_length, packet_records
from rtl.keys.owner_split import OwnerSplit
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import PacketFIFO, SkidBuffer, StreamFIFO, packet_layout

__all__ = ["GRADIENT_CHECK_COUNTERS", "GradientCheck"]

GRADIENT_CHECK_COUNTERS = CounterLayout("packets", "dropped")

_User = data.StructLayout({
    "kind": 2, "step": STEP_BITS, "late": 1, "bare": 1, "lost": 1, "last": 1, "beats": 8})

_VERDICTS = 16
"""Packets that may be judged while the vectors of earlier ones are still here."""


class GradientCheck(wiring.Component):
    """Pass whole good packets, and answer each bad one with one refusal (DESIGN 6.2, 6.6).

    The first fault of a packet names its status:

    - CREDIT: the packet was sent without a credit, and lost;
    - LENGTH: it has no record;
    - STEP: its step is not the one that takes gradients now, or has ended;
    - KIND: a record is neither KEY nor KEY_END, or its table is split by columns or replicated;
    - TABLE: the table has no valid descriptor, or an owner outside the cluster;
    - ROW: a key's row is beyond its table;
    - TRUNCATED: the last record leaves its bag open;
    - LENGTH: the number of vector beats does not match one vector per KEY_END.

    A packet of one EMPTY record without vectors ends its step: that is passed on among the keys.

    Latency and rate: see ``LATENCY`` and ``RATE``.

    Ports
    -----
    i: stream of :data:`~rtl.gradient.bags.GradientItem`.
    keys: packet stream (:func:`rtl.stream.packet_layout`) of :data:`~rtl.gradient.bags.BagKey`.
    bags: packet stream of the number of keys of each bag.
    verdicts: stream of 1 bit, for each packet with vectors: whether they must be dropped.
    refused: stream of :data:`rtl.formats.Refused`.
    step: the step that takes gradients now; may change while idle.
    vector_beats: beats of a vector. vector_packing: log2 of the vectors that share a beat of a
        packet, 0 to 2; 0 with more beats than 1. They may change while idle.
    node, nodes: this node's number, and the number of nodes.
    write_en, write_table, write_word, write_data, write_ready: table descriptors, see
        :class:`rtl.keys.owner_split.OwnerSplit`.
    counters: ``packets`` passed on and ``dropped``. idle.
    """

    LATENCY = {("last record of a packet", "its first key"): 8}
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
            "write_en": In(1), "write_table": In(TABLE_BITS), "write_word": In(3),
            "write_data": In(32), "write_ready": Out(1),
            "counters": Out(GRADIENT_CHECK_COUNTERS), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        # One packet may be read while the next is checked.
        depth = 2 * packet_records(self._config)
        m.submodules.split = split = OwnerSplit(_User, self._config.tables, replicated=False)
        m.submodules.keys = keys = PacketFIFO(BagKey, depth)
        m.submodules.bags = bags = PacketFIFO(self._length, depth)
        m.submodules.verdicts = verdicts = StreamFIFO(1, _VERDICTS)
        m.submodules.refused = refused = SkidBuffer(Refused)
        # These cut the paths from the checks to the pointers of the FIFOs.
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
            taken.user.kind.eq(record.kind), taken.user.late.eq(item.step != self.step),
            split.node.eq(self.node), split.nodes.eq(self.nodes),
            split.write_en.eq(self.write_en), split.write_table.eq(self.write_table),
            split.write_word.eq(self.write_word), split.write_data.eq(self.write_data),
            self.write_ready.eq(split.write_ready),
            *(taken.user[name].eq(item[name])
              for name in ("step", "bare", "lost", "last", "beats")),
        ]
        blocks = split, staged_key, staged_bag, keys, bags, verdicts, refused
        m.d.comb += self.idle.eq(Cat(block.idle for block in blocks).all())
        self._judge(m, split.o, staged_key.i, staged_bag.i, verdicts.i, refused.i)
        return m

    def _judge(self, m: Module, i, keys, bags, verdicts, refused) -> None:
        """Track the packets: judge each record, commit or revoke at each packet's end."""
        user = i.payload.user
        end, fault, status = Signal(), Signal(), Signal(8)
        bad, kept = Signal(), Signal.like(status)
        # Vectors of the current beat, beats of vectors and keys of the bag before this record.
        place, beats, length = Signal(2), Signal(16), Signal(self._length)
        # The packet begins here; its only record ends the step; the last step that ended.
        first, over, ended = Signal(init=1), Signal(), Signal(STEP_BITS + 1)
        expected, final_place = Signal.like(beats), Signal.like(place)
        m.d.sync += final_place.eq((1 << self.vector_packing) - 1)
        m.d.comb += [
            end.eq(user.kind == RecordKind.KEY_END),
            expected.eq(beats + Mux(end & (place == 0), self.vector_beats, 0)),
            over.eq((user.kind == RecordKind.EMPTY) & first & user.last),
        ]
        faults = (
            (user.bare, Mux(user.lost, Status.CREDIT, Status.LENGTH)),
            (user.late | (Cat(user.step, 1) == ended), Status.STEP),
            (~end & (user.kind != RecordKind.KEY) & ~over, Status.KIND),
            (~over & (i.payload.status != 0), i.payload.status),
            (user.last & ~end & ~over, Status.TRUNCATED),
            (user.last & (expected != user.beats), Status.LENGTH),
        )
        for n, (holds, reason) in enumerate(faults):
            with m.If(holds) if n == 0 else m.Elif(holds):
                m.d.comb += [fault.eq(1), status.eq(reason)]

        drop, go, has_vectors = Signal(), Signal(), Signal()
        m.d.comb += [
            drop.eq(bad | fault), has_vectors.eq(user.beats != 0),
            go.eq(i.valid & keys.ready & bags.ready & verdicts.ready & refused.ready),
            i.ready.eq(keys.ready & bags.ready & verdicts.ready & refused.ready),
            # A bad packet stores nothing but the end that revokes it.
            keys.valid.eq(go & (user.last | ~drop)),
            keys.payload.item.key.eq(i.payload.key), keys.payload.item.over.eq(over),
            keys.payload.item.step.eq(user.step), keys.payload.item.end.eq(end),
            keys.payload.last.eq(user.last), keys.payload.drop.eq(drop),
            bags.valid.eq(go & ~over & (user.last | (end & ~drop))),
            bags.payload.item.eq(length + 1),
            bags.payload.last.eq(user.last), bags.payload.drop.eq(drop),
            verdicts.valid.eq(go & user.last & has_vectors), verdicts.payload.eq(drop),
            refused.valid.eq(go & user.last & drop),
            refused.payload.status.eq(Mux(bad, kept, status)), refused.payload.step.eq(user.step),
        ]
        with m.If(go):
            m.d.sync += [
                bad.eq(drop), beats.eq(expected), length.eq(length + 1), first.eq(user.last),
            ]
            with m.If(over & ~drop):
                m.d.sync += ended.eq(Cat(user.step, 1))
            with m.If(~bad):
                m.d.sync += kept.eq(status)
            with m.If(end):
                m.d.sync += [length.eq(0), place.eq(Mux(place == final_place, 0, place + 1))]
            with m.If(user.last):
                m.d.sync += [bad.eq(0), beats.eq(0), length.eq(0), place.eq(0)]
        count(m, self.counters, packets=go & user.last & ~drop, dropped=go & user.last & drop)

"""Partial receiver: packets of partials from peers or the host in, one partial per cycle out."""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import NicConfig
from rtl.formats import (
    BEAT_INDEX_BITS,
    CREDIT_BITS,
    NODE_BITS,
    STEP_BITS,
    PartialRecord,
    ReductionLevel,
    Status,
)
from rtl.gateable import Gateable
from rtl.gradient.partial_buffer import PARTIAL_BUFFER_COUNTERS, PartialBuffer
from rtl.gradient.partial_layouts import PartialArrived, PartialLost, ReceivedPartial
from rtl.keys.owner_split import DESCRIPTOR_WRITES, OwnerSplit
from rtl.monitor.counters import CounterLayout, count
from rtl.network.layouts import CountedBeat, FreedBeats
from rtl.network.wire import edge_of
from rtl.stream import SkidBuffer
from rtl.stream.packing import taken

__all__ = ["PARTIAL_RECEIVER_COUNTERS", "PartialReceiver"]

PARTIAL_RECEIVER_COUNTERS = CounterLayout(
    *PARTIAL_BUFFER_COUNTERS.members, "partials", "bad_step", "bad_beat", "bad_table", "bad_row",
    "bad_owner", "stall_sink")

_User = data.StructLayout({
    "beat": BEAT_INDEX_BITS, "beyond": 1, "level": 1, "source": NODE_BITS, "step": STEP_BITS,
    "beats": 8, "last": 1})
"""``beyond``: the vector has no such beat, known before the lookup."""

_Out = data.StructLayout({"partial": ReceivedPartial, "bad": 1, "late": 1})
"""``late``: invalid because its step is not open."""


class PartialReceiver(Gateable, wiring.Component):
    """Split packets of PARTIALS or RETURNED; drop and count invalid partials.

    Packets sent against credits have room, see :class:`~rtl.gradient.partial_buffer.PartialBuffer`.
    A partial is dropped under the first applicable reason:

    * ``bad_step``: its step is not open; for partials from the host,
      :class:`rtl.training.PassSource` checks the step;
    * ``bad_beat``: the vector has no such beat;
    * ``bad_table``, ``bad_row``: see :class:`rtl.keys.owner_split.OwnerSplit`;
    * ``bad_owner``: a row of another node; ignored at the level of local reduction, which accepts
      all rows.

    An honest peer never sends an invalid partial. Dropped partials still count as arrived, so the
    announced number is reached. The order of partials is kept.

    Parameters
    ----------
    config: ``nodes`` and ``partial_beats``, or ``gradient_beats``: the beats that may be sent
        ahead.
    framing: ``ethernet``, PARTIALS of other nodes; ``host``, RETURNED.

    Ports
    -----
    i: stream of :data:`rtl.network.layouts.CountedBeat`; always ready after the sweep of the
        counts, ``nodes`` cycles after reset.
    o: stream of :data:`~rtl.gradient.partial_layouts.ReceivedPartial`; unused lanes of a vector are
        +0. ``level`` is GLOBAL for partials of other nodes.
    arrived: event :data:`~rtl.gradient.partial_layouts.PartialArrived`, in the cycle after a
        partial left or was dropped, except for ``bad_step``.
    lost: event :data:`~rtl.gradient.partial_layouts.PartialLost`, in the cycle in which a partial
        from the host is dropped (host only).
    pending: a checked partial of the open step has not left yet.
    share: beats that a source may have in the buffer (ethernet only).
    freed: event :data:`rtl.network.layouts.FreedBeats`: the beats of a packet are consumed.
    consumed: beats consumed, modulo 2^16; with framing ``host`` including dropped beats.
    open_step, open: the step whose partials are accepted, and whether any are, from the cycle after
        ``open`` rises on. ``open_step`` must change only while ``open`` is 0 (ethernet only).
    vector_beats: beats of a vector; may change while idle.
    vector_packing: log2 of the vectors that share a beat, 0 to 2; must be 0 if a vector has several
        beats. It may change while idle.
    node, nodes: number of this node, and the number of nodes.
    write_en, write_table, write_word, write_data, write_ready: writes to the table descriptors, see
        :class:`rtl.keys.owner_split.OwnerSplit`.
    counters: ``packets`` and ``beats`` admitted, packets ``over_credit``; ``partials`` passed on;
        partials dropped, by reason; ``stall_sink``, cycles in which a partial was not taken.
    idle: inactive until an input changes.

    Raises ``TypeError`` or ``ValueError`` for a parameter of the wrong type.
    """

    LATENCY = {
        ("first beat of a packet", "its first partial"): 11,
        ("first beat of values of a packet, where that is later", "its first partial"): 5,
    }
    RATE = "1 partial per cycle, also where several share a beat, and 1 beat per cycle in"

    def __init__(self, config: NicConfig, framing: str = "ethernet"):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self._ethernet = edge_of(framing) == "network"
        self._buffer = (PartialBuffer(max(2, config.nodes), config.partial_beats)
                        if self._ethernet else PartialBuffer(1, config.gradient_beats))
        self._split = OwnerSplit(_User, config.tables, replicated=False)
        super().__init__({
            "i": In(stream.Signature(CountedBeat)), "o": Out(stream.Signature(ReceivedPartial)),
            "arrived": Out(PartialArrived), "pending": Out(1),
            "freed": Out(FreedBeats), "consumed": Out(CREDIT_BITS),
            "vector_beats": In(5), "vector_packing": In(2),
            "node": In(NODE_BITS), "nodes": In(NODE_BITS, init=(1 << NODE_BITS) - 1),
            **DESCRIPTOR_WRITES, "write_ready": Out(1),
            "counters": Out(PARTIAL_RECEIVER_COUNTERS), "idle": Out(1),
        } | ({"share": In(16), "open_step": In(STEP_BITS), "open": In(1)}
             if self._ethernet else {"lost": Out(PartialLost)}))

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.buffer = buffer = self._buffer
        m.submodules.split = split = self._split
        m.submodules.output = output = SkidBuffer(_Out)
        wiring.connect(m, wiring.flipped(self.i), buffer.i)
        if self._ethernet:
            m.d.comb += buffer.share.eq(self.share)
        item, user = buffer.items.payload, split.i.payload.user
        record = data.View(PartialRecord, item.record)
        m.d.comb += [
            buffer.vector_packing.eq(self.vector_packing), buffer.freed.eq(self.freed),
            split.i.valid.eq(buffer.items.valid), buffer.items.ready.eq(split.i.ready),
            split.i.payload.key.row.eq(record.row), split.i.payload.key.table.eq(record.table),
            user.beat.eq(record.beat), user.beyond.eq(record.beat >= self.vector_beats),
            user.level.eq(ReductionLevel.GLOBAL if self._ethernet else record.level),
            *(user[name].eq(item[name]) for name in ("source", "step", "beats", "last")),
            *split.follow(self),
        ]
        self._join(m, split.o, buffer.values, output.i)

        # Output: invalid partials are dropped.
        left, bad = output.o.payload, output.o.payload.bad
        # Counted one cycle later, in which ``arrived`` or the beat keeps the block busy.
        gone, passed, stalled = Signal(), Signal(), Signal()
        m.d.comb += [
            self.o.valid.eq(output.o.valid & ~bad), self.o.payload.eq(left.partial),
            output.o.ready.eq(self.o.ready | bad), gone.eq(output.o.valid & output.o.ready),
            # A late partial leaves at once and blocks nothing.
            self.pending.eq(output.o.valid & ~left.late),
            self.idle.eq(buffer.idle & split.idle & output.idle & ~self.arrived.valid
                         & ~self.freed.valid),
        ]
        if not self._ethernet:
            m.d.comb += [
                self.lost.valid.eq(output.o.valid & bad), self.lost.level.eq(left.partial.level),
                self.lost.step.eq(left.partial.beat.step),
            ]
        m.d.sync += [
            passed.eq(gone & ~bad), stalled.eq(self.o.valid & ~self.o.ready),
            self.arrived.valid.eq(gone & ~left.late), self.arrived.source.eq(left.partial.source),
            self.arrived.step.eq(left.partial.beat.step),
        ]
        count(m, self.counters, partials=passed, stall_sink=stalled)
        m.d.comb += [self.counters[name].eq(buffer.counters[name])
                     for name in PARTIAL_BUFFER_COUNTERS.members]
        return m

    def _join(self, m: Module, checked, values, out) -> None:
        """Join records after their lookup with values, and check them."""
        user, place, final_place = checked.payload.user, Signal(2), Signal(2)
        done, shared, halves = Signal(), Signal(), Signal()
        # Registers instead of ``vector_packing`` itself, which has many loads in other blocks.
        m.d.sync += [final_place.eq((1 << self.vector_packing) - 1),
                     shared.eq(self.vector_packing != 0), halves.eq(self.vector_packing == 1)]
        both = checked.valid & values.valid & out.ready
        m.d.comb += [
            checked.ready.eq(values.valid & out.ready),
            done.eq(user.last | (place == final_place)),
            values.ready.eq(checked.valid & out.ready & done),
        ]
        with m.If(both):
            m.d.sync += place.eq(Mux(done, 0, place + 1))
        current = C(1)
        if self._ethernet:
            # Compared one cycle earlier, because the select signal is late.
            split, moved, came, stayed = self._split, *(
                Signal(name=n) for n in ("moved", "came", "stayed"))
            m.d.sync += [moved.eq(split.moves),
                         came.eq(self.open & (split.coming.step == self.open_step)),
                         stayed.eq(self.open & (user.step == self.open_step))]
            current = Mux(moved, came, stayed)
        status = checked.payload.status
        faults = {
            "bad_step": ~(self.open & current) if self._ethernet else C(0),
            "bad_beat": user.beyond,
            "bad_table": (status == Status.TABLE) | (status == Status.KIND),
            "bad_row": status == Status.ROW,
            "bad_owner": (user.level == ReductionLevel.GLOBAL)
                         & ~checked.payload.own,
        }
        first = Signal(len(faults))
        names = list(faults)
        with m.If(faults["bad_step"]):
            m.d.comb += first[0].eq(1)
        for n, name in enumerate(names[1:], 1):
            with m.Elif(faults[name]):
                m.d.comb += first[n].eq(1)
        partial = out.payload.partial
        m.d.comb += [
            # The verdict is late: only the stored data depend on it.
            out.valid.eq(both), out.payload.bad.eq(Cat(*faults.values()).any()),
            out.payload.late.eq(faults["bad_step"]),
            partial.beat.key.eq(checked.payload.key), partial.beat.beat.eq(user.beat),
            partial.beat.step.eq(user.step), partial.source.eq(user.source),
            partial.level.eq(user.level),
            partial.beat.data.eq(Mux(
                shared, taken(values.payload, place, Cat(halves, ~halves)), values.payload)),
        ]
        m.d.sync += [
            self.freed.valid.eq(both & user.last), self.freed.node.eq(user.source),
            self.freed.beats.eq(user.beats),
            self.consumed.eq(self.consumed + Mux(self.freed.valid, self.freed.beats, 0)
                             + (0 if self._ethernet else self._buffer.refused)),
        ]
        count(m, self.counters, **{name: both & first[n] for n, name in enumerate(names)})

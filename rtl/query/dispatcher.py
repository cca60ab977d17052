"""Dispatcher: reserves a hold-buffer place for each slot, and sends its lookup or bag on."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.bags.layouts import BagStart
from rtl.formats import (
    LANDING_BITS,
    NODE_BITS,
    STEP_BITS,
    BagHead,
    DenseSlot,
    HoldSlot,
    LookupRecord,
    OutgoingRecord,
    RecordKind,
    Request,
    hold_slot,
    repeat_fields,
)
from rtl.monitor.counters import CounterLayout, count
from rtl.network.credits import check_nodes
from rtl.query.checker import Slot, slot_layout
from rtl.stream import SkidBuffer

__all__ = ["DISPATCHER_COUNTERS", "Dispatcher"]

_Headed = data.StructLayout({"slot": Slot, "to_local": 1, "to_remote": 1, "early": 1})
"""A slot, its destination, and whether its step was closed when it arrived."""


def _headed_bag(positions: int) -> data.StructLayout:
    """Layout of the same with bags. way: 0, no destination; :data:`_LOCAL`; :data:`_REMOTE`;
    :data:`_BAG`."""
    return data.StructLayout({"slot": slot_layout(True, positions), "way": 2, "early": 1})


_LOCAL, _REMOTE, _BAG = 1, 2, 3

DISPATCHER_COUNTERS = CounterLayout(
    "local", "remote", "stall_hold", "stall_local", "stall_remote", "stall_dense", "stall_step")


class Dispatcher(wiring.Component):
    """Reserve the next place of the hold buffer for each slot, then send its lookup to its owner.

    No lookup leaves before its place is reserved, so its vector can always land. Places are
    reserved in the order of the slots: a slot that waits for room towards its owner blocks later
    slots. With ``interact``, the first slot of a sample also requests the dense vector and its
    place; if that request waits, later slots wait too.

    In training, slots of later steps wait until their step opens. No lookup then reads a row that
    the previous step has yet to change. Steps count modulo 2^16; steps up to 2^15 before the open
    step may leave. With ``overtake``, a slot of the next step leaves as soon as its owner has
    written the rows of the open step. Slots keep their order: the first slot for an unfinished
    owner blocks later slots.

    With ``bags``, a bag that pools at its owner reserves one place, and starts instead of a lookup.

    Parameters: ``nodes``, largest number of nodes; ``bags``: slots may be bags; ``positions``: see
    :func:`rtl.formats.repeat_fields`.

    Ports
    -----
    i, shares: streams of :func:`rtl.query.slot_layout`. The block reads ``shares`` if ``unique``,
        else ``i``; ``unique`` may change while idle.
    reserve: stream of :func:`rtl.formats.hold_slot`, to the hold buffer.
    next_landing: place of this item, valid while ``reserve.ready``.
    local: stream of :data:`rtl.formats.Request`, keys of this node.
    remote: stream of :data:`rtl.formats.OutgoingRecord`, keys of other nodes.
    bags (``bags`` only): stream of :data:`rtl.bags.layouts.BagStart`, bags of all owners. Counters
        ``bags``; ``stall_bags``, cycles in which a bag waits for room.
    waiting (``bags`` only): a slot waits for room, not for its step.
    dense: stream of :data:`rtl.formats.DenseSlot`, one per sample.
    node: number of this node.
    interact: samples have dense vectors; may change while idle.
    training: slots wait for their steps; may change while idle. open_step: last step that may
        leave; counts up. overtake, written: a bit for each owner that has written its rows of the
        open step; cleared in the cycle in which ``open_step`` advances.
    counters: lookups ``local`` and ``remote``; cycles in which a slot waits for a place
        (``stall_hold``), for room towards its owner (``stall_local``, ``stall_remote``), for the
        request of the dense vector (``stall_dense``), or for its step (``stall_step``).
    idle: no slot inside.
    """

    LATENCY = {
        ("slot", "own lookup"): 2,
        ("slot", "lookup to another node"): 2,
        ("slot", "bag"): 2,
        ("written", "slot that overtakes"): 4,
    }
    RATE = "1 slot per cycle; of those that overtake 1 in 2 cycles"

    def __init__(self, nodes: int = 1, *, bags: bool = False, positions: int = 0):
        check_nodes(nodes)
        self._bags, self._headed = bags, _headed_bag(positions) if bags else _Headed
        self._repeats = list(repeat_fields(positions))
        slot = slot_layout(True, positions) if bags else Slot
        super().__init__({
            "i": In(stream.Signature(slot)), "shares": In(stream.Signature(slot)),
            "unique": In(1),
            "reserve": Out(stream.Signature(hold_slot(True, positions) if bags else HoldSlot)),
            "next_landing": In(LANDING_BITS),
            "local": Out(stream.Signature(Request)),
            "remote": Out(stream.Signature(OutgoingRecord)),
            "dense": Out(stream.Signature(DenseSlot)),
            "node": In(NODE_BITS), "interact": In(1),
            "training": In(1), "open_step": In(STEP_BITS),
            "overtake": In(1), "written": In(nodes),
            "counters": Out(CounterLayout(
                *DISPATCHER_COUNTERS.members, *(("bags", "stall_bags") if bags else ()))),
            "idle": Out(1),
        } | ({"bags": Out(stream.Signature(BagStart)), "waiting": Out(1)} if bags else {}))

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.head = head = SkidBuffer(self._headed)
        m.submodules.local_buffer = local = SkidBuffer(Request)
        m.submodules.remote_buffer = remote = SkidBuffer(OutgoingRecord)
        m.submodules.dense_buffer = dense = SkidBuffer(DenseSlot)
        wiring.connect(m, local.o, wiring.flipped(self.local))
        wiring.connect(m, remote.o, wiring.flipped(self.remote))
        wiring.connect(m, dense.o, wiring.flipped(self.dense))
        slot = head.o.payload.slot
        if self._bags:
            way = head.o.payload.way
            to_local, to_remote, to_bags = way == _LOCAL, way == _REMOTE, way == _BAG
        else:
            to_local, to_remote = head.o.payload.to_local, head.o.payload.to_remote
        room, go = Signal(), Signal()
        record, waits = Signal(LookupRecord), Signal()
        inside, begins = Signal(), Signal()  # inside a sample; at a first slot with a dense request
        early = Signal()
        # Compute the release of a waiting slot a cycle late, for short paths. Step and owners are
        # equally late, and belong to the same step. A release is never withdrawn.
        next_step, done = Signal(STEP_BITS), Signal.like(self.written)
        ahead, opened = Signal(), Signal()

        def waits_for(step):
            return self.training & (self.open_step - step)[STEP_BITS - 1]

        # Prepare both candidates: slots arrive late in the cycle, from a RAM.
        coming = []
        for source in (self.i, self.shares):
            following, headed = source.payload, Signal(self._headed)
            remotely = (following.kind != RecordKind.EMPTY) & ~following.mine
            m.d.comb += [source.ready.eq(head.i.ready), headed.slot.eq(following)]
            if self._bags:
                way_of = Cat(following.mine, remotely) | following.bag.replicate(2)
                m.d.comb += headed.way.eq(way_of)
            else:
                m.d.comb += [headed.to_local.eq(following.mine), headed.to_remote.eq(remotely)]
            m.d.comb += headed.early.eq(waits_for(following.step))
            coming.append(headed)
        m.d.comb += [
            head.i.valid.eq(Mux(self.unique, self.shares.valid, self.i.valid)),
            head.i.payload.eq(Mux(self.unique, coming[1], coming[0])),
        ]
        m.d.sync += [
            opened.eq(head.o.valid & ~head.o.ready & ~waits_for(slot.step)),
            next_step.eq(self.open_step + 1), done.eq(self.written),
            ahead.eq(self.overtake & head.o.valid & ~head.o.ready & (slot.step == next_step) & (
                (slot.kind == RecordKind.EMPTY) | done.bit_select(slot.owner, 1))),
        ]
        # Request a place only if the lookup can leave in the same cycle.
        may_go = Mux(to_local, local.i.ready, ~to_remote | remote.i.ready) & ~waits & ~early
        quiet = head.idle & local.idle & remote.idle & dense.idle
        if self._bags:
            bags = self._start(m, head.o, to_bags, go)
            # One LUT.
            may_go = Mux(way[0], Mux(way[1], bags.i.ready, local.i.ready),
                         ~way[1] | remote.i.ready) & ~waits & ~early
            quiet &= bags.idle
            m.d.comb += self.waiting.eq(head.o.valid & ~head.o.ready & ~early)
        m.d.comb += [
            early.eq(head.o.payload.early & ~ahead & ~opened),
            waits.eq(begins & ~dense.i.ready), room.eq(may_go),
            self.reserve.valid.eq(head.o.valid & room),
            go.eq(self.reserve.valid & self.reserve.ready),
            head.o.ready.eq(self.reserve.ready & room),
            local.i.valid.eq(go & to_local), remote.i.valid.eq(go & to_remote),
            local.i.payload.key.eq(slot.key), local.i.payload.landing.eq(self.next_landing),
            local.i.payload.node.eq(self.node), local.i.payload.step.eq(slot.step),
            record.row.eq(slot.key.row), record.table.eq(slot.key.table),
            record.landing.eq(self.next_landing),
            remote.i.payload.destination.eq(slot.owner), remote.i.payload.step.eq(slot.step),
            remote.i.payload.record.eq(record),
            dense.i.valid.eq(go & begins), dense.i.payload.sample.eq(slot.sample),
            dense.i.payload.step.eq(slot.step),
            self.idle.eq(quiet),
        ]
        m.d.sync += begins.eq(self.interact & ~inside)
        with m.If(go):
            m.d.sync += [inside.eq(~slot.last), begins.eq(self.interact & slot.last)]
        for name in ("kind", "sample", "step", "last", *self._repeats):
            m.d.comb += self.reserve.payload[name].eq(slot[name])
        count(m, self.counters, local=local.i.valid, remote=remote.i.valid,
              stall_hold=self.reserve.valid & ~self.reserve.ready,
              stall_local=head.o.valid & to_local & ~local.i.ready,
              stall_remote=head.o.valid & to_remote & ~remote.i.ready,
              stall_dense=head.o.valid & waits, stall_step=head.o.valid & early)
        return m

    def _start(self, m: Module, head: stream.Interface, to_bags: Value,
               go: Signal) -> SkidBuffer:
        """Start the bag at ``head`` if it may ``go``; return the buffer of the starts."""
        m.submodules.bag_buffer = bags = SkidBuffer(BagStart)
        wiring.connect(m, bags.o, wiring.flipped(self.bags))
        slot, start = head.payload.slot, bags.i.payload
        m.d.comb += [
            bags.i.valid.eq(go & to_bags), start.destination.eq(slot.owner),
            start.step.eq(slot.step), start.landing.eq(self.next_landing),
            start.own.eq(slot.mine), start.final_beat.eq(slot.final_beat),
        ]
        m.d.comb += [self.reserve.payload[name].eq(slot[name]) for name in ("mean", "final_beat")]
        with m.If(to_bags):
            m.d.comb += self.reserve.payload.keys.eq(slot.key.row[:BagHead["keys"].width])
        count(m, self.counters, bags=bags.i.valid, stall_bags=head.valid & to_bags & ~bags.i.ready)
        return bags

"""Step counter: detects when all announced partials of a step have arrived at their owner."""

from functools import reduce
from operator import or_

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import (
    NODE_BITS,
    RECORD_BITS,
    RECORDS_PER_BEAT,
    STEP_BITS,
    RecordBeat,
    StepKind,
    StepRecord,
)
from rtl.gradient.partial_layouts import PartialArrived
from rtl.gradient.sender import StepEnd
from rtl.memory import Ram, report_swept
from rtl.monitor.counters import CounterLayout, count
from rtl.network.credits import HALF, check_nodes
from rtl.training.barrier import StepDone

__all__ = ["STEP_COUNTER_COUNTERS", "StepCounter"]

STEP_COUNTER_COUNTERS = CounterLayout("steps", "ends", "arrived", "bad_steps", "bad_counts")

_COUNT_BITS = StepRecord.members["count"]
_AHEAD_BITS = (4 * HALF - 1).bit_length()
"""Bits of the number of partials in flight: a node has fewer than :data:`HALF` beats in flight, of
at most 4 partials each. Only the bits above are compared, for short paths, which accepts up to
twice as many."""


class StepCounter(wiring.Component):
    """Signal when a step's gradients are complete at this owner (docs/training.md).

    The block stores for each node the number announced by END and the number of arrived partials.
    The step is complete when every node has announced and at least as many partials have arrived.
    The step is then closed, and partials in flight to the reduction arrive there (``busy``) before
    ``complete`` reports the step.

    The block stores the open step: 0 after reset. The next step opens in the cycle after
    ``complete`` was taken. This is early enough: a node sends partials of step ``s + 1`` only after
    every owner, including this one, has sent DONE of step ``s``. :class:`rtl.training.StepBarrier`
    opens a step later, when the other nodes are done; until then this owner may get partials of a
    step that its own node has not begun. Events of any other step are counted and ignored, and so
    are a second END and an END that announces more partials than have arrived and may be in flight.

    Nodes are examined in order, each until it is complete, for at least two cycles. The count of a
    complete node is cleared, and its later events are ignored. After reset, the sweep of the counts
    takes ``nodes`` cycles.

    Parameters: ``nodes``, the largest number of nodes.

    Ports
    -----
    steps: stream of :data:`rtl.formats.RecordBeat`, :data:`~rtl.formats.StepRecord` of other nodes;
        always ready.
    own_end: stream of :data:`rtl.gradient.StepEnd`, the END of this node to itself; always ready.
    arrived, own_arrived: event :data:`~rtl.gradient.partial_layouts.PartialArrived`, of other nodes
        and of this one.
    busy: partials that passed while ``open`` are not yet at the reduction.
    complete: stream of the step.
    done: event :data:`~rtl.training.barrier.StepDone`, of other nodes.
    open_step, open: the step that is counted, and whether more of it is accepted.
    waits: this node's END has arrived, and the step is not complete.
    lost: bit mask of failed nodes, which are complete with the partials that have arrived.
    node, nodes: number of this node, and the number of nodes; must not change after the first step.
    counters: ``steps`` complete; ``ends`` taken and partials ``arrived``; ``bad_steps``, events and
        ENDs ignored, and beats with two ENDs or a kind that nodes do not send; ``bad_counts``,
        nodes that sent more partials than they announced.
    idle: inactive until an input changes.

    Raises ``TypeError`` or ``ValueError`` unless ``nodes`` is an integer from 1 to 256.
    """

    LATENCY = {
        ("last event, one of node k of n", "complete, at least"): "4 + 2 (n - k)",
        ("last event", "complete, at most"): "4 + 2 n",
        ("last event as a record", "complete, at most"): "6 + 2 n",
        ("DONE record", "its event"): 3,
    }
    RATE = "1 event of each port and 1 beat of records per cycle"

    def __init__(self, nodes: int):
        check_nodes(nodes)
        self._most = nodes
        super().__init__({
            "steps": In(stream.Signature(RecordBeat)), "own_end": In(stream.Signature(StepEnd)),
            "arrived": In(PartialArrived), "own_arrived": In(PartialArrived), "busy": In(1),
            "complete": Out(stream.Signature(STEP_BITS)), "done": Out(StepDone),
            "open_step": Out(STEP_BITS), "open": Out(1), "waits": Out(1),
            "lost": In(nodes), "node": In(NODE_BITS), "nodes": In(NODE_BITS, init=1),
            "counters": Out(STEP_COUNTER_COUNTERS), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        most = self._most
        # The arrived partials of each node, stored for the addition and for both comparisons.
        added, compared, before, announced = (Ram(_COUNT_BITS, most, latency=0) for _ in range(4))
        m.submodules.added, m.submodules.compared, m.submodules.before = added, compared, before
        m.submodules.announced = announced
        ended, own_ended = Signal(most), Signal()
        own_count, own_announced = Signal(_COUNT_BITS), Signal(_COUNT_BITS)

        # The node being examined; earlier nodes are complete.
        place, enough, clear, wipe = Signal(range(most + 1)), Signal(), Signal(), Signal()
        coming = self._decode(m, before)
        beyond = coming.count[_AHEAD_BITS:] > coming.most
        arrival, own = (Signal(PartialArrived, name=n) for n in ("arrival", "own"))
        end, end_valid = Signal(StepEnd), Signal()
        m.d.comb += [self.own_end.ready.eq(1), self.waits.eq(own_ended)]
        m.d.sync += [
            arrival.eq(self.arrived), own.eq(self.own_arrived),
            end.eq(self.own_end.payload), end_valid.eq(self.own_end.valid),
        ]
        # Whether an event counts is known one cycle before its arrival, except for ends in between.
        later, behind = self.arrived.source > place, self.arrived.source == place
        events = {"end": coming.end, "own_end": end_valid, "arrival": arrival.valid,
                  "own": own.valid}
        early = {"end": coming.current, "own_end": self._current(m, self.own_end.payload.step),
                 "arrival": self._current(m, self.arrived.step, (self.arrived.source < most)
                                          & (later | (behind & ~enough))),
                 "own": self._current(m, self.own_arrived.step)}
        known = {"end": ~ended.bit_select(coming.source, 1) & (coming.source < most) & ~beyond,
                 "own_end": ~own_ended, "own": 1, "arrival": 1}
        take = Signal(data.StructLayout(dict.fromkeys(events, 1)))
        m.d.comb += [take[name].eq(events[name] & self.open & early[name] & known[name])
                     for name in events]

        m.d.comb += [
            announced.write_en.eq(take.end), announced.write_addr.eq(coming.source),
            announced.write_data.eq(coming.count), announced.read_addr.eq(place),
            added.read_addr.eq(arrival.source), compared.read_addr.eq(place),
        ]
        for ram in (added, compared, before):
            m.d.comb += [
                ram.write_en.eq(take.arrival | wipe),
                ram.write_addr.eq(Mux(take.arrival, arrival.source, place)),
                ram.write_data.eq(Mux(take.arrival, added.read_data + 1, 0)),
            ]
        m.d.comb += [ram.read_en.eq(1) for ram in (added, compared, before, announced)]
        with m.If(take.end):
            m.d.sync += ended.bit_select(coming.source, 1).eq(1)
        with m.If(take.own_end):
            m.d.sync += [own_ended.eq(1), own_announced.eq(end.count)]
        with m.If(take.own):
            m.d.sync += own_count.eq(own_count + 1)
        with m.If(clear):
            m.d.sync += [ended.eq(0), own_ended.eq(0), own_count.eq(0)]

        # Node by node: a complete node stays complete. The compared values were read one cycle
        # earlier.
        here, wanted = Signal(_COUNT_BITS), Signal(_COUNT_BITS)
        is_ended, read, gone = Signal(), Signal(), Signal()
        mine = place == self.node
        m.d.sync += [
            here.eq(Mux(mine, own_count, compared.read_data)),
            wanted.eq(Mux(mine, own_announced, announced.read_data)),
            is_ended.eq(Mux(mine, own_ended, ended.bit_select(place, 1))),
            read.eq(self.open & ~enough), gone.eq(~mine & self.lost.bit_select(place, 1)),
        ]
        # A count is cleared in a cycle without an increment.
        m.d.comb += enough.eq(self.open & read & (gone | (is_ended & (here >= wanted)))
                              & ~take.arrival)
        moving = self._follow(m, place, enough, Cat(events.values()).any(), wipe, clear)
        # Counted one cycle late, to keep the paths short.
        ignored, over = Signal(3), Signal()
        m.d.sync += [
            ignored.eq(sum((events[name] & ~take[name] for name in events), C(0)) + coming.stray),
            over.eq(enough & ~gone & (here != wanted)),
        ]
        count(m, self.counters, steps=self.complete.valid & self.complete.ready,
              ends=take.end + take.own_end, arrived=take.arrival + take.own,
              bad_steps=ignored, bad_counts=over)
        m.d.comb += self.idle.eq(~(
            coming.busy | Cat(events.values()).any() | moving | ignored.any() | over))
        return m

    def _current(self, m: Module, step: Value, known: Value | int = 1) -> Signal:
        """Return whether ``step``, of an event that arrives in the next cycle, is the open step."""
        current = Signal()
        m.d.sync += current.eq(self.open & (step == self.open_step) & known)
        return current

    def _decode(self, m: Module, before: Ram) -> Signal:
        """Decode the records of a beat in parallel. Return the result, 3 cycles later, with
        ``most``, the bound of the upper bits of a count after the partials that arrived ``before``.
        """
        beat, come = Signal(RecordBeat, reset_less=True), Signal()
        said = Signal(data.StructLayout({
            "end": 1, "count": _COUNT_BITS, "most": _COUNT_BITS + 1 - _AHEAD_BITS, "stray": 1,
            "source": NODE_BITS, "current": 1, "busy": 1}))
        m.d.comb += self.steps.ready.eq(1)
        m.d.sync += [beat.eq(self.steps.payload), come.eq(self.steps.valid)]
        records = [data.View(StepRecord, beat.data.word_select(k, RECORD_BITS))
                   for k in range(RECORDS_PER_BEAT)]

        def of(kind: StepKind) -> Cat:
            return Cat(come & (k < beat.records) & (record.kind == kind)
                       for k, record in enumerate(records))

        # The kind of each record, then the summary of all records.
        ends, strays, dones = (
            Signal(RECORDS_PER_BEAT, name=n) for n in ("ends", "strays", "dones"))
        counts = Signal(data.ArrayLayout(_COUNT_BITS, RECORDS_PER_BEAT), reset_less=True)
        source, step = Signal(NODE_BITS, reset_less=True), Signal(STEP_BITS, reset_less=True)
        m.d.sync += [
            ends.eq(of(StepKind.END)), strays.eq(of(StepKind.PASSED)), dones.eq(of(StepKind.DONE)),
            counts.eq(Cat(record.count for record in records)), source.eq(beat.source),
            step.eq(beat.step),
            said.end.eq(ends.any()),
            said.count.eq(reduce(or_, (Mux(ends[k] & ~ends[:k].any(), counts[k], 0)
                                       for k in range(RECORDS_PER_BEAT)))),
            said.most.eq(before.read_data[_AHEAD_BITS:] + 1),
            said.stray.eq(((ends & (ends - 1)) != 0) | strays.any()), said.source.eq(source),
            self.done.valid.eq(dones.any()), self.done.source.eq(source), self.done.step.eq(step),
        ]
        m.d.comb += [
            before.read_addr.eq(source),
            said.current.eq(self._current(m, step)),
            said.busy.eq(come | Cat(ends, strays, dones).any() | said.end | said.stray
                         | self.done.valid),
        ]
        return said

    def _follow(self, m: Module, place, enough, event, wipe, clear) -> Signal:
        """Open and close steps, and clear complete counts; return whether anything is active."""
        moving, calm = Signal(), Signal(2)
        # A node that is not complete two cycles after the last event waits for further events.
        m.d.sync += calm.eq(Cat(self.open & ~enough & ~event, calm))
        with m.FSM(init="SWEEP") as steps:
            with m.State("SWEEP"):
                m.d.comb += [wipe.eq(1), moving.eq(1)]
                m.d.sync += place.eq(place + 1)
                with m.If(place == self._most - 1):
                    m.d.sync += place.eq(0)
                    m.next = "COUNT"
            with m.State("COUNT"):
                m.d.comb += [self.open.eq(1), moving.eq(~calm.all() | enough), wipe.eq(enough)]
                with m.If(enough):
                    m.d.sync += place.eq(place + 1)
                    with m.If(place == self.nodes - 1):
                        m.next = "CLOSE"
            with m.State("CLOSE"):
                m.d.comb += moving.eq(1)
                with m.If(~self.busy):
                    m.next = "COMPLETE"
            with m.State("COMPLETE"):
                m.d.comb += [moving.eq(1), self.complete.valid.eq(1),
                             self.complete.payload.eq(self.open_step)]
                with m.If(self.complete.ready):
                    m.d.comb += clear.eq(1)
                    m.d.sync += [self.open_step.eq(self.open_step + 1), place.eq(0)]
                    m.next = "COUNT"
        report_swept(m, ~steps.ongoing("SWEEP"))
        return moving

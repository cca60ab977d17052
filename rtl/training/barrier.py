"""Step barrier: opens the next step when every owner has written the rows of this step."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import NODE_BITS, STEP_BITS, OutgoingRecord, StepKind, StepRecord
from rtl.monitor.counters import CounterLayout, count
from rtl.network.credits import check_nodes
from rtl.stream import SkidBuffer

__all__ = ["BARRIER_COUNTERS", "StepBarrier", "StepDone"]

BARRIER_COUNTERS = CounterLayout("steps", "bad_done")

StepDone = data.StructLayout({"valid": 1, "source": NODE_BITS, "step": STEP_BITS})
"""Event: owner ``source`` reports that its rows of ``step`` are written."""

_FORGET_BITS = STEP_BITS - 1
"""log2 of the steps between two resets of the state stored by step: two resets per wrap of the step
number."""


class StepBarrier(wiring.Component):
    """Open a step when every owner is done with the previous one (docs/training.md).

    When this node's rows are written, every other node gets a DONE. When all nodes have reported
    DONE for the open step, the host gets a DONE, and the next step opens. A DONE is counted and
    ignored if it is a duplicate, of another step, or from a node outside the cluster.

    Every 32,768 steps, before the DONE to the others, ``forget`` requests the tables with state by
    step to clear it. At that time every lookup of the step has been answered, and no lookup of the
    next step can have left for this node, because this node is not done.

    Parameters: ``nodes``, the largest number of nodes.

    Ports
    -----
    own: stream of the step whose rows at this node are written.
    received: event :data:`StepDone`, of other nodes.
    steps: stream of :data:`rtl.formats.OutgoingRecord`, a DONE to each other node.
    reports: stream of :data:`rtl.formats.OutgoingRecord`, a DONE to the host for each step.
    open_step: the step whose lookups may leave and whose gradients are accepted; 0 after reset.
    waits: this node's rows of the open step are written and reported; another node's are not.
    written: bit mask of nodes, including this one, whose rows of the open step are all written.
    forget: event: clear the state stored by step.
    forgetting: 1 from the cycle after ``forget`` on until the state is cleared.
    lost: bit mask of failed nodes, which count as done.
    node, nodes: number of this node, and the number of nodes; must not change after the first step.
    counters: ``steps`` that have ended; ``bad_done``, DONE records ignored.
    idle: nothing to send. A step that waits for other nodes does not clear it.

    Raises ``TypeError`` or ``ValueError`` unless ``nodes`` is an integer from 1 to 256.
    """

    LATENCY = {
        ("own", "first DONE"): 2,
        ("last DONE received", "open_step"): 2,
    }
    RATE = "1 DONE per cycle out"

    def __init__(self, nodes: int):
        check_nodes(nodes)
        self._most = nodes
        super().__init__({
            "own": In(stream.Signature(STEP_BITS)), "received": In(StepDone),
            "steps": Out(stream.Signature(OutgoingRecord)),
            "reports": Out(stream.Signature(OutgoingRecord)),
            "open_step": Out(STEP_BITS), "waits": Out(1), "written": Out(nodes),
            "forget": Out(1), "forgetting": In(1), "lost": In(nodes),
            "node": In(NODE_BITS), "nodes": In(NODE_BITS, init=1),
            "counters": Out(BARRIER_COUNTERS), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.step_buffer = steps = SkidBuffer(OutgoingRecord)
        m.submodules.report_buffer = reports = SkidBuffer(OutgoingRecord)
        wiring.connect(m, steps.o, wiring.flipped(self.steps))
        wiring.connect(m, reports.o, wiring.flipped(self.reports))
        record = Signal(StepRecord)
        m.d.comb += [
            record.kind.eq(StepKind.DONE),
            steps.i.payload.step.eq(self.open_step), steps.i.payload.record.eq(record),
            reports.i.payload.step.eq(self.open_step), reports.i.payload.record.eq(record),
        ]

        # The last node; bit masks of this node, of the other nodes, and of nodes that are done.
        final, here, others, done = (
            Signal(NODE_BITS), *(Signal(self._most, name=n) for n in ("here", "others", "done")))
        m.d.sync += [
            final.eq(self.nodes - 1), here.eq(Cat(self.node == n for n in range(self._most))),
            others.eq(Cat((self.nodes > n) & (self.node != n) & ~self.lost[n]
                          for n in range(self._most))),
        ]
        # The node of the event as a bit; 0 if it is not one of the others.
        named, step, come, ignored = Signal(self._most), Signal(STEP_BITS), Signal(), Signal()
        new, self_done, complete = Signal(self._most), Signal(), Signal()
        # An event arrived in the previous cycle, and the node for which it counted.
        gone, counted = Signal(), Signal(self._most)
        m.d.sync += [
            named.eq(Cat(self.received.valid & (self.received.source == n)
                         for n in range(self._most)) & others),
            come.eq(self.received.valid), step.eq(self.received.step),
        ]
        m.d.comb += [
            new.eq(Mux(step == self.open_step, named & ~done, 0)),
            complete.eq(self_done & (done | ~others).all()), reports.i.valid.eq(complete),
            self.written.eq(done | self.lost | Mux(self_done, here, 0)),
            ignored.eq(gone & ~counted.any()), self.waits.eq(self_done),
        ]
        m.d.sync += [done.eq(done | new), gone.eq(come), counted.eq(new)]
        # The tables are cleared in this step; compared one cycle earlier, for short paths.
        clears, opens, low = Signal(), complete & reports.i.ready, self.open_step[:_FORGET_BITS]
        m.d.sync += clears.eq(Mux(opens, low == (1 << _FORGET_BITS) - 2, low.all()))
        with m.If(opens):
            m.d.sync += [done.eq(0), self_done.eq(0), self.open_step.eq(self.open_step + 1)]

        # The node that gets a DONE, and the next one, which is compared one cycle before its turn.
        target, following, turns = Signal(NODE_BITS), Signal(NODE_BITS), Signal()
        is_here, is_final, stray, busy = (Signal() for _ in range(4))
        with m.If(turns):
            m.d.sync += [target.eq(following), is_here.eq(following == self.node),
                         is_final.eq(following == final)]
        with m.FSM():
            with m.State("WAIT"):
                m.d.comb += [self.own.ready.eq(~self_done), turns.eq(1), following.eq(0)]
                with m.If(self.own.valid & ~self_done):
                    with m.If(self.own.payload != self.open_step):
                        m.d.comb += stray.eq(1)
                    with m.Elif(clears):
                        m.d.comb += self.forget.eq(1)
                        m.next = "FORGET"
                    with m.Else():
                        m.next = "TELL"
            with m.State("FORGET"):
                m.d.comb += busy.eq(1)
                with m.If(~self.forgetting):
                    m.next = "TELL"
            with m.State("TELL"):
                m.d.comb += [busy.eq(1), steps.i.payload.destination.eq(target),
                             steps.i.valid.eq(~is_here), turns.eq(steps.i.ready | is_here),
                             following.eq(target + 1)]
                with m.If(turns & is_final):
                    m.d.sync += self_done.eq(1)
                    m.next = "WAIT"
        m.d.comb += self.idle.eq(
            ~(busy | come | ignored | complete) & steps.idle & reports.idle)
        count(m, self.counters, steps=opens, bad_done=stray + ignored)
        return m

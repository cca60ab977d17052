"""Credit return: sends credits to nodes that receive no other packet in time."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import CREDIT_BITS, NODE_BITS, STEP_BITS, OutgoingRecord, StepKind, StepRecord
from rtl.memory import Ram, sweep
from rtl.monitor.counters import CounterLayout, count
from rtl.network.credits import HALF, CreditCounter
from rtl.network.layouts import Credit, FreedBeats
from rtl.stream import SkidBuffer

__all__ = ["CREDIT_RETURN_COUNTERS", "CreditReturn"]

CREDIT_RETURN_COUNTERS = CounterLayout("beats", "credits")


class CreditReturn(wiring.Component):
    """Count the consumed beats of partials per node and report the counts in time.

    Every header to a node carries the count (:class:`CreditCounter`). If at least a quarter of the
    window is unreported to a node, the block sends a step record CREDIT to that node. It sends the
    next record only after a header has left for the node. Once all beats are consumed, the
    unreported part is therefore below a quarter, and a packet of up to three quarters of a window
    always gets credit (:class:`PartialPackager`).

    After each event the block scans all nodes, one per cycle. A departing header delays the scan by
    a cycle.

    Parameters
    ----------
    nodes: number of nodes.
    readers: number of blocks that read the counts.

    Ports
    -----
    freed: event :data:`rtl.network.layouts.FreedBeats`; not in the first ``nodes`` cycles after
        reset.
    node[k], value[k]: count for a header to ``node[k]``, combinational.
    reported: event :data:`rtl.network.layouts.Credit`: a header with ``value`` left for ``node``.
    window: beats that a sender may have outstanding at this node.
    step: step in the headers of the records.
    steps: stream of :data:`rtl.formats.OutgoingRecord`, to the packager of STEPS.
    counters: ``beats`` consumed, ``credits`` sent.
    idle: inactive until an input changes.
    """

    LATENCY = {("event", "its record, at most, besides cycles behind headers"): "nodes + 3"}
    RATE = "1 record per cycle"

    def __init__(self, nodes: int, readers: int = 1):
        self._nodes, self._readers = nodes, readers
        self._counter = CreditCounter(nodes, readers + 1, several=True)
        super().__init__({
            "freed": In(FreedBeats), "node": In(NODE_BITS).array(readers),
            "value": Out(CREDIT_BITS).array(readers), "reported": In(Credit),
            "window": In(CREDIT_BITS), "step": In(STEP_BITS),
            "steps": Out(stream.Signature(OutgoingRecord)),
            "counters": Out(CREDIT_RETURN_COUNTERS), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.counter = counter = self._counter
        m.submodules.told = told = Ram(CREDIT_BITS, self._nodes, latency=0)
        m.submodules.output = output = SkidBuffer(OutgoingRecord)
        wiring.connect(m, output.o, wiring.flipped(self.steps))
        address, swept = sweep(m, self._nodes)
        m.d.comb += counter.freed.eq(self.freed)
        for k in range(self._readers):
            m.d.comb += [counter.node[k].eq(self.node[k]), self.value[k].eq(counter.value[k])]

        # A header event has priority for the read port, because headers cannot wait. The scan
        # waits.
        event, ahead = Signal(Credit), Signal(CREDIT_BITS)
        look, left = Signal(range(max(2, self._nodes))), Signal(range(self._nodes + 1))
        m.d.sync += [event.eq(self.reported), event.valid.eq(self.reported.valid & swept)]
        m.d.comb += [
            told.read_en.eq(1), told.read_addr.eq(Mux(event.valid, event.node, look)),
            ahead.eq(event.value - told.read_data),
            # A report older than the last one has no new information.
            told.write_en.eq((event.valid & (ahead < HALF)) | ~swept),
            told.write_addr.eq(Mux(swept, event.node, address)),
            told.write_data.eq(Mux(swept, event.value, 0)),
        ]
        quarter, asked = Signal(CREDIT_BITS), Signal(self._nodes)
        due, seen, moves = Signal(), Signal(), Signal()
        # The node read in the previous cycle, unless a header has left for it since.
        looked, node, told_now = Signal(), Signal.like(look, reset_less=True), Signal()
        owed = Signal(CREDIT_BITS, reset_less=True)
        record = Signal(StepRecord)
        m.d.sync += quarter.eq(Mux(self.window < 8, 1, self.window >> 2))
        m.d.comb += [
            counter.node[-1].eq(look),
            told_now.eq(event.valid & (event.node == node)),
            due.eq(looked & ~told_now & (owed >= quarter) & ~asked.bit_select(node, 1)),
            moves.eq(~looked | output.i.ready), seen.eq((left != 0) & ~event.valid & moves),
            record.kind.eq(StepKind.CREDIT), output.i.valid.eq(due),
            output.i.payload.record.eq(record), output.i.payload.destination.eq(node),
            output.i.payload.step.eq(self.step),
        ]
        with m.If(event.valid):
            # No node is read in this cycle. The node of the previous cycle stays: otherwise headers
            # to other nodes, in step with the scan, could suppress its record for ever.
            with m.If(moves | told_now):
                m.d.sync += looked.eq(0)
        with m.Elif(moves):
            m.d.sync += [looked.eq(left != 0), node.eq(look),
                         owed.eq(counter.value[-1] - told.read_data)]
        with m.If(due & output.i.ready):
            m.d.sync += asked.bit_select(node, 1).eq(1)
        with m.If(event.valid):
            m.d.sync += asked.bit_select(event.node, 1).eq(0)
        with m.If(seen):
            m.d.sync += look.eq(Mux(look == self._nodes - 1, 0, look + 1))
        with m.If(self.freed.valid | event.valid):
            m.d.sync += left.eq(self._nodes)
        with m.Elif(seen):
            m.d.sync += left.eq(left - 1)
        m.d.comb += self.idle.eq(counter.idle & (left == 0) & ~looked & ~event.valid & output.idle)
        count(m, self.counters, beats=Mux(self.freed.valid, self.freed.beats, 0),
              credits=due & output.i.ready)
        return m

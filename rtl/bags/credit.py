"""Credit of bags of gradients, which have no answers: from the owner, and at the requester."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import (
    CREDIT_BITS,
    NODE_BITS,
    RECORD_BITS,
    STEP_BITS,
    OutgoingRecord,
    RecordBeat,
    StepKind,
    StepRecord,
)
from rtl.memory import Ram, sweep
from rtl.monitor.counters import CounterLayout, count
from rtl.network.credits import check_nodes
from rtl.network.layouts import Credit, Freed
from rtl.stream import StreamFIFO

__all__ = ["BagCredit", "BagCreditReturn"]


class BagCreditReturn(wiring.Component):
    """Send a node the credit of its bags after each quarter of the window of consumed beats whose
    last bag has a gradient.

    Other bags have answers, whose headers carry the credit. The credit is read when the record
    leaves.

    Parameters: ``nodes``, the largest number of nodes.

    Ports
    -----
    freed: event :data:`rtl.network.layouts.Freed`, a beat of bags was consumed; not in the first
        ``nodes`` cycles after reset. counted: its last bag has a gradient.
    credit_node, credit: the credit of that node, combinational.
    window: beats of bags that a node may have in flight.
    step: step in the headers of the records.
    o: stream of :data:`rtl.formats.OutgoingRecord`, CREDIT of level 1.
    counters: ``credits`` sent.
    idle: inactive until an input changes.
    """

    LATENCY = {("event", "its record"): 3}
    RATE = "1 event and 1 record per cycle"

    def __init__(self, nodes: int):
        check_nodes(nodes)
        self._nodes = nodes
        super().__init__({
            "freed": In(Freed), "counted": In(1), "credit_node": Out(NODE_BITS),
            "credit": In(CREDIT_BITS), "window": In(CREDIT_BITS), "step": In(STEP_BITS),
            "o": Out(stream.Signature(OutgoingRecord)),
            "counters": Out(CounterLayout("credits")), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.owed = owed = Ram(CREDIT_BITS, self._nodes, latency=0)
        # A node is in the queue at most once: its record carries the credit of the cycle in which
        # it leaves.
        m.submodules.queue = queue = StreamFIFO(NODE_BITS, max(2, self._nodes), style="lutram")
        queued = Signal(self._nodes)
        address, swept = sweep(m, self._nodes)
        come, before, due, record = Signal(), Signal(CREDIT_BITS), Signal(), Signal(StepRecord)
        # The credit of a record that leaves does not contain the beat of the same cycle.
        leaves, waits = Signal(), Signal()
        # Beats before the last one of a quarter.
        m.d.sync += before.eq(Mux(self.window < 8, 1, self.window >> 2) - 1)
        m.d.comb += [
            come.eq(self.freed.valid & self.counted),
            leaves.eq(self.o.valid & self.o.ready),
            waits.eq(queued.bit_select(self.freed.node, 1)
                     & ~(leaves & (queue.o.payload == self.freed.node))),
            due.eq((owed.read_data >= before) & ~waits),
            owed.read_en.eq(1), owed.read_addr.eq(self.freed.node),
            owed.write_en.eq(come | ~swept), owed.write_addr.eq(Mux(
                swept, self.freed.node, address)),
            owed.write_data.eq(Mux(swept & ~due, owed.read_data + 1, 0)),
            queue.i.valid.eq(come & due), queue.i.payload.eq(self.freed.node),
            self.credit_node.eq(queue.o.payload), record.kind.eq(StepKind.CREDIT),
            record.level.eq(1), record.count.eq(self.credit),
            self.o.valid.eq(queue.o.valid), queue.o.ready.eq(self.o.ready),
            self.o.payload.destination.eq(queue.o.payload), self.o.payload.step.eq(self.step),
            self.o.payload.record.eq(record), self.idle.eq(swept & queue.idle),
        ]
        with m.If(leaves):
            m.d.sync += queued.bit_select(queue.o.payload, 1).eq(0)
        with m.If(queue.i.valid):
            m.d.sync += queued.bit_select(self.freed.node, 1).eq(1)
        count(m, self.counters, credits=leaves)
        return m


class BagCredit(wiring.Component):
    """Merge the credits of bags in headers with those in records CREDIT.

    Both come from packets of at least two beats, so a record waits a cycle at most.

    Ports
    -----
    header: event :data:`rtl.network.layouts.Credit`.
    valid, beat: a beat of step records, :data:`rtl.formats.RecordBeat`.
    o: event :data:`rtl.network.layouts.Credit`.
    idle: inactive until an input changes.
    """

    LATENCY = {("header", "o"): 0, ("record", "o"): 1}
    RATE = "1 event in 2 cycles of each kind"

    def __init__(self):
        super().__init__({"header": In(Credit), "valid": In(1), "beat": In(RecordBeat),
                          "o": Out(Credit), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        kept = Signal(Credit)
        record = data.View(StepRecord, self.beat.data[:RECORD_BITS])
        with m.If(~self.header.valid):
            m.d.sync += kept.valid.eq(0)
        with m.If(self.valid & (record.kind == StepKind.CREDIT) & record.level):
            m.d.sync += [kept.valid.eq(1), kept.node.eq(self.beat.source),
                         kept.value.eq(record.count)]
        m.d.comb += [self.o.eq(Mux(self.header.valid, self.header.as_value(), kept.as_value())),
                     self.idle.eq(~kept.valid)]
        return m

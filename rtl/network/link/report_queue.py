"""Report queue: pending acknowledgements and their deadlines, unless a header is earlier."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import NODE_BITS
from rtl.memory import Ram
from rtl.network.link.arrival_scan import BLOCKS, Report
from rtl.stream import StreamFIFO

__all__ = ["DELAY_BITS", "TIME_BITS", "Came", "ReportQueue"]

TIME_BITS, DELAY_BITS = 32, 16

Came = data.StructLayout(
    {"valid": 1, "node": NODE_BITS, "block": range(BLOCKS), "duplicate": 1})
"""Event: a packet of ``node`` arrived, new or as a ``duplicate``; ``block`` as in
:data:`rtl.network.link.arrival_scan.Report`."""


class ReportQueue(wiring.Component):
    """Queue a report for each block of packets with an arrival, until ``delay`` is over.

    A block has at most one report in the queue. Reports leave in the order of the first arrivals. A
    duplicate shows that its sender has missed an acknowledgement, so the next report to it is
    forced.

    Parameters: ``nodes``.

    Ports
    -----
    came: event :data:`Came`, not in two consecutive cycles, nor before ``ready``.
    time: cycle counter; may jump, while ``idle``, up to ``deadline``, if no event follows in the
        next cycle.
    delay: cycles from an event to its report.
    reports: stream of :data:`rtl.network.link.arrival_scan.Report`. A packet that arrives once its
        report is offered is queued again.
    deadline, waits: a report is queued (``waits``) and is due when ``time`` reaches ``deadline``.
    clearing, ready: the block to clear, counted through all peers; all are cleared.
    idle: inactive until ``time`` reaches ``deadline``.
    """

    LATENCY = {("event", "its report, beside a delay of 3 or more"): 1}
    RATE = "1 event in 2 cycles, 1 report in 2 cycles"

    def __init__(self, nodes: int):
        self._nodes = nodes
        super().__init__({
            "came": In(Came), "time": In(TIME_BITS), "delay": In(DELAY_BITS),
            "reports": Out(stream.Signature(Report)), "deadline": Out(TIME_BITS), "waits": Out(1),
            "clearing": In(range(nodes * BLOCKS)), "ready": In(1), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        nodes, came = self._nodes, self.came
        entry = data.StructLayout({"node": NODE_BITS, "block": range(BLOCKS), "due": TIME_BITS})
        m.submodules.queue = queue = StreamFIFO(entry, nodes * BLOCKS)
        head = queue.o.payload
        # A block is queued if it was requested once more than answered, modulo 2.
        asked, answered = (Ram(1, nodes * BLOCKS, latency=0) for _ in range(2))
        own = Ram(1, nodes * BLOCKS, latency=0)  # a copy, for the report being taken
        m.submodules.asked, m.submodules.answered, m.submodules.own = asked, answered, own
        place, taken_place = Cat(came.block, came.node), Cat(head.block, head.node)
        taken, reached, before = Signal(), Signal(), Signal()
        forced = Signal(nodes)
        passed, later = Signal(TIME_BITS), Signal(TIME_BITS, reset_less=True)
        same, duplicate = Signal(), Signal()
        offered, report = Signal(), Signal(Report, reset_less=True)
        m.d.comb += [
            asked.read_addr.eq(place), answered.read_addr.eq(place),
            own.read_addr.eq(taken_place),
            queue.i.valid.eq(came.valid & (asked.read_data == answered.read_data)),
            queue.i.payload.node.eq(came.node), queue.i.payload.block.eq(came.block),
            queue.i.payload.due.eq(later),
            asked.write_en.eq(queue.i.valid | ~self.ready),
            asked.write_addr.eq(Mux(self.ready, place, self.clearing)),
            asked.write_data.eq(self.ready & ~asked.read_data),
            duplicate.eq(came.valid & came.duplicate), same.eq(came.node == head.node),
            self.reports.valid.eq(offered), self.reports.payload.eq(report),
            taken.eq(reached & ~offered), queue.o.ready.eq(taken),
            passed.eq(self.time - head.due), before.eq(passed[-1]),
            self.deadline.eq(head.due), self.waits.eq(queue.o.valid),
            self.idle.eq(~came.valid & ~offered & ~reached
                         & (queue.idle | (queue.o.valid & before))),
        ]
        for ram in (answered, own):
            m.d.comb += [
                ram.write_en.eq(taken | ~self.ready),
                ram.write_addr.eq(Mux(self.ready, taken_place, self.clearing)),
                ram.write_data.eq(self.ready & ~own.read_data),
            ]
        # ``reached`` may stay for one cycle after a report is taken; ``offered`` masks it.
        m.d.sync += [later.eq(self.time + self.delay), reached.eq(queue.o.valid & ~before)]
        with m.If(taken):
            m.d.sync += [
                offered.eq(1), report.node.eq(head.node), report.block.eq(head.block),
                report.forced.eq(forced.bit_select(head.node, 1) | (duplicate & same)),
                forced.bit_select(head.node, 1).eq(0),
            ]
        with m.Elif(self.reports.ready):
            m.d.sync += offered.eq(0)
        with m.If(duplicate & ~(taken & same)):
            m.d.sync += forced.bit_select(came.node, 1).eq(1)
        return m

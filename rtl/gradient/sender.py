"""Gradient sender: sends the beats of local reduction to the owners, and then their number."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS, NicConfig
from rtl.formats import (
    BEAT_INDEX_BITS,
    NODE_BITS,
    STEP_BITS,
    TABLE_BITS,
    GradientBeat,
    OutgoingPartial,
    OutgoingRecord,
    ReductionLevel,
    StepKind,
    StepRecord,
)
from rtl.gateable import Gateable
from rtl.gradient.reducer_layouts import Flushed
from rtl.keys.owner_split import OwnerSplit
from rtl.memory import Ram, sweep
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import Arbiter, SkidBuffer, StreamFIFO

__all__ = ["GRADIENT_SENDER_COUNTERS", "GradientSender", "StepEnd"]

GRADIENT_SENDER_COUNTERS = CounterLayout(
    "own", "remote", "spilled", "bad", "passes", "ends", "stall_own", "stall_remote",
    "stall_spilled")

StepEnd = data.StructLayout({"step": STEP_BITS, "count": 32})
"""``count`` partials of a step have gone to this node's own global reduction, and no more will."""

_User = data.StructLayout({"step": STEP_BITS, "beat": BEAT_INDEX_BITS})

_Routed = data.StructLayout({"beat": GradientBeat, "owner": NODE_BITS, "own": 1, "remote": 1})
"""A beat and its owner, this node or another, if it has one."""

_WORDS = 16
"""Beats whose values wait for their owner: more than are looked up at once."""


class GradientSender(Gateable, wiring.Component):
    """Send each beat to the owner of its key, and tell the owners when a step is over
    (docs/training.md; paper, 4.2.1).

    Sums go to the owners. So do beats that local reduction passed on, being gradients themselves;
    but with ``rounded`` they are spilled: the host keeps them for the next pass. When a pass is
    over, the host is told how many beats it spilled. If none, the step is over: each node is told
    how many beats went to it in all passes of the step, after the last of them has been handed on.

    Keys have been checked before; a beat whose key has no owner is dropped and counted.

    Latency and rate: see ``LATENCY`` and ``RATE``. ``flushed`` is taken when all have been handed
    on. After reset nothing is taken until descriptors and counts are swept.

    Parameters: ``config``, a :class:`rtl.config.NicConfig`.

    Ports
    -----
    terms, passed: streams of :data:`rtl.formats.GradientBeat`, of the open step.
    flushed: stream of :data:`~rtl.gradient.Flushed`, offered when all beats of a pass were taken.
    rounded: passed-on beats are spilled, as if sums are rounded; may change between steps.
    own: stream of :data:`rtl.formats.GradientBeat`, whose keys this node owns.
    remote, spilled: streams of :data:`rtl.formats.OutgoingPartial`, to the packagers of PARTIALS
        and SPILLED, where the destination is the level.
    own_end: stream of :data:`StepEnd`. steps: stream of :data:`rtl.formats.OutgoingRecord`, END to
        each other node. reports: stream of the same, PASSED to the host.
    node, nodes: this node's number, and the number of nodes, at most ``config.nodes``.
    write_en, write_table, write_word, write_data, write_ready: table descriptors, see
        :class:`rtl.keys.owner_split.OwnerSplit`.
    counters: beats to ``own``, ``remote`` and ``spilled``; ``bad``, dropped; ``passes`` and steps
        (``ends``) that are over; cycles in which a beat was not taken at each of the three.
    idle.

    Raises ``TypeError`` if ``config`` is not a NicConfig.
    """

    LATENCY = {
        ("terms or passed", "own or remote"): 7,
        ("passed", "spilled"): 1,
        ("flushed, if nothing is on its way", "report"): 2,
        ("flushed, if nothing is on its way", "END of node 0"): 3,
    }
    RATE = "1 beat per cycle, sums before what is passed on; 1 END per cycle"

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self._config = config
        super().__init__({
            "terms": In(stream.Signature(GradientBeat)),
            "passed": In(stream.Signature(GradientBeat)),
            "flushed": In(stream.Signature(Flushed)), "rounded": In(1),
            "own": Out(stream.Signature(GradientBeat)),
            "remote": Out(stream.Signature(OutgoingPartial)),
            "spilled": Out(stream.Signature(OutgoingPartial)),
            "own_end": Out(stream.Signature(StepEnd)),
            "steps": Out(stream.Signature(OutgoingRecord)),
            "reports": Out(stream.Signature(OutgoingRecord)),
            "node": In(NODE_BITS), "nodes": In(NODE_BITS, init=1),
            "write_en": In(1), "write_table": In(TABLE_BITS), "write_word": In(3),
            "write_data": In(32), "write_ready": Out(1),
            "counters": Out(GRADIENT_SENDER_COUNTERS), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.entry = entry = Arbiter(GradientBeat, 2, priority=True)
        m.submodules.split = split = OwnerSplit(_User, self._config.tables, replicated=False)
        wiring.connect(m, wiring.flipped(self.terms), entry.i[0])
        # What is spilled waits for the host in a buffer of its own.
        m.submodules.spill = spill = SkidBuffer(OutgoingPartial)
        wiring.connect(m, spill.o, wiring.flipped(self.spilled))
        sent_on, passed = entry.i[1], self.passed
        beat, taken = entry.o.payload, split.i.payload
        m.d.comb += [
            sent_on.valid.eq(passed.valid & ~self.rounded), sent_on.payload.eq(passed.payload),
            taken.key.eq(beat.key),
            *(taken.user[name].eq(beat[name]) for name in _User.members),
            split.i.valid.eq(entry.o.valid), entry.o.ready.eq(split.i.ready),
            passed.ready.eq(Mux(self.rounded, spill.i.ready, sent_on.ready)),
            spill.i.valid.eq(passed.valid & self.rounded),
            spill.i.payload.destination.eq(ReductionLevel.LOCAL),
            split.node.eq(self.node), split.nodes.eq(self.nodes),
            split.write_en.eq(self.write_en), split.write_table.eq(self.write_table),
            split.write_word.eq(self.write_word), split.write_data.eq(self.write_data),
            self.write_ready.eq(split.write_ready),
        ]
        # Values do not go through the look-up: it stalls as a whole, and they are most of a beat.
        m.submodules.words = words = StreamFIFO(BEAT_BITS, _WORDS)
        assert OwnerSplit.LATENCY["key", "its owner"] + 4 < _WORDS
        # Routing: what the outputs are ready for reaches no further back than this buffer.
        m.submodules.routed = routed = SkidBuffer(_Routed)
        owned, into, found = split.o.payload, routed.i.payload, routed.o.payload
        address, swept = sweep(m, self._config.nodes)
        m.d.comb += [
            routed.i.valid.eq(split.o.valid & swept), split.o.ready.eq(routed.i.ready & swept),
            words.i.valid.eq(split.i.valid & split.i.ready), words.i.payload.eq(beat.data),
            words.o.ready.eq(split.o.valid & split.o.ready), into.beat.data.eq(words.o.payload),
            into.beat.key.eq(owned.key), into.owner.eq(owned.owner),
            into.own.eq(~owned.refused & owned.own), into.remote.eq(~owned.refused & ~owned.own),
            *(into.beat[name].eq(owned.user[name]) for name in _User.members),
            self.own.payload.eq(found.beat), self.remote.payload.destination.eq(found.owner),
        ]
        _name(m, self.remote.payload, found.beat)
        _name(m, spill.i.payload, passed.payload)

        here, there, sent = Signal(), Signal(), Signal()
        m.d.comb += [
            here.eq(routed.o.valid & found.own),
            there.eq(routed.o.valid & found.remote),
            self.own.valid.eq(here), self.remote.valid.eq(there),
            sent.eq((here & self.own.ready) | (there & self.remote.ready)),
            routed.o.ready.eq(~(here & ~self.own.ready) & ~(there & ~self.remote.ready)),
        ]
        # Nothing is here, and nothing came in the last cycle: from a register, since much is asked.
        quiet = Signal()
        m.d.sync += quiet.eq(entry.idle & spill.idle & split.idle & routed.idle & swept
                             & ~passed.valid)
        self._end(m, quiet, sent, found.owner, address, swept)
        count(m, self.counters, own=here & self.own.ready, remote=there & self.remote.ready,
              spilled=self.spilled.valid & self.spilled.ready,
              bad=routed.o.valid & ~found.own & ~found.remote,
              stall_own=self.own.valid & ~self.own.ready,
              stall_remote=self.remote.valid & ~self.remote.ready,
              stall_spilled=self.spilled.valid & ~self.spilled.ready)
        return m

    def _end(self, m: Module, quiet, sent, owner, address, swept) -> None:
        """Count the beats of each node; when a pass is over report it, or end the step."""
        m.submodules.report_buffer = reports = SkidBuffer(OutgoingRecord)
        m.submodules.step_buffer = steps = SkidBuffer(OutgoingRecord)
        m.submodules.end_buffer = ends = SkidBuffer(StepEnd)
        wiring.connect(m, reports.o, wiring.flipped(self.reports))
        wiring.connect(m, steps.o, wiring.flipped(self.steps))
        wiring.connect(m, ends.o, wiring.flipped(self.own_end))
        m.submodules.counts = counts = Ram(32, self._config.nodes, latency=0)
        # A beat is counted a cycle after it was sent. The node that is told uses the same register.
        over, node, counted, told = Signal(Flushed), Signal(NODE_BITS), Signal(), Signal()
        spilled, final, mine = Signal(32), Signal(NODE_BITS), Signal()
        report, end = Signal(StepRecord), Signal(StepRecord)
        m.d.sync += [node.eq(owner), counted.eq(sent), final.eq(self.nodes - 1)]
        m.d.comb += [
            counts.read_en.eq(1), counts.read_addr.eq(node),
            counts.write_en.eq(counted | told | ~swept),
            counts.write_addr.eq(Mux(swept, node, address)),
            counts.write_data.eq(Mux(counted, counts.read_data + 1, 0)),
            spilled.eq(Mux(self.rounded, over.passed, 0)),
            report.kind.eq(StepKind.PASSED), report.level.eq(ReductionLevel.LOCAL),
            report.count.eq(spilled), reports.i.payload.record.eq(report),
            reports.i.payload.step.eq(over.step),
            end.kind.eq(StepKind.END), end.count.eq(counts.read_data),
            steps.i.payload.record.eq(end), steps.i.payload.step.eq(over.step),
            steps.i.payload.destination.eq(node),
            ends.i.payload.step.eq(over.step), ends.i.payload.count.eq(counts.read_data),
        ]
        waiting = Signal()
        with m.FSM():
            with m.State("WAIT"):
                m.d.comb += waiting.eq(1)
                m.d.sync += over.eq(self.flushed.payload)
                with m.If(self.flushed.valid & quiet):
                    m.next = "REPORT"
            with m.State("REPORT"):
                m.d.comb += reports.i.valid.eq(1)
                m.d.sync += [node.eq(0), mine.eq(self.node == 0)]
                with m.If(reports.i.ready):
                    m.next = "TAKE"
                    with m.If(spilled == 0):
                        m.next = "NAME"
            with m.State("NAME"):
                m.d.comb += [
                    ends.i.valid.eq(mine), steps.i.valid.eq(~mine),
                    told.eq(Mux(mine, ends.i.ready, steps.i.ready)),
                ]
                with m.If(told):
                    m.d.sync += mine.eq(node + 1 == self.node)
                m.d.sync += node.eq(node + told)
                with m.If(told & (node == final)):
                    m.next = "TAKE"
            with m.State("TAKE"):
                m.d.comb += self.flushed.ready.eq(1)
                m.next = "WAIT"
        m.d.comb += self.idle.eq(quiet & waiting & ~self.flushed.valid & reports.idle
                                 & steps.idle & ends.idle)
        count(m, self.counters, passes=self.flushed.ready,
              ends=told & ends.i.valid)


def _name(m: Module, outgoing, beat) -> None:
    """Convert a gradient's beat to one on its way to a packet."""
    m.d.comb += [
        outgoing.step.eq(beat.step), outgoing.data.eq(beat.data),
        outgoing.record.row.eq(beat.key.row), outgoing.record.table.eq(beat.key.table),
        outgoing.record.beat.eq(beat.beat), outgoing.record.level.eq(ReductionLevel.LOCAL),
    ]

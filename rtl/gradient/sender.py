"""Gradient sender: sends the beats of local reduction to their owners, and then the number of
beats."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.bags.layouts import ArrivedBag
from rtl.config import BEAT_BITS, NicConfig
from rtl.formats import (
    BEAT_INDEX_BITS,
    NODE_BITS,
    STEP_BITS,
    GradientBeat,
    OutgoingPartial,
    OutgoingRecord,
    ReductionLevel,
    StepKind,
    StepRecord,
)
from rtl.gateable import Gateable
from rtl.gradient.reducer_layouts import Flushed
from rtl.keys.owner_split import DESCRIPTOR_WRITES, OwnerSplit
from rtl.memory import Ram, sweep
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import SkidBuffer, StreamFIFO

__all__ = ["GRADIENT_SENDER_COUNTERS", "GradientSender", "StepEnd"]

GRADIENT_SENDER_COUNTERS = CounterLayout(
    "own", "remote", "spilled", "bad", "passes", "ends", "stall_own", "stall_remote",
    "stall_spilled")

StepEnd = data.StructLayout({"step": STEP_BITS, "count": 32})
"""``count`` partials of a step have left for this node's own global reduction; no more follow."""

_User = data.StructLayout({"step": STEP_BITS, "beat": BEAT_INDEX_BITS})

_WORDS = 16
"""Beats whose values wait for the owner lookup: more than are looked up at once."""


class GradientSender(Gateable, wiring.Component):
    """Send each beat to the owner of its key, and announce the end of a step to the owners.

    Sums go to their owners. Beats that local reduction passed on are gradients themselves and go to
    the owners too; with ``rounded`` they are spilled instead: the host stores them for the next
    pass. After a pass, the host gets the number of spilled beats. If it is 0, the step is over:
    after its last beat has left, each node gets the number of beats sent to it in all passes of the
    step.

    Keys are checked earlier; a beat whose key has no owner is dropped and counted. ``flushed`` is
    taken after all beats have left. After reset, no beat leaves until the sweeps of descriptors and
    counts are done. Source: paper, 4.2.1; docs/training.md.

    Parameters: ``config``, a :class:`rtl.config.NicConfig`.

    Ports
    -----
    terms, passed: streams of :data:`rtl.formats.GradientBeat`, of the open step.
    flushed: stream of :data:`~rtl.gradient.Flushed`, offered after all beats of a pass were taken.
    rounded: sums are rounded: spill the passed-on beats; may change between steps.
    own: stream of :data:`rtl.formats.GradientBeat`, for keys of this node.
    remote: stream of :data:`rtl.formats.OutgoingPartial`, to the packager of PARTIALS.
    spilled: stream of :data:`rtl.formats.OutgoingPartial`, to the packager of SPILLED; the
        destination is the level.
    own_end: stream of :data:`StepEnd`.
    steps: stream of :data:`rtl.formats.OutgoingRecord`, END to each other node.
    reports: stream of :data:`rtl.formats.OutgoingRecord`, PASSED to the host.
    bags (``config.owner_bags``): stream of :data:`rtl.bags.layouts.ArrivedBag`, bags of gradients
        that have left for the owner ``source``; its END counts them too. Always ready after reset.
    bags_idle (``config.owner_bags``): no bag of gradients that the host sent before the end of its
        step is on its way; it holds back ``flushed``.
    node, nodes: number of this node, and the number of nodes, at most ``config.nodes``.
    write_en, write_table, write_word, write_data, write_ready: writes to the table descriptors, see
        :class:`rtl.keys.owner_split.OwnerSplit`.
    counters: beats to ``own``, ``remote`` and ``spilled``; ``bad``, dropped; ``passes`` and steps
        (``ends``) that are over; cycles in which a beat was not taken at each of the three outputs.
    idle: inactive until an input changes.

    Raises ``TypeError`` if ``config`` is not a NicConfig.
    """

    LATENCY = {
        ("terms", "own or remote"): 7,
        ("passed", "own or remote"): 6,
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
            **DESCRIPTOR_WRITES, "write_ready": Out(1),
            "counters": Out(GRADIENT_SENDER_COUNTERS), "idle": Out(1),
        } | ({"bags": In(stream.Signature(ArrivedBag)), "bags_idle": In(1)}
             if config.owner_bags else {}))

    def elaborate(self, platform) -> Module:
        m = Module()
        # Sums are late, and the logic before them depends on their ready, so they have a buffer.
        # Passed-on beats come from registers and go directly to the lookup, which begins with a
        # buffer.
        m.submodules.sums = sums = SkidBuffer(GradientBeat)
        m.submodules.split = split = OwnerSplit(_User, self._config.tables, replicated=False)
        wiring.connect(m, wiring.flipped(self.terms), sums.i)
        # Spilled beats wait for the host in a separate buffer.
        m.submodules.spill = spill = SkidBuffer(OutgoingPartial)
        wiring.connect(m, spill.o, wiring.flipped(self.spilled))
        passed, beat, taken = self.passed, Signal(GradientBeat), split.i.payload
        m.d.comb += [
            beat.eq(Mux(sums.o.valid, sums.o.payload.as_value(), passed.payload.as_value())),
            taken.key.eq(beat.key),
            *(taken.user[name].eq(beat[name]) for name in _User.members),
            split.i.valid.eq(sums.o.valid | (passed.valid & ~self.rounded)),
            sums.o.ready.eq(split.i.ready),
            passed.ready.eq(Mux(self.rounded, spill.i.ready, split.i.ready & ~sums.o.valid)),
            spill.i.valid.eq(passed.valid & self.rounded),
            spill.i.payload.destination.eq(ReductionLevel.LOCAL),
            *split.follow(self),
        ]
        # Values bypass the lookup: it stalls as a whole, and values are most of a beat.
        m.submodules.words = words = StreamFIFO(BEAT_BITS, _WORDS)
        assert OwnerSplit.LATENCY["key", "its owner"] + 4 < _WORDS
        # These buffers cut the path from the ready of the outputs.
        m.submodules.own_buffer = own = SkidBuffer(GradientBeat)
        m.submodules.remote_buffer = remote = SkidBuffer(OutgoingPartial)
        wiring.connect(m, own.o, wiring.flipped(self.own))
        wiring.connect(m, remote.o, wiring.flipped(self.remote))
        address, swept = sweep(m, self._config.nodes)
        owned, found, known = split.o.payload, Signal(GradientBeat), Signal()
        here, there = known & owned.own, known & ~owned.own
        m.d.comb += [
            words.i.valid.eq(split.i.valid & split.i.ready), words.i.payload.eq(beat.data),
            words.o.ready.eq(split.o.valid & split.o.ready), found.data.eq(words.o.payload),
            found.key.eq(owned.key), *(found[name].eq(owned.user[name]) for name in _User.members),
            known.eq(split.o.valid & swept & ~owned.refused),
            own.i.valid.eq(here), own.i.payload.eq(found),
            remote.i.valid.eq(there), remote.i.payload.destination.eq(owned.owner),
            split.o.ready.eq(swept & (owned.refused | Mux(owned.own, own.i.ready, remote.i.ready))),
        ]
        _name(m, remote.i.payload, found)
        _name(m, spill.i.payload, passed.payload)
        sent = (here & own.i.ready) | (there & remote.i.ready)
        # All blocks are empty and no beat arrived in the last cycle. A register, because it has
        # many loads.
        quiet = Signal()
        buffers = sums, spill, split, own, remote
        m.d.sync += quiet.eq(Cat(block.idle for block in buffers).all() & swept
                             & ~self.terms.valid & ~passed.valid)
        self._end(m, quiet, sent, owned.owner, address, swept)
        count(m, self.counters, own=self.own.valid & self.own.ready,
              remote=self.remote.valid & self.remote.ready,
              spilled=self.spilled.valid & self.spilled.ready,
              bad=split.o.valid & swept & owned.refused,
              stall_own=self.own.valid & ~self.own.ready,
              stall_remote=self.remote.valid & ~self.remote.ready,
              stall_spilled=self.spilled.valid & ~self.spilled.ready)
        return m

    def _end(self, m: Module, quiet, sent, owner, address, swept) -> None:
        """Count the beats to each node; after a pass, report it or end the step."""
        m.submodules.report_buffer = reports = SkidBuffer(OutgoingRecord)
        m.submodules.step_buffer = steps = SkidBuffer(OutgoingRecord)
        m.submodules.end_buffer = ends = SkidBuffer(StepEnd)
        wiring.connect(m, reports.o, wiring.flipped(self.reports))
        wiring.connect(m, steps.o, wiring.flipped(self.steps))
        wiring.connect(m, ends.o, wiring.flipped(self.own_end))
        m.submodules.counts = counts = Ram(32, self._config.nodes, latency=0)
        # A beat is counted one cycle after it was sent. The announcement uses the same register for
        # its node.
        over, node, counted, told = Signal(Flushed), Signal(NODE_BITS), Signal(), Signal()
        spilled, final, mine = Signal(32), Signal(NODE_BITS), Signal()
        report, end = Signal(StepRecord), Signal(StepRecord)
        announced, may_end = counts.read_data, quiet
        if self._config.owner_bags:
            bags, bags_idle = self._count_bags(m, node, told, address, swept)
            announced, may_end = announced + bags, quiet & bags_idle
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
            end.kind.eq(StepKind.END), end.count.eq(announced),
            steps.i.payload.record.eq(end), steps.i.payload.step.eq(over.step),
            steps.i.payload.destination.eq(node),
            ends.i.payload.step.eq(over.step), ends.i.payload.count.eq(counts.read_data),
        ]
        waiting = Signal()
        with m.FSM():
            with m.State("WAIT"):
                m.d.comb += waiting.eq(1)
                m.d.sync += over.eq(self.flushed.payload)
                with m.If(self.flushed.valid & may_end):
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


    def _count_bags(self, m: Module, node: Signal, told: Signal, address: Signal,
                    swept: Signal) -> tuple[Value, Value]:
        """Count the bags of gradients for each owner; return the number for ``node``, which is
        cleared when it is ``told``, and whether no bag is on its way."""
        m.submodules.bag_counts = counts = Ram(32, self._config.nodes, latency=0)
        owner, comes, quiet = Signal(NODE_BITS, reset_less=True), Signal(), Signal()
        m.d.comb += [
            self.bags.ready.eq(swept), counts.read_en.eq(1),
            counts.read_addr.eq(Mux(comes, owner, node)),
            counts.write_en.eq(comes | told | ~swept),
            counts.write_addr.eq(Mux(swept, counts.read_addr, address)),
            counts.write_data.eq(Mux(comes, counts.read_data + 1, 0)),
        ]
        m.d.sync += [comes.eq(self.bags.valid & swept), owner.eq(self.bags.payload.source),
                     quiet.eq(self.bags_idle & ~self.bags.valid & ~comes)]
        return counts.read_data, quiet


def _name(m: Module, outgoing, beat) -> None:
    """Convert a gradient beat to a beat for a packager."""
    m.d.comb += [
        outgoing.step.eq(beat.step), outgoing.data.eq(beat.data),
        outgoing.record.row.eq(beat.key.row), outgoing.record.table.eq(beat.key.table),
        outgoing.record.beat.eq(beat.beat), outgoing.record.level.eq(ReductionLevel.LOCAL),
    ]

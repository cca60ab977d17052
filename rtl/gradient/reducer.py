"""GradientReducer: sums the gradients of a step for each key."""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import GRADIENT_SUMS, LANES
from rtl.float import (
    ExactTable,
    ExactTerms,
    FloatAccumulator,
    exact_sum_layout,
    exact_term_layout,
)
from rtl.formats import STEP_BITS
from rtl.gateable import Gateable
from rtl.gradient.key_table import KeyTable
from rtl.gradient.key_walk import KeyWalk
from rtl.gradient.reducer_layouts import (
    Flushed,
    gradient_beat_layout,
    reduced_beat_layout,
    sum_meta_layout,
)
from rtl.monitor.counters import CounterLayout, count
from rtl.shared import Shared
from rtl.stream import SkidBuffer

__all__ = ["GRADIENT_REDUCER_COUNTERS", "GradientReducer"]

GRADIENT_REDUCER_COUNTERS = (
    "beats_in", "keys", "merged", "passed", "dropped", "beats_out", "stall_output", "stall_passed",
    "stall_step")


class GradientReducer(Gateable, wiring.Component):
    """Sum the gradients of each key until the step is flushed (paper, 4.2.1 and 4.2.2).

    Sums are exact (:class:`~rtl.float.ExactTable`). The result therefore depends neither on the
    order of the gradients nor on the node that reduces them. Sums leave only after ``flush``. A
    beat whose set is full of other keys is passed on, together with all further beats of its key
    until the flush. A pass therefore contains all beats of a key or none, and passed-on beats can
    return in a later pass.

    One step is open at a time: a beat of another step waits until the open step is flushed. The
    first beat after a flush opens its step. A beat numbered ``beats`` or more is dropped.

    A beat of sums leaves in ``lanes / units`` cycles, by default 2. Sums leave once a step, to a
    network that takes 0.7 beats per cycle, or to rows for which PCIe has 50 bytes per cycle. A unit
    per lane would need 10 thousand LUTs more if sums leave as lists.

    With ``gradient_sums`` ``float32``, each addition is rounded
    (:class:`~rtl.float.FloatAccumulator`). A sum is then one float32, which depends on the cycles
    in which its gradients arrive. A beat of sums leaves per cycle.

    After reset, a sweep takes one cycle per set before the first beat passes; with ``float32``, one
    cycle per beat of a key.

    Parameters
    ----------
    keys: most keys stored at once; a power of two, at least twice ``ways``.
    ways: keys per set of the key table; a power of two.
    beats: beats of the longest vector. The sums have ``keys * beats`` entries.
    split: sums can leave as lists. Without it, they leave rounded, and the logic for lists is left
        out.
    style: ``bram`` or ``uram``, memory of the sums.
    gradient_sums: ``exact`` or ``float32``.
    lanes: float32 of a beat.
    units: lanes of a sum that are rounded per cycle, by default half of them, see
        :class:`~rtl.float.ExactTerms`. With 0, the block has no units: connect ``sums``, ``terms``
        and ``quiet`` to a :class:`~rtl.gradient.RounderBank`. Unused with ``float32``.

    Ports
    -----
    i: stream of :func:`gradient_beat_layout`, with 16 lanes :data:`rtl.formats.GradientBeat`; in
        any order. A sum takes up to 2^20 beats.
    rounded: 1: each sum leaves as the nearest float32, or infinity if it is too large; 0: as the
        shortest list of float32 that adds up to the sum. Must not change while a sum is stored;
        with ``split``, else 1.
    enable: 0: pass every beat on; may change between steps; with ``split``.
    flush: stream of the step whose gradients are complete; it covers the beats taken before it.
    o: stream of :func:`reduced_beat_layout`, a GradientBeat and ``last``. Rounded, the beats of a
        key are consecutive, in ascending order, with ``last`` on the final one; the beats of lists
        take turns. A beat of a key without additions does not leave.
    passed: stream of passed-on beats, :func:`gradient_beat_layout` unchanged, in order.
    flushed: stream of :data:`Flushed`, after everything has left ``o`` and ``passed``. Both counts
        are 0 for a step that is not open. ``passed`` counts from the last flush on. The next pass
        begins when the item is taken.
    sums, terms, quiet: without units, output stream of whole sums
        (:func:`~rtl.float.exact_sum_layout`), input stream of their beats
        (:func:`~rtl.float.exact_term_layout`), and a flag that no sum is in flight between them.
    counters: see :data:`GRADIENT_REDUCER_COUNTERS`. ``keys``: entries made, ``merged``: beats added
        to others, ``passed`` on, ``dropped``; ``stall_output``: cycles in which a beat waits for
        ``o``, ``stall_passed``: for ``passed``, ``stall_step``: for the flush of another step, or
        for its own sums to be read out.
    idle: inactive until an input changes. Stored sums do not clear it. A beat that waits for the
        flush of another step clears it, because its cycles are counted.

    Raises ``ValueError`` for keys, ways or beats out of range, naming the bound.
    """

    LATENCY = {
        ("beat", "passed"): 10,
        ("flush",
         "its answer, besides the beats that leave and at most 1 for "
         "each empty set, if nothing waits and sums leave rounded"): 20,
    }
    RATE = (
        "1 beat per cycle, whatever the keys, also where they are passed on, after a cycle in "
        "which the first opens its step; a beat of sums leaves in lanes / units cycles; with "
        "float32 see FloatAccumulator")

    def __init__(self, keys: int, ways: int, *, beats: int = 1, split: bool,
                 style: str = "bram", gradient_sums: str = "exact", lanes: int = LANES,
                 units: int | None = None):
        for name, value, low, high in (("ways", ways, 1, 16), ("keys", keys, 2 * ways, 1 << 16)):
            if isinstance(value, bool) or not isinstance(value, int) or (
                    not low <= value <= high or value & (value - 1)):
                raise ValueError(f"{name} must be a power of two between {low} and {high}, "
                                 f"not {value!r}")
        if isinstance(beats, bool) or not isinstance(beats, int) or not 1 <= beats <= 16:
            raise ValueError(f"beats must be an integer between 1 and 16, not {beats!r}")
        self._keys, self._ways, self._beats, self._lanes = keys, ways, beats, lanes
        if gradient_sums not in GRADIENT_SUMS:
            raise ValueError(f"gradient_sums must be {' or '.join(GRADIENT_SUMS)}, "
                             f"not {gradient_sums!r}")
        self._split, self._style, self._exact = split, style, gradient_sums == "exact"
        self._units = -(-lanes // 2) if units is None else units
        self._meta = sum_meta_layout(beats)
        super().__init__({
            "i": In(stream.Signature(gradient_beat_layout(lanes))),
            "flush": In(stream.Signature(STEP_BITS)),
            "o": Out(stream.Signature(reduced_beat_layout(lanes))),
            "passed": Out(stream.Signature(gradient_beat_layout(lanes))),
            "flushed": Out(stream.Signature(Flushed)),
            **({"rounded": In(1), "enable": In(1, init=1)} if split else {}),
            **({} if self._units or not self._exact else {
                "sums": Out(stream.Signature(exact_sum_layout(self._meta, lanes))),
                "terms": In(stream.Signature(exact_term_layout(self._meta, lanes))),
                "quiet": In(1)}),
            "counters": Out(CounterLayout(*GRADIENT_REDUCER_COUNTERS)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        size = (self._keys, self._ways, self._beats)
        layout = gradient_beat_layout(self._lanes)
        m.submodules.entry = entry = SkidBuffer(data.StructLayout(
            {"beat": layout, "bad": 1, "again": 1}))
        # A separate unit: tools that map training as a whole let its loop become as long as the
        # longest path there.
        m.submodules.table = table = Shared(
            KeyTable(*size, lanes=self._lanes),
            "key_table_" + "_".join(map(str, (*size, self._lanes))), has_reset=True)
        m.submodules.walk = walk = KeyWalk(*size)
        sums, terms, rounding = self._sum(m)
        m.submodules.leaving = leaving = SkidBuffer(layout)
        wiring.connect(m, leaving.o, wiring.flipped(self.passed))
        for port in ("read", "read_address", "line", "clear", "clear_address"):
            here, there = getattr(table, port), getattr(walk, port)
            m.d.comb += there.eq(here) if port == "line" else here.eq(there)

        # Operations: of the beats, or of the walk.
        found, named, operation = table.o.payload, walk.o.payload, sums.i.payload
        m.d.comb += [
            table.walking.eq(walk.walking),
            sums.i.valid.eq(table.o.valid | walk.o.valid),
            # Sums are taken after the last beat; the next beat enters when the last sum has left.
            table.o.ready.eq(1 if self._exact else sums.i.ready), walk.o.ready.eq(sums.i.ready),
            operation.entry.eq(Mux(walk.walking, Cat(named.slot, named.beat),
                                   Cat(found.slot, found.beat))),
            operation.data.eq(found.payload.data),
            operation.first.eq(found.payload.first), operation.take.eq(walk.walking),
            operation.meta.key.eq(named.payload.key), operation.meta.beat.eq(named.beat),
            operation.meta.last.eq(named.payload.last),
        ]

        # Input: beats of the open step. A beat is compared on arrival with the step of the previous
        # beat. Only if the steps differ, which is rare, the beat in front is compared with the open
        # step before it passes.
        given, before = self.i.payload, Signal(STEP_BITS, reset_less=True)
        front, enter, own, seen = entry.o.payload.beat, Signal(), Signal(), Signal()
        step, left = Signal(STEP_BITS), Signal(data.StructLayout({"keys": 32, "passed": 32}))
        m.d.comb += [
            entry.i.valid.eq(self.i.valid), self.i.ready.eq(entry.i.ready),
            entry.i.payload.beat.eq(given), entry.i.payload.bad.eq(given.beat >= self._beats),
            entry.i.payload.again.eq(given.step == before),
            table.i.payload.key.eq(front.key), table.i.payload.data.eq(front.data),
            table.i.payload.beat.eq(front.beat),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += before.eq(given.step)
        bad = entry.o.payload.bad
        waiting, goes, quiet = entry.o.valid & ~bad, enter & own, Signal()
        m.d.comb += [
            table.i.valid.eq(waiting & goes), entry.o.ready.eq(bad | (table.i.ready & goes)),
            quiet.eq(Cat(part.idle for part in (table, sums, leaving)).all() & ~rounding),
        ]
        self._follow_steps(m, walk, step, left, entry, waiting, own, seen, enter, table.idle, quiet)

        # Everything leaves before its step is closed, so the step need not be stored.
        taken, rounded = terms.payload, self.rounded if self._split else 1
        if self._split:
            m.d.comb += table.enable.eq(self.enable)
        m.d.comb += [
            self.o.valid.eq(terms.valid), terms.ready.eq(self.o.ready),
            Cat(self.o.payload.key).eq(taken.meta.key), self.o.payload.step.eq(step),
            self.o.payload.beat.eq(taken.meta.beat), self.o.payload.data.eq(taken.data),
            self.o.payload.last.eq(taken.meta.last & rounded),
            leaving.i.valid.eq(table.passed.valid), table.passed.ready.eq(leaving.i.ready),
            leaving.i.payload.step.eq(step),
            *(leaving.i.payload[field].eq(table.passed.payload[field])
              for field in ("key", "beat", "data")),
        ]

        added, passed = table.o.valid & table.o.ready, leaving.i.valid & leaving.i.ready
        made = added & found.payload.made
        with m.If(made):
            m.d.sync += left.keys.eq(left.keys + 1)
        with m.If(passed):
            m.d.sync += left.passed.eq(left.passed + 1)
        count(m, self.counters, beats_in=self.i.valid & self.i.ready, keys=made,
              merged=added & ~found.payload.first, passed=passed, dropped=entry.o.valid & bad,
              beats_out=self.o.valid & self.o.ready, stall_output=self.o.valid & ~self.o.ready,
              stall_passed=leaving.i.valid & ~leaving.i.ready,
              stall_step=waiting & (~enter | (seen & ~own)))
        return m

    def _sum(self, m: Module) -> tuple:
        """Return the memory of the sums, the stream of their beats, and whether a sum is between
        both."""
        entries = self._keys * self._beats
        if not self._exact:
            m.submodules.sums = sums = FloatAccumulator(
                entries, self._meta, style=self._style, lanes=self._lanes)
            return sums, sums.o, C(0)
        m.submodules.sums = table = ExactTable(
            entries, self._meta, style=self._style, lanes=self._lanes, units=self._units or None)
        if not self._units:
            wiring.connect(m, table.sums, wiring.flipped(self.sums))
            return table, self.terms, ~self.quiet
        m.submodules.terms = terms = ExactTerms(
            self._meta, split=self._split, lanes=self._lanes, units=self._units)
        wiring.connect(m, table.sums, terms.sums)
        if self._split:
            m.d.comb += terms.rounded.eq(self.rounded)
        return table, terms.o, ~terms.idle

    def _follow_steps(self, m: Module, walk: KeyWalk, step, left, entry, waiting, own, seen, enter,
                      drained, quiet) -> None:
        """Open steps, let their beats ``enter``, and read out and answer flushed steps.

        ``left`` is the pending answer. ``waiting``: ``entry`` has a beat that is not dropped.
        ``own``: its step is open; this is known at once for a beat that follows a beat of its step,
        otherwise when the beat has been ``seen``. ``enter`` and the operand compared with a flush
        are registers, because a beat's ready, and all logic behind it, depends on both.
        """
        opened, over, other, answer = Signal(), Signal(), Signal(), self.flushed.payload
        # Flags of the beat in front, once it was seen, and of the beat that left last.
        same, run = Signal(), Signal()
        leaves, front = entry.o.valid & entry.o.ready, entry.o.payload
        m.d.comb += own.eq(same | (run & front.again))
        m.d.sync += [seen.eq(opened & waiting & ~leaves),
                     same.eq(opened & waiting & ~leaves & (front.beat.step == step))]
        with m.If(leaves):
            m.d.sync += run.eq(own)
        with m.FSM(init="SWEEP"):
            with m.State("SWEEP"):
                with m.If(~walk.sweeping):
                    m.d.sync += enter.eq(1)
                    m.next = "ADD"
            with m.State("ADD"):
                m.d.comb += [self.flush.ready.eq(1), self.idle.eq(quiet & entry.idle)]
                m.d.sync += [
                    answer.step.eq(self.flush.payload), answer.keys.eq(0), answer.passed.eq(0)]
                with m.If(waiting & ~opened):
                    m.d.sync += [opened.eq(1), step.eq(front.beat.step), seen.eq(1), same.eq(1)]
                with m.If(self.flush.valid):
                    m.d.sync += enter.eq(0)
                    m.next = "FLUSH"
            with m.State("FLUSH"):
                m.d.sync += other.eq(opened & (step != answer.step))
                m.next = "JUDGE"
            with m.State("JUDGE"):
                with m.If(other):
                    m.next = "LEAVE"
                with m.Else():
                    m.d.sync += [opened.eq(1), step.eq(answer.step), enter.eq(1)]
                    m.next = "DRAIN"
            with m.State("DRAIN"):
                # Beats from before the flush may not have reached the table yet.
                m.d.comb += over.eq((~waiting | (seen & ~own)) & drained & enter)
                m.d.sync += enter.eq(~over)
                with m.If(~enter):
                    m.d.comb += walk.start.eq(left.keys != 0)
                    m.d.sync += [enter.eq(0), opened.eq(0), run.eq(0), seen.eq(0), same.eq(0)]
                    m.next = "WALK"
            with m.State("WALK"):
                with m.If(~walk.walking):
                    m.d.sync += [
                        answer.keys.eq(left.keys), answer.passed.eq(left.passed), left.eq(0)]
                    m.next = "LEAVE"
            with m.State("LEAVE"):
                with m.If(quiet):
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += self.flushed.valid.eq(1)
                with m.If(self.flushed.ready):
                    m.d.sync += enter.eq(1)
                    m.next = "ADD"

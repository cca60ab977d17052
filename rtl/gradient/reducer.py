"""GradientReducer: the gradients of a step for the same key become one exact sum."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import LANES
from rtl.counters import CounterLayout, count
from rtl.float import ExactTable, ExactTerms
from rtl.formats import STEP_BITS, Key
from rtl.stream import SkidBuffer

from .key_table import KeyTable
from .key_walk import KeyWalk
from .reducer_layouts import Flushed, beat_bits, gradient_beat_layout, gradient_term_layout
from .term_merge import TermMerge

__all__ = ["GRADIENT_REDUCER_COUNTERS", "GradientReducer"]

GRADIENT_REDUCER_COUNTERS = (
    "beats_in", "keys", "merged", "retired_early", "beats_out", "stall_output", "stall_step")


class GradientReducer(wiring.Component):
    """Add up the gradients of each key until the step ends (paper, 4.2.1 and 4.2.2).

    Sums are exact (:class:`~rtl.float.ExactTable`), so that neither the order of the gradients nor
    who reduced which of them can be seen in the result. They leave when ``flush`` asks for them,
    and early where a set is full and a new key takes the place of the one that was used longest
    ago. Exact reduction, the local one, lets a sum go as the shortest list of float32 that adds up
    to it. Rounding reduction, the global one, lets it go as the one nearest float32, except where
    an entry of the same set was retired early in this step: then parts of the sum may have left
    already, and all of them go as exact lists, marked ``partial``, to be added before the one
    rounding.

    One step at a time: a beat of another step waits until the open one is flushed. The first beat
    after a flush opens its step.

    Throughput 1 beat per cycle, whatever the keys; sums leave at 1 term per cycle, and hold new
    keys up where more than that retire early. Reading out takes the terms, at least a cycle for
    each set, and 29 cycles more. Latency from the beat that retires a sum to its first term 29
    cycles, or 30 where sums are rounded. After reset a cycle for each set passes before the first
    beat goes on.

    Parameters
    ----------
    keys: that are held at once; a power of two, at least twice ``ways``.
    ways: of a set of the key table; a power of two.
    beats: of the longest vector. The sums take ``keys * beats`` entries.
    rounded: sums leave rounded once.
    style: ``bram`` or ``uram``, of the sums.
    lanes: float32 of a beat.

    Ports
    -----
    i: input stream of :func:`gradient_beat_layout`; the beats of a vector in sequence. A sum takes
        up to 2^20 gradients.
    flush: input stream of the step whose gradients are complete: those taken in before it count.
    o: output stream of :func:`gradient_term_layout`. Lists that leave together take turns, term by
        term, even where a key has several; those that are rounded have one term, and come vector by
        vector.
    flushed: output stream of :data:`Flushed`, when all of the step has left ``o``; 0 keys for a
        step that is not the open one. The next step begins when it is taken.
    vector_beats: beats of a vector, at least 1, fixed while anything is held.
    counters: see :data:`GRADIENT_REDUCER_COUNTERS`. ``keys``: vectors that found no entry of their
        key, ``merged``: those that did; ``retired_early``: entries that left before the flush;
        ``stall_output``: cycles in which a beat waits for sums to leave, ``stall_step``: for
        another step to be flushed, or its own to be read out.
    idle: nothing moves until an input does; what entries hold does not count, but a beat that
        waits for another step's flush does, for its cycles are counted.

    Raises ``ValueError`` for keys, ways or beats out of range, naming the bound.
    """

    def __init__(self, keys: int, ways: int, *, beats: int = 1, rounded: bool,
                 style: str = "bram", lanes: int = LANES):
        for name, value, low, high in (("ways", ways, 1, 16), ("keys", keys, 2 * ways, 1 << 16)):
            if isinstance(value, bool) or not isinstance(value, int) or (
                    not low <= value <= high or value & (value - 1)):
                raise ValueError(f"{name} must be a power of two between {low} and {high}, "
                                 f"not {value!r}")
        if isinstance(beats, bool) or not isinstance(beats, int) or not 1 <= beats <= 16:
            raise ValueError(f"beats must be an integer between 1 and 16, not {beats!r}")
        self._keys, self._ways, self._beats, self._lanes = keys, ways, beats, lanes
        self._rounded, self._style = rounded, style
        super().__init__({
            "i": In(stream.Signature(gradient_beat_layout(lanes))),
            "flush": In(stream.Signature(STEP_BITS)),
            "o": Out(stream.Signature(gradient_term_layout(beats, lanes))),
            "flushed": Out(stream.Signature(Flushed)),
            "vector_beats": In(range(beats + 1), init=1),
            "counters": Out(CounterLayout(*GRADIENT_REDUCER_COUNTERS)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        size = (self._keys, self._ways, self._beats)
        meta_shape = data.StructLayout(
            {"key": Key.size, "beat": beat_bits(self._beats), "partial": 1})
        m.submodules.entry = entry = SkidBuffer(gradient_beat_layout(self._lanes))
        m.submodules.table = table = KeyTable(*size, lanes=self._lanes)
        m.submodules.walk = walk = KeyWalk(*size)
        m.submodules.sums = sums = ExactTable(
            self._keys * self._beats, meta_shape, style=self._style, lanes=self._lanes)
        m.submodules.terms = terms = (TermMerge if self._rounded else ExactTerms)(
            meta_shape, lanes=self._lanes, **({} if self._rounded else {"split": True}))
        wiring.connect(m, wiring.flipped(self.i), entry.i)
        wiring.connect(m, sums.sums, terms.sums)
        for port in ("read", "read_address", "line", "clear", "clear_address"):
            here, there = getattr(table, port), getattr(walk, port)
            m.d.comb += there.eq(here) if port == "line" else here.eq(there)

        # Operations: of the beats, or of the walk.
        found, named, operation = table.o.payload, walk.o.payload, sums.i.payload
        m.d.comb += [
            table.walking.eq(walk.walking), walk.vector_beats.eq(self.vector_beats),
            sums.i.valid.eq(table.o.valid | walk.o.valid),
            table.o.ready.eq(sums.i.ready), walk.o.ready.eq(sums.i.ready),
            operation.entry.eq(Mux(walk.walking, Cat(named.slot, named.beat),
                                   Cat(found.slot, found.beat))),
            operation.data.eq(found.payload.data), operation.add.eq(~walk.walking),
            operation.first.eq(found.payload.first),
            operation.take.eq(walk.walking | found.payload.take),
        ]
        for field in meta_shape.members:
            m.d.comb += operation.meta[field].eq(Mux(walk.walking, named[field], found[field]))

        # Steps.
        step, opened = Signal(STEP_BITS), Signal()
        front, own, enter = entry.o.payload, Signal(), Signal()
        left, answer = Signal(32), self.flushed.payload
        m.d.comb += [
            own.eq(front.step == step),
            Cat(table.i.payload.key).eq(front.key), table.i.payload.data.eq(front.data),
            table.i.payload.last.eq(front.last),
            table.i.valid.eq(entry.o.valid & enter), entry.o.ready.eq(table.i.ready & enter),
        ]
        quiet = Signal()
        m.d.comb += quiet.eq(table.idle & sums.idle & terms.idle)
        with m.FSM(init="SWEEP"):
            with m.State("SWEEP"):
                with m.If(~walk.sweeping):
                    m.next = "ADD"
            with m.State("ADD"):
                m.d.comb += [
                    self.flush.ready.eq(1), enter.eq(~self.flush.valid & (own | ~opened)),
                    self.idle.eq(quiet & ~entry.o.valid),
                ]
                m.d.sync += [answer.step.eq(self.flush.payload), answer.keys.eq(0)]
                with m.If(self.flush.valid):
                    with m.If(opened & (step != self.flush.payload)):
                        m.next = "LEAVE"
                    with m.Else():
                        m.d.sync += [opened.eq(1), step.eq(self.flush.payload)]
                        m.next = "DRAIN"
                with m.Elif(entry.o.valid & ~opened):
                    m.d.sync += [opened.eq(1), step.eq(front.step)]
            with m.State("DRAIN"):
                # Beats that came before the flush may still be in front of the table.
                m.d.comb += enter.eq(own)
                with m.If(~(entry.o.valid & own) & table.head & table.idle):
                    m.d.comb += walk.start.eq(left != 0)
                    m.d.sync += opened.eq(0)
                    m.next = "WALK"
            with m.State("WALK"):
                with m.If(~walk.walking):
                    m.d.sync += [answer.keys.eq(left), left.eq(0)]
                    m.next = "LEAVE"
            with m.State("LEAVE"):
                with m.If(quiet):
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += self.flushed.valid.eq(1)
                with m.If(self.flushed.ready):
                    m.next = "ADD"

        # Terms leave before their step is closed, so that it need not go along with them.
        m.d.comb += [
            self.o.valid.eq(terms.o.valid), terms.o.ready.eq(self.o.ready),
            Cat(self.o.payload.key).eq(terms.o.payload.meta.key), self.o.payload.step.eq(step),
            self.o.payload.beat.eq(terms.o.payload.meta.beat),
            self.o.payload.partial.eq(terms.o.payload.meta.partial),
            *(self.o.payload[field].eq(terms.o.payload[field])
              for field in ("data", "count", "last")),
        ]

        looked = table.o.valid & sums.i.ready & (found.beat == 0)
        new = looked & found.payload.first
        with m.If(new):
            m.d.sync += left.eq(left + 1)
        count(m, self.counters, beats_in=self.i.valid & self.i.ready, keys=new,
              merged=looked & ~found.payload.first, retired_early=looked & found.payload.take,
              beats_out=self.o.valid & self.o.ready,
              stall_output=table.o.valid & ~sums.i.ready, stall_step=entry.o.valid & ~enter)
        return m

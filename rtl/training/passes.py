"""Pass source: feeds the passes of a reduction: first a step's beats, then spilled beats."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import STEP_BITS, GradientBeat
from rtl.gradient.partial_layouts import PartialLost
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import SkidBuffer

__all__ = ["PASS_COUNTERS", "PassOver", "PassSource"]

PASS_COUNTERS = CounterLayout("returned", "bad_returned")

PassOver = data.StructLayout({"valid": 1, "step": STEP_BITS, "spilled": 32, "some": 1})
"""Event: a pass of ``step`` is over, which spilled this number of beats; ``some``: it is not 0."""

_Taken = data.StructLayout({"beat": GradientBeat, "wanted": 1})


class PassSource(wiring.Component):
    """Feed a reduction pass by pass (docs/training.md).

    The first pass is the beats of a step and its end. While a pass spills beats, the next pass is
    the beats that the host returns, and its end.

    Returned beats are accepted only while a pass waits for them, with its step and up to the
    spilled number; all others are dropped and counted. A returned beat that was dropped earlier,
    because its row does not exist, reduces the expected number. An end passes after all beats
    before it were taken.

    Ports
    -----
    fresh: stream of :data:`rtl.formats.GradientBeat`, the step's own beats.
    over: stream of the step whose own beats have ended, offered after all of them were taken.
        ``fresh`` and ``over`` wait from an end until the last pass is over.
    returned: stream of :data:`rtl.formats.GradientBeat`.
    lost: event :data:`~rtl.gradient.partial_layouts.PartialLost`, whose level is ignored; not in a
        cycle in which ``returned`` is offered.
    passed: event :data:`PassOver`, after the reduction has been emptied, once for each ``flush``.
    o, flush: streams of :data:`rtl.formats.GradientBeat` and of steps, to the reduction.
    counters: beats ``returned``; ``bad_returned``, those dropped.
    idle: empty. A pass that waits for the host does not clear it.
    """

    LATENCY = {("beat", "the same beat"): 1}
    RATE = "1 beat per cycle"

    def __init__(self):
        super().__init__({
            "fresh": In(stream.Signature(GradientBeat)), "over": In(stream.Signature(STEP_BITS)),
            "returned": In(stream.Signature(GradientBeat)), "lost": In(PartialLost),
            "passed": In(PassOver),
            "o": Out(stream.Signature(GradientBeat)), "flush": Out(stream.Signature(STEP_BITS)),
            "counters": Out(PASS_COUNTERS), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.buffer = buffer = SkidBuffer(_Taken)
        front, entering = buffer.o.payload, buffer.i.payload
        left, step = Signal(32), Signal(STEP_BITS)
        ending, final, closing = Signal(), Signal(), Signal()
        # Selects the input; a register without other loads.
        returning = Signal()
        # In the previous cycle: a wanted beat arrived, a beat was lost (never both), or an unwanted
        # beat was dropped.
        came, lost, strayed = Signal(), Signal(), Signal()
        # A register, because the ready of other blocks depends on it.
        opened = Signal(init=1)
        m.d.comb += [
            # Unwanted beats are dropped at the buffer's output. Only data therefore depends on the
            # comparison, and the beat after the last one is unwanted although the last one is
            # counted one cycle late.
            self.o.valid.eq(buffer.o.valid & front.wanted), self.o.payload.eq(front.beat),
            buffer.o.ready.eq(self.o.ready | ~front.wanted),
            closing.eq((came | lost) & final),
            entering.wanted.eq(~returning
                               | ((self.returned.payload.step == step) & ~closing)),
            entering.beat.eq(Mux(returning, self.returned.payload.as_value(),
                                 self.fresh.payload.as_value())),
            self.flush.payload.eq(step),
            # Returned beats are dropped unless a pass waits for them.
            self.returned.ready.eq(1), self.over.ready.eq(opened),
            self.fresh.ready.eq(opened & buffer.i.ready),
        ]
        m.d.sync += [
            came.eq(0), lost.eq(0),
            strayed.eq(self.returned.valid & self.returned.ready),
        ]
        with m.FSM():
            with m.State("FRESH"):
                m.d.comb += buffer.i.valid.eq(self.fresh.valid)
                m.d.sync += step.eq(self.over.payload)
                with m.If(self.over.valid):
                    m.d.sync += [returning.eq(1), opened.eq(0)]
                    m.next = "END"
            with m.State("END"):
                m.d.comb += [ending.eq(1), self.flush.valid.eq(buffer.idle)]
                with m.If(buffer.idle & self.flush.ready):
                    m.next = "PASS"
            with m.State("PASS"):
                m.d.sync += [left.eq(self.passed.spilled), final.eq(self.passed.spilled == 1)]
                with m.If(self.passed.valid):
                    m.next = "FRESH"
                    m.d.sync += [returning.eq(self.passed.some), opened.eq(~self.passed.some)]
                    with m.If(self.passed.some):
                        m.next = "RETURN"
            with m.State("RETURN"):
                m.d.comb += [
                    buffer.i.valid.eq(self.returned.valid),
                    self.returned.ready.eq(buffer.i.ready),
                ]
                m.d.sync += [
                    came.eq(self.returned.valid & buffer.i.ready & entering.wanted),
                    strayed.eq(self.returned.valid & buffer.i.ready & ~entering.wanted),
                    lost.eq(self.lost.valid & (self.lost.step == step)),
                ]
                with m.If(came | lost):
                    # A register marks the last one, which keeps the path short.
                    m.d.sync += [left.eq(left - 1), final.eq(left == 2)]
                with m.If(closing):
                    m.next = "END"
        m.d.comb += self.idle.eq(buffer.idle & ~ending & ~lost & ~strayed)
        count(m, self.counters, returned=came, bad_returned=strayed)
        return m

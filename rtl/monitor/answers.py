"""Answer counter: outstanding answers, and cycles without an answer."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.monitor.counters import CounterLayout, count

__all__ = ["ANSWER_COUNTERS", "AnswerCounter"]

ANSWER_COUNTERS = CounterLayout("asked", "answered", "stall_answers")


class AnswerCounter(wiring.Component):
    """Count requests to the other side of an edge, and its answers.

    Ports
    -----
    asked, answered: one more request or answer in this cycle; never more answers than requests.
    time: counts cycles, including cycles skipped while idle.
    counters: ``asked`` and ``answered``, whose difference is outstanding; ``stall_answers``, cycles
        with an outstanding answer in which none arrives.
    idle: always 1: an outstanding answer moves nothing.
    """

    def __init__(self):
        super().__init__({
            "asked": In(1), "answered": In(1), "time": In(32),
            "counters": Out(ANSWER_COUNTERS), "idle": Out(1, init=1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        before, passed, owed = Signal(32, reset_less=True), Signal(32), Signal()
        m.d.comb += [passed.eq(self.time - before), self.idle.eq(1)]
        # Outstanding since the previous cycle: the counters include its requests by now.
        m.d.sync += [before.eq(self.time),
                     owed.eq((self.counters.asked != self.counters.answered) & ~self.answered)]
        count(m, self.counters, asked=self.asked, answered=self.answered,
              stall_answers=Mux(owed, passed, 0))
        return m

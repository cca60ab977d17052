"""Answers that are owed: how many, and for how long none has come."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.monitor.counters import CounterLayout, count

__all__ = ["ANSWER_COUNTERS", "AnswerCounter"]

ANSWER_COUNTERS = CounterLayout("asked", "answered", "stall_answers")


class AnswerCounter(wiring.Component):
    """Count what was asked of the other side of an edge, and what came back.

    Ports
    -----
    asked, answered: in this cycle, one more; at most as many are answered as were asked.
    time: counts cycles, and those that were skipped while idle too.
    counters: ``asked`` and ``answered``, whose difference is still owed; ``stall_answers``, cycles
        in which something is owed and nothing comes.
    idle: always: an answer that is owed moves nothing.
    """

    def __init__(self):
        super().__init__({
            "asked": In(1), "answered": In(1), "time": In(32),
            "counters": Out(ANSWER_COUNTERS), "idle": Out(1, init=1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        before, passed, owed = Signal(32), Signal(32), Signal()
        m.d.comb += [passed.eq(self.time - before), self.idle.eq(1)]
        # Owed since the last cycle: what was asked then is seen in the counters now.
        m.d.sync += [before.eq(self.time),
                     owed.eq((self.counters.asked != self.counters.answered) & ~self.answered)]
        count(m, self.counters, asked=self.asked, answered=self.answered,
              stall_answers=Mux(owed, passed, 0))
        return m

"""Counter of outstanding answers against a Python count, with jumps of the time."""

import random

from rtl.monitor.answers import AnswerCounter
from tests.support import made, simulate


def test_counts_and_waits():
    dut, rng = made(AnswerCounter), random.Random(5)

    async def bench(ctx):
        owed = asked = answered = waited = 0
        time = (1 << 32) - 700
        for _ in range(600):
            ask = rng.random() < 0.3
            answer = owed > 0 and rng.random() < 0.3
            ctx.set(dut.asked, ask)
            ctx.set(dut.answered, answer)
            ctx.set(dut.time, time % (1 << 32))
            await ctx.tick()
            # Outstanding for the whole cycle without an answer: the time until the next cycle
            # counts as waiting.
            owed += ask - answer
            step = rng.choice([1, 1, 1, 50])
            waiting = owed - ask > 0 and not answer
            waited += step if waiting else 0
            asked, answered, time = asked + ask, answered + answer, time + step
        ctx.set(dut.asked, 0)
        ctx.set(dut.answered, 0)
        ctx.set(dut.time, time % (1 << 32))
        await ctx.tick()
        assert ctx.get(dut.counters.asked) == asked
        assert ctx.get(dut.counters.answered) == answered
        assert ctx.get(dut.counters.stall_answers) == waited > 0
        assert ctx.get(dut.idle)

    simulate(dut, bench)

"""Completion writer: each opened step gets one word, in its slot, after all of its answers have
left."""

import functools

import pytest

from rtl.formats import CompletionRecord, FlushRecord, Opcode, Status
from rtl.rings import CompletionWriter, StepTable
from tests.mutants import variant
from tests.rtl.rings.completing import Host, run
from tests.support import a_bit_apart, decoder, made, simulate


@functools.cache
def after(first: int) -> type:
    """Return the block in its state after ``first`` openings."""
    count = f"Signal(INDEX_BITS, init={first})"
    return variant(
        CompletionWriter, ("opened, freed = Signal(INDEX_BITS), Signal(INDEX_BITS)",
                           f"opened, freed = {count}, {count}"),
        ("written, moves = Signal(RingIndex), Signal(INDEX_BITS),",
         f"written, moves = Signal(RingIndex), {count},"))


@pytest.mark.thorough
@pytest.mark.parametrize("slots, flush, wrong, stall, first", [
    (2, False, 0.0, 0.0, 0xFFE0), (4, True, 0.1, 0.4, 0xFFE0), (16, True, 0.0, 0.2, 0),
    (4, False, 0.2, 0.6, 0), (8, True, 0.2, 0.0, 0xFFE0)])
def test_every_step_once_whatever_is_said(slots, flush, wrong, stall, first):
    """Number openings from ``first`` on, through the wrap of numbers."""
    dut = made(after(first), slots)
    host = Host(slots, 70, slots, flush, wrong, stall, first=first)
    counters = run(dut, host)
    assert host.got_refusals == host.refusals
    names = ("refused", "stray_answers", "excess_answers", "errors", "stray_errors",
             "bad_flushed", "bad_freed", "flushes", "refusals_lost", "timeouts")
    assert {name: counters[name] for name in names} == {
        name: host.expected[name] for name in names}
    assert counters["opened"] == counters["finished"] == counters["completed"] == 70


class Direct:
    """Sends single inputs to a block, and keeps its output."""

    def __init__(self, ctx, dut, timeout: int = 0):
        self.ctx, self.dut, self.now, self.words, self.flushes = ctx, dut, 0, [], []
        self.headers, self.beats, self.refused = [], [], []
        ctx.set(dut.timeout, timeout)
        for port in (dut.headers, dut.payload, dut.refused):
            ctx.set(port.ready, 1)

    async def tick(self, cycles: int = 1) -> None:
        ctx, dut = self.ctx, self.dut
        for _ in range(cycles):
            self.now = (self.now + 1) & 0xFFFFFFFF
            ctx.set(dut.time, self.now)
            _, _, head, opcode, beat, data, refused, refusal = await ctx.tick().sample(
                dut.headers.valid & dut.headers.ready, dut.headers.payload.opcode,
                dut.payload.valid & dut.payload.ready, dut.payload.payload.data,
                dut.refused.valid & dut.refused.ready, dut.refused.payload)
            if head:
                self.headers.append((opcode, self.now))
            if beat:
                self.beats.append(data)
            if refused:
                self.refused.append((refusal.status, refusal.step))
            while self.headers and self.beats:
                (opcode, at), data = self.headers.pop(0), self.beats.pop(0)
                if opcode == Opcode.COMPLETION:
                    word = decoder(CompletionRecord)(data)
                    self.words.append((word["step"], word["status"], at))
                else:
                    self.flushes.append((decoder(FlushRecord)(data), at))

    async def open(self, step: int, samples: int, cycles: int = 8) -> None:
        ctx, port = self.ctx, self.dut.opens
        ctx.set(port.payload, {"step": step, "samples": samples})
        ctx.set(port.valid, 1)
        for _ in range(8):
            taken = ctx.get(port.ready)
            await self.tick()
            if taken:
                break
        assert taken, "openings never wait"
        ctx.set(port.valid, 0)
        await self.tick(cycles)

    async def say(self, port, **event) -> None:
        self.ctx.set(port, {"valid": 1} | event)
        await self.tick()
        self.ctx.set(port, {})

    def counter(self, name: str) -> int:
        return self.ctx.get(self.dut.counters[name])


def direct(dut, script, **settings) -> None:
    async def bench(ctx):
        await ctx.tick().repeat(dut._slots + 2)
        await script(Direct(ctx, dut, **settings))

    simulate(dut, bench)


def test_a_late_step_is_completed_once_and_later_answers_are_counted():
    dut = made(CompletionWriter, 4)

    async def script(on):
        on.now = 0xFFFFFFC0
        await on.open(7, 3)
        await on.open(8, 1)
        await on.open(9, 2)
        await on.say(dut.error, step=7, status=5)
        await on.say(dut.answered, step=8, count=1)
        await on.say(dut.answered, step=7, count=2)
        opened = on.now
        assert not on.ctx.get(dut.idle)
        await on.tick(130)
        assert [word[:2] for word in on.words] == [
            (8, 0), (7, Status.TIMEOUT), (9, Status.TIMEOUT)]
        assert all(at is not None for *_, at in on.words) and on.now - opened < 140
        await on.say(dut.answered, step=7, count=1)
        await on.say(dut.answered, step=9, count=2)
        await on.tick(120)
        assert len(on.words) == 3 and on.ctx.get(dut.idle)
        assert (on.counter("timeouts"), on.counter("stray_answers")) == (2, 2)

    direct(dut, script, timeout=100)


@pytest.mark.parametrize("timeout", [40, 100])
def test_a_step_is_late_in_time(timeout):
    dut = made(CompletionWriter, 4)

    async def script(on):
        await on.open(7, 3, 0)
        opened = on.now
        await on.tick(timeout + 30)
        [(_, status, at)] = on.words
        assert status == Status.TIMEOUT and timeout <= at - opened <= timeout + 4 + 20

    direct(dut, script, timeout=timeout)


def test_without_time_out_it_waits_idle_and_time_may_jump():
    dut = made(CompletionWriter, 4)

    async def script(on):
        on.ctx.set(dut.flush, 1)
        await on.open(7, 1)
        assert on.ctx.get(dut.idle)
        on.now += 1 << 20
        await on.say(dut.answered, step=7, count=1)
        assert not on.ctx.get(dut.idle)
        await on.tick(20)
        assert on.ctx.get(dut.idle) and not on.words
        on.now += 1 << 20
        await on.tick(5)
        [(flush, _)] = on.flushes
        await on.say(dut.flushed, slot=flush["slot"], tag=flush["tag"])
        await on.tick(10)
        assert [word[:2] for word in on.words] == [(7, 0)]

    direct(dut, script)


def test_a_flush_without_answer_does_not_hold_up_the_ring():
    """A step that is late before its end needs no answer, and the next step in its slot is in
    time."""
    dut = made(CompletionWriter, 2)

    async def script(on):
        on.ctx.set(dut.flush, 1)
        await on.open(1, 1)
        await on.open(2, 1)
        await on.say(dut.answered, step=1, count=1)
        await on.tick(1)
        await on.say(dut.answered, step=2, count=1)
        await on.tick(300)
        assert [word[:2] for word in on.words] == [(1, Status.TIMEOUT), (2, Status.TIMEOUT)]
        flush, _ = on.flushes[0]
        await on.say(dut.flushed, slot=flush["slot"], tag=flush["tag"])
        await on.tick(5)
        assert on.counter("bad_flushed") == 1 and len(on.words) == 2
        await on.say(dut.freed, index=2)
        await on.open(3, 1)
        await on.tick(150)
        assert on.words[2:][0][:2] == (3, Status.TIMEOUT) and on.counter("flushes") == 2
        on.ctx.set(dut.flush, 0)
        await on.open(4, 1)
        await on.say(dut.answered, step=4, count=1)
        await on.tick(20)
        assert on.words[3:][0][:2] == (4, 0)

    direct(dut, script, timeout=100)


def test_an_answer_before_the_flush_has_left_is_none():
    dut = made(CompletionWriter, 2)

    async def script(on):
        on.ctx.set(dut.flush, 1)
        await on.open(1, 0)
        on.ctx.set(dut.headers.ready, 0)
        await on.tick(20)
        await on.say(dut.flushed, slot=0, tag=1)
        await on.tick(5)
        on.ctx.set(dut.headers.ready, 1)
        await on.tick(20)
        [(flush, _)] = on.flushes
        assert (flush["slot"], flush["tag"]) == (0, 1) and not on.words
        assert on.counter("bad_flushed") == 1
        for _ in range(2):
            await on.say(dut.flushed, slot=0, tag=1)
        await on.tick(10)
        assert len(on.words) == 1 and on.counter("bad_flushed") == 2

    direct(dut, script)


def test_steps_and_tags_are_compared_in_all_their_bits():
    """Send answers and errors of steps, and answers of flushes, that differ by one bit from open
    ones."""
    dut, step = made(CompletionWriter, 2), 0xFFFE

    async def script(on):
        on.ctx.set(dut.flush, 1)
        await on.open(step, 1)
        for other in a_bit_apart(step):
            await on.say(dut.answered, step=other, count=1)
            await on.say(dut.error, step=other, status=5)
        await on.tick(20)
        assert not on.flushes
        assert on.counter("stray_answers") == on.counter("stray_errors") == 16
        await on.say(dut.answered, step=step, count=1)
        await on.tick(20)
        [(flush, _)] = on.flushes
        for tag in a_bit_apart(flush["tag"]):
            await on.say(dut.flushed, slot=flush["slot"], tag=tag)
        await on.tick(20)
        assert not on.words and on.counter("bad_flushed") == 16
        await on.say(dut.flushed, slot=flush["slot"], tag=flush["tag"])
        await on.tick(20)
        assert [word[:2] for word in on.words] == [(step, 0)]

    direct(dut, script)


@pytest.mark.parametrize("first", [0, 0xFFFF])
def test_a_consumer_that_never_returns_a_slot(first):
    """The host's openings are rejected, and never wait, even if the errors are not taken; also
    where the numbers of openings wrap."""
    dut = made(after(first), 2)

    async def script(on):
        for step in range(4):
            await on.open(step, 0)
        assert on.refused == [(Status.CREDIT, 2), (Status.CREDIT, 3)] and len(on.words) == 2
        on.ctx.set(dut.refused.ready, 0)
        for step in range(20):
            await on.open(step, 1)
        on.ctx.set(dut.refused.ready, 1)
        await on.tick(20)
        lost = on.counter("refusals_lost")
        assert 0 < lost < 20 and len(on.refused) + lost == on.counter("refused") == 22
        await on.say(dut.freed, index=first + 1 & 0xFFFF)
        await on.open(9, 0)
        await on.tick(10)
        assert len(on.words) == 3 and on.ctx.get(dut.idle)

    direct(dut, script)


@pytest.mark.parametrize("flush", [0, 1])
def test_latency(flush):
    dut = made(CompletionWriter, 4)

    async def script(on):
        on.ctx.set(dut.flush, flush)
        await on.open(1, 1, 3)  # a cycle for the buffer before it
        start = on.now
        await on.say(dut.answered, step=1, count=1)
        await on.tick(20)
        if flush:
            [(flushed, at)] = on.flushes
            assert at - start == dut.LATENCY["last answer", "header of the flush"] + 1
            start = on.now
            await on.say(dut.flushed, slot=flushed["slot"], tag=flushed["tag"])
            await on.tick(10)
            wanted = dut.LATENCY["answer to the flush", "header of the word"]
        else:
            wanted = dut.LATENCY["last answer", "header of the word"]
        [(_, _, at)] = on.words
        assert at - start == wanted + 1

    direct(dut, script)


def test_arguments_are_checked():
    with pytest.raises(TypeError, match="slots must be an integer, not '4'"):
        CompletionWriter("4")
    for slots in (0, 1, 3, 256):
        with pytest.raises(ValueError, match="slots must be a power of two between 2 and 128"):
            StepTable(slots)

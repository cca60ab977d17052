"""A host that opens steps and a consumer of their words, valid and invalid, with a reference
count."""

import random
from collections import Counter, deque
from dataclasses import dataclass, field

from rtl.formats import CompletionRecord, FlushRecord, Opcode, Status
from tests.rtl.power_up import powered_up
from tests.support import counts_of, decoder, simulate

__all__ = ["BASE", "Host", "Opened", "run"]

BASE = 0x1234_5678_9ABC_D000
_APART = 8
"""Cycles between an opening and the events that depend on it."""


@dataclass
class Opened:
    """An open step: its opening number, answers that have not left, and first error."""

    number: int
    step: int
    left: int
    status: int = 0
    since: int = 0
    flushed: bool = False


@dataclass
class Host:
    """Stimulus of both sides in each cycle, and the expected results.

    first: number of the first opening.
    flush: whether words follow flushes.
    wrong: probability of an invalid input per cycle.
    """

    slots: int
    steps: int
    seed: int = 0
    flush: bool = False
    wrong: float = 0.0
    stall: float = 0.0
    most: int = 12
    now: int = 0
    open: dict[int, Opened] = field(default_factory=dict)
    finished: deque = field(default_factory=deque)
    written: set = field(default_factory=set)
    words: list = field(default_factory=list)
    expected: Counter = field(default_factory=Counter)
    refusals: list = field(default_factory=list)
    got_refusals: list = field(default_factory=list)
    first: int = 0
    opened: int = 0
    freed: int = 0
    quiet: int = 0
    asked: tuple | None = None
    answer_at: int = 0

    def __post_init__(self) -> None:
        self.opened = self.freed = self.first
        self.rng = random.Random(self.seed)
        self.next_step = self.rng.getrandbits(16)

    @property
    def done(self) -> bool:
        end = self.first + self.steps
        return (self.opened == end and len(self.words) == self.steps
                and self.freed == end and self.refusals == self.got_refusals)

    def opening(self) -> dict | None:
        """Return a valid or invalid record to open a step, or None."""
        rng = self.rng
        if self.now < self.quiet or rng.random() < 0.5:
            return None
        full = self.opened - self.freed == self.slots
        record = {"samples": rng.choice((0, 1, rng.randrange(self.most))), "step": self.next_step}
        if rng.random() < 8 * self.wrong:
            kind = rng.choice(("long", "doubled", "full"))
            if kind == "long":
                record["samples"] = rng.choice(((1 << 24) + 1, (1 << 32) - 1, 1 << 25))
                return self.refused(record, Status.LENGTH)
            waiting = [o.step for o in self.open.values() if o.left]
            if kind == "doubled" and waiting:
                record["step"] = rng.choice(waiting)
                return self.refused(record, Status.STEP)
            if kind == "full" and full:
                return self.refused(record, Status.CREDIT)
        if full or self.opened == self.first + self.steps:
            return None
        step = Opened(self.opened, record["step"], record["samples"], since=self.now)
        self.open[step.step] = step
        if not step.left:
            self.finished.append(step)
        self.opened += 1
        self.next_step = (self.next_step + 1) & 0xFFFF
        self.quiet = self.now + _APART
        return record

    def refused(self, record: dict, status: Status) -> dict:
        self.refusals.append({"status": int(status), "step": record["step"]})
        self.expected["refused"] += 1
        self.quiet = self.now + _APART
        return record

    def answer(self) -> dict | None:
        """Return an event that some samples of a step are answered, or more samples than exist."""
        rng = self.rng
        if self.now & 1 or self.now < self.quiet or rng.random() < 0.4:
            return None
        if rng.random() < self.wrong:
            self.expected["stray_answers"] += 1
            return {"step": (self.next_step + 99) & 0xFFFF, "count": rng.randrange(1, 9)}
        steps = [o for o in self.open.values() if o.left]
        if not steps:
            return None
        step = rng.choice(steps)
        count = rng.randrange(1, step.left + 1)
        step.left -= count
        if not step.left:
            self.finished.append(step)
            if rng.random() < 4 * self.wrong:
                count += rng.randrange(1, 5)
                self.expected["excess_answers"] += 1
        return {"step": step.step, "count": count}

    def error(self) -> dict | None:
        """Return an error event of an unfinished step, or of no open step."""
        rng = self.rng
        if self.now < self.quiet or rng.random() < 0.8:
            return None
        if rng.random() < 2 * self.wrong:
            self.expected["stray_errors"] += 1
            return {"step": (self.next_step + 99) & 0xFFFF, "status": 3}
        steps = [o for o in self.open.values() if o.left]
        if not steps:
            return None
        step, status = rng.choice(steps), rng.randrange(1, 12)
        self.expected["errors"] += not step.status
        step.status = step.status or status
        return {"step": step.step, "status": status}

    def flushed(self) -> dict | None:
        """Return an answer to the requested flush, or to a flush that was not requested."""
        rng = self.rng
        if rng.random() < self.wrong:
            self.expected["bad_flushed"] += 1
            slot, tag = self.asked or (rng.randrange(self.slots), rng.getrandbits(16))
            return {"slot": slot ^ rng.getrandbits(3), "tag": (tag + rng.choice((-1, 1))) & 0xFFFF}
        if self.asked and self.now >= self.answer_at:
            (slot, tag), self.asked = self.asked, None
            self.finished[0].flushed = True
            return {"slot": slot, "tag": tag}
        return None

    def freeing(self) -> dict | None:
        """Return a count of slots: a valid count, in order, or a count that is too high."""
        rng, able = self.rng, self.freed
        if self.now < self.quiet or rng.random() < 0.8:
            return None
        while able in self.written:
            able += 1
        if rng.random() < self.wrong:
            self.expected["bad_freed"] += 1
            return {"index": (able + self.slots + rng.randrange(1, 1000)) & 0xFFFF}
        if rng.random() < self.wrong:
            return {"index": (self.freed - rng.randrange(1000)) & 0xFFFF}  # an old count: no effect
        self.freed = rng.randint(self.freed, able)
        self.quiet = self.now + _APART
        return {"index": self.freed & 0xFFFF}

    def packet(self, header: dict, data: int) -> None:
        """Check a packet: it must be of the first step that has finished."""
        step = self.finished[0]
        slot = step.number % self.slots
        assert header["address"] == BASE + 4 * slot and header["step"] == step.step
        assert header["count"] == 1 and not header["empty"] and header["credit"] == 0x5EED
        if header["opcode"] == Opcode.FLUSH:
            record = decoder(FlushRecord)(data)
            assert self.flush and self.asked is None and record["slot"] == slot
            assert not step.flushed
            self.expected["flushes"] += 1
            self.asked = slot, record["tag"]
            self.answer_at = self.now + self.rng.randrange(1, 40)
            return
        assert header["opcode"] == Opcode.COMPLETION and step.flushed == self.flush
        # Its slot was returned after its last word.
        assert step.number - self.slots < self.freed
        assert decoder(CompletionRecord)(data) == {
            "status": step.status, "step": step.step, "slot": slot, "reserved": 0,
            "lap": (step.number // self.slots + 1) & 0xFF}
        self.words.append(data & 0xFFFFFFFF)
        self.finished.popleft()
        self.open.pop(step.step)
        self.written.add(step.number)


def run(dut, host: Host, extra: int = 40) -> dict:
    """Run until ``host`` is done, and ``extra`` cycles longer; return the counters."""
    counters, offered = {}, [None]

    async def bench(ctx):
        rng, headers, beats = random.Random(host.seed + 1), deque(), deque()
        ctx.set(dut.base, BASE)
        ctx.set(dut.flush, host.flush)
        ctx.set(dut.credit, 0x5EED)
        await ctx.tick().repeat(host.slots + 2)
        after = 0
        while after < extra:
            host.now += 1
            if host.done:
                after, host.wrong = after + 1, 0.0
            ctx.set(dut.time, host.now)
            if offered[0] is None:
                offered[0] = host.opening()
                ctx.set(dut.opens.valid, offered[0] is not None)
                ctx.set(dut.opens.payload, offered[0] or {})
            for port, event in ((dut.answered, host.answer()), (dut.error, host.error()),
                                (dut.flushed, host.flushed()), (dut.freed, host.freeing())):
                ctx.set(port, {"valid": 1} | event if event else {})
            for port in (dut.headers, dut.payload, dut.refused):
                ctx.set(port.ready, rng.random() >= host.stall)
            ways = [(port.valid & port.ready, port.payload)
                    for port in (dut.headers, dut.payload, dut.refused)]
            sampled = await ctx.tick().sample(
                dut.opens.ready, *(signal for way in ways for signal in way))
            if sampled[2]:
                offered[0] = None
                ctx.set(dut.opens.valid, 0)
            for k, (port, queue) in enumerate(((dut.headers, headers), (dut.payload, beats),
                                               (dut.refused, host.got_refusals))):
                if sampled[3 + 2 * k]:
                    queue.append(decoder(port.payload.shape())(
                        sampled[4 + 2 * k].as_value().value))
            while headers and beats:
                beat = beats.popleft()
                assert beat["last"]
                host.packet(headers.popleft(), beat["data"])
        assert ctx.get(dut.idle) and not headers and not beats
        counters.update(counts_of(ctx, dut.counters))

    simulate(powered_up(dut), bench)
    return counters

"""Step counter against plain counts of announced and arrived partials."""

import random
from dataclasses import dataclass, field

import pytest

from host.wire.packets import parse_header
from host.wire.steps import StepNews, step_packet
from rtl.formats import Opcode, StepKind
from rtl.training import StepCounter
from tests.rtl.power_up import powered_up
from tests.support import counts_of, simulate

END, DONE, CREDIT, PASSED = StepKind


def record_beats(news, source, step):
    """Return the payload of the STEPS packet, as packed by a host."""
    head, *payload = step_packet(Opcode.STEPS, news, node=0, step=step, source=source)
    left, beats = parse_header(head).count, []
    for k, beat in enumerate(payload):
        beats.append({"data": int.from_bytes(beat.tobytes(), "little"), "records": min(8, left),
                      "source": source, "step": step, "last": int(k == len(payload) - 1)})
        left -= 8
    return beats


@dataclass
class Driver:
    """Events for the ports, one of each per cycle, and the output."""

    dut: StepCounter
    node: int
    nodes: int
    complete: list[tuple[int, int]] = field(default_factory=list)
    done: list[tuple[int, int]] = field(default_factory=list)
    cycle: int = 0

    async def start(self, ctx):
        ctx.set(self.dut.node, self.node)
        ctx.set(self.dut.nodes, self.nodes)
        ctx.set(self.dut.complete.ready, 1)
        assert not ctx.get(self.dut.open)
        await ctx.tick().until(self.dut.open)

    async def cycles(self, ctx, steps=None, end=None, arrived=None, own=None):
        """Send the events of one cycle: a beat; (step, count); (source, step); step."""
        dut = self.dut
        ctx.set(dut.steps.valid, steps is not None)
        if steps:
            ctx.set(dut.steps.payload, steps)
        assert ctx.get(dut.steps.ready) and ctx.get(dut.own_end.ready)
        ctx.set(dut.own_end.valid, end is not None)
        if end:
            ctx.set(dut.own_end.payload, dict(zip(("step", "count"), end)))
        ctx.set(dut.arrived, dict(zip(("valid", "source", "step"), (1, *arrived)))
                if arrived else {"valid": 0})
        ctx.set(dut.own_arrived, {"valid": 1, "source": self.node, "step": own}
                if own is not None else {"valid": 0})
        await ctx.tick()

    async def quiet(self, ctx, count=0):
        """Send no events until the block is idle, and some cycles more."""
        await self.cycles(ctx)
        while not ctx.get(self.dut.idle):
            await self.cycles(ctx)
        for _ in range(count):
            await self.cycles(ctx)
            assert ctx.get(self.dut.idle)

    async def watch(self, ctx):
        dut = self.dut
        async for _, _, valid, ready, step, done in ctx.tick().sample(
                dut.complete.valid, dut.complete.ready, dut.complete.payload, dut.done):
            self.cycle += 1
            if valid and ready:
                self.complete.append((step, self.cycle))
            if done.valid:
                self.done.append((done.source, done.step))

    def run(self, bench):
        async def whole(ctx):
            await self.start(ctx)
            await bench(ctx)
        simulate(powered_up(self.dut, 1), whole, background=[self.watch], limit=5_000)

    def check(self, ctx, **wanted: int):
        """Compare the counters in ``wanted``."""
        counters = counts_of(ctx, self.dut.counters)
        assert counters == counters | wanted


@pytest.mark.parametrize("most, nodes, node", [(1, 1, 0), (2, 2, 1), (8, 5, 2), (5, 5, 4)])
def test_a_step_is_complete_with_its_last_partial_and_end(most, nodes, node):
    """Ends and partials of all nodes in any order; what belongs to no open step changes nothing."""
    rng = random.Random(nodes)
    driver = Driver(StepCounter(most), node, nodes)
    wanted = dict.fromkeys(("steps", "ends", "arrived", "bad_steps", "bad_counts"), 0)
    others = [source for source in range(nodes) if source != node]
    done = []

    async def noise(ctx, step):
        """Send an event that must be ignored."""
        stray = (step + rng.choice([1, -1, 1 << 15])) & 0xFFFF
        source = rng.choice(others) if others else 0
        kind = rng.randrange(6)
        if kind == 0:
            await driver.cycles(ctx, arrived=(source, stray))
        elif kind == 1:
            await driver.cycles(ctx, own=stray)
        elif kind == 2:
            await driver.cycles(ctx, end=(stray, 0))
        elif kind == 3:
            await driver.cycles(ctx, steps=record_beats([StepNews(END, 0)], source, stray)[0])
        elif kind == 4:
            await driver.cycles(ctx, steps=record_beats([StepNews(PASSED, 0)], source, step)[0])
        else:
            await driver.cycles(ctx, steps=record_beats(
                [StepNews(CREDIT), StepNews(DONE, 9), StepNews(CREDIT)], source, stray)[0])
            done.append((source, stray))
        wanted["bad_steps"] += kind != 5

    async def bench(ctx):
        for step in range(6):
            counts = [rng.choice([0, rng.randrange(1, 12)]) for _ in range(nodes)]
            todo = [("end", source) for source in range(nodes)]
            todo += [("arrive", source) for source in range(nodes) for _ in range(counts[source])]
            rng.shuffle(todo)
            assert ctx.get(driver.dut.open_step) == step
            while todo:
                while rng.random() < 0.2:
                    await noise(ctx, step)
                assert len(driver.complete) == step and ctx.get(driver.dut.open)
                given = {}
                for what, source in (todo.pop() for _ in range(min(len(todo), 3))):
                    mine = source == node
                    port = (("end" if mine else "steps") if what == "end" else
                            ("own" if mine else "arrived"))
                    if port in given:
                        todo.append((what, source))
                        continue
                    given[port] = {
                        "end": (step, counts[source]), "own": step, "arrived": (source, step),
                        "steps": what == "end" and record_beats(
                            [StepNews(CREDIT)] * rng.randrange(3)
                            + [StepNews(END, counts[source])], source, step)[0]}[port]
                    wanted["ends" if what == "end" else "arrived"] += 1
                await driver.cycles(ctx, **given)
                if rng.random() < 0.3 and todo:
                    await driver.quiet(ctx, 2)
            wanted["steps"] += 1
            await driver.quiet(ctx, 2)
            assert [at for at, _ in driver.complete] == list(range(step + 1))
            assert ctx.get(driver.dut.open)
        driver.check(ctx, **wanted)

    driver.run(bench)
    assert driver.done == done


@pytest.mark.parametrize("last", ["arrived", "steps", "end", "own"])
@pytest.mark.parametrize("first, latency", [(3, 6), (0, 12)])
def test_latency_is_as_documented(last, first, latency):
    """The last event completes node ``first``, and those behind it are complete."""
    node = first if last in ("end", "own") else 1
    driver = Driver(StepCounter(4), node, 4)

    async def bench(ctx):
        events = {}
        for source in range(4):
            mine = source == node
            ending = record_beats([StepNews(END, 1)], source, 0)[0]
            given = {"end": (0, 1), "own": 0} if mine else {
                "steps": ending, "arrived": (source, 0)}
            for port, event in given.items():
                if source == first and port == last:
                    events[port] = event
                else:
                    await driver.cycles(ctx, **{port: event})
        await driver.quiet(ctx, 3)
        begun = driver.cycle
        await driver.cycles(ctx, **events)
        await driver.quiet(ctx, 1)
        (step, at), = driver.complete
        assert step == 0 and at - begun - 1 == latency + 2 * (last == "steps")

    driver.run(bench)


def test_partials_too_many_are_counted():
    """Also 256 more than were announced."""
    driver = Driver(StepCounter(2), 0, 2)

    async def bench(ctx):
        for _ in range(256):
            await driver.cycles(ctx, arrived=(1, 0))
        await driver.cycles(ctx, end=(0, 0), steps=record_beats([StepNews(END, 0)], 1, 0)[0])
        await driver.quiet(ctx, 2)
        assert [step for step, _ in driver.complete] == [0]
        driver.check(ctx, bad_counts=1)

    driver.run(bench)


def test_the_next_step_opens_at_once():
    """What comes when ``complete`` was taken counts, however many nodes there might be."""
    dut = StepCounter(64)
    driver = Driver(dut, 0, 2)

    async def bench(ctx):
        for step in range(3):
            await driver.cycles(ctx, arrived=(1, step), own=step, end=(step, 1),
                                steps=record_beats([StepNews(END, 1)], 1, step)[0])
            while len(driver.complete) <= step:
                await driver.cycles(ctx)
        await driver.quiet(ctx)
        driver.check(ctx, steps=3, ends=6, arrived=6, bad_steps=0, bad_counts=0)

    driver.run(bench)
    # A cycle to take it, one to open, then those of the latency.
    assert driver.complete[1][1] - driver.complete[0][1] <= 10


def test_partials_of_a_node_that_is_complete_do_not_count_for_the_next_step():
    dut = StepCounter(4)
    driver = Driver(dut, 0, 3)

    async def bench(ctx):
        await driver.cycles(ctx, end=(0, 0), steps=record_beats([StepNews(END, 1)], 1, 0)[0])
        await driver.cycles(ctx, arrived=(1, 0))
        await driver.quiet(ctx, 5)
        for _ in range(3):
            await driver.cycles(ctx, arrived=(1, 0))
        await driver.cycles(ctx, steps=record_beats([StepNews(END, 0)], 2, 0)[0])
        await driver.quiet(ctx, 5)
        assert len(driver.complete) == 1
        await driver.cycles(ctx, end=(1, 0), steps=record_beats([StepNews(END, 1)], 1, 1)[0])
        await driver.cycles(ctx, steps=record_beats([StepNews(END, 0)], 2, 1)[0])
        await driver.quiet(ctx, 5)
        assert len(driver.complete) == 1
        await driver.cycles(ctx, arrived=(1, 1))
        await driver.quiet(ctx, 5)
        assert len(driver.complete) == 2
        driver.check(ctx, bad_steps=3)

    driver.run(bench)


def test_what_is_on_its_way_is_waited_for():
    """``complete`` waits for ``busy`` and then holds; nothing more is taken meanwhile."""
    dut = StepCounter(2)
    driver = Driver(dut, 0, 2)

    async def bench(ctx):
        ctx.set(dut.busy, 1)
        ctx.set(dut.complete.ready, 0)
        await driver.cycles(ctx, end=(0, 0))
        assert ctx.get(dut.open)
        await driver.cycles(ctx, steps=record_beats([StepNews(END, 0)], 1, 0)[0])
        for _ in range(12):
            await driver.cycles(ctx)
        assert not ctx.get(dut.open) and not ctx.get(dut.idle)
        assert not ctx.get(dut.complete.valid)
        await driver.cycles(ctx, arrived=(1, 0), own=0)
        ctx.set(dut.busy, 0)
        await driver.cycles(ctx)
        for _ in range(4):
            assert ctx.get(dut.complete.valid) and ctx.get(dut.complete.payload) == 0
            await driver.cycles(ctx)
        # The next step is not open yet: too early.
        await driver.cycles(ctx, end=(1, 0))
        ctx.set(dut.complete.ready, 1)
        await driver.quiet(ctx, 3)
        assert ctx.get(dut.open) and ctx.get(dut.open_step) == 1
        driver.check(ctx, steps=1, ends=2, arrived=0, bad_steps=3, bad_counts=0)
        # Counts and ends of the previous step are cleared.
        await driver.cycles(ctx, arrived=(1, 1), end=(1, 1))
        await driver.cycles(ctx, steps=record_beats([StepNews(END, 2)], 1, 1)[0])
        await driver.quiet(ctx, 5)
        await driver.cycles(ctx, own=1)
        await driver.quiet(ctx, 5)
        assert len(driver.complete) == 1
        await driver.cycles(ctx, arrived=(1, 1))
        await driver.quiet(ctx, 5)
        assert [step for step, _ in driver.complete] == [0, 1]

    driver.run(bench)


def test_a_dishonest_node_does_not_hold_a_step_open():
    """More partials than announced, two ENDs, numbers beyond the nodes, records of all kinds."""
    dut = StepCounter(5)
    driver = Driver(dut, 0, 3)

    async def bench(ctx):
        for _ in range(4):
            await driver.cycles(ctx, arrived=(1, 0))
        # The first of two ENDs in a beat counts, as with two beats; the ninth is in another beat.
        first, second = record_beats(
            [StepNews(DONE), StepNews(END, 3), *[StepNews(END, 70)] * 7], 1, 0)
        await driver.cycles(ctx, steps=first)
        await driver.cycles(ctx, steps=second)
        await driver.cycles(ctx, steps=record_beats([StepNews(END, 9)], 7, 0)[0])
        await driver.cycles(ctx, arrived=(7, 0))
        # Bits behind the last record of a beat are noise.
        beat = record_beats([StepNews(CREDIT)] + [StepNews(END, 8)] * 7, 2, 0)[0]
        await driver.cycles(ctx, steps=beat | {"records": 1})
        await driver.cycles(ctx, end=(0, 0))
        await driver.cycles(ctx, end=(0, 5))
        await driver.quiet(ctx, 5)
        assert not driver.complete
        driver.check(ctx, steps=0, ends=2, arrived=4, bad_steps=5, bad_counts=1)
        await driver.cycles(ctx, steps=record_beats([StepNews(END, 0)], 2, 0)[0])
        await driver.quiet(ctx, 5)
        assert len(driver.complete) == 1 and driver.done == [(1, 0)]

    driver.run(bench)


@pytest.mark.parametrize("count", [(1 << 32) - 1, 1 << 31, (1 << 18) + 3])
def test_more_than_may_be_on_its_way_is_not_announced(count):
    """Half of 2^16 beats, of four partials each, may be; twice as many are noticed. Such an END is
    none, and the true one still counts."""
    driver = Driver(StepCounter(3), 0, 2)

    async def bench(ctx):
        for _ in range(3):
            await driver.cycles(ctx, arrived=(1, 0))
        await driver.quiet(ctx)
        await driver.cycles(ctx, steps=record_beats([StepNews(END, count)], 1, 0)[0])
        await driver.cycles(ctx, end=(0, 0))
        await driver.quiet(ctx, 5)
        assert not driver.complete
        driver.check(ctx, bad_steps=1)
        await driver.cycles(ctx, steps=record_beats([StepNews(END, 3)], 1, 0)[0])
        await driver.quiet(ctx, 5)
        assert len(driver.complete) == 1
        # The block waits for the largest allowed number.
        await driver.cycles(ctx, steps=record_beats([StepNews(END, (1 << 17) - 1)], 1, 1)[0])
        await driver.quiet(ctx, 5)
        driver.check(ctx, steps=1, ends=3, arrived=3, bad_steps=1, bad_counts=0)

    driver.run(bench)


@pytest.mark.parametrize("nodes, error", [(0, ValueError), (257, ValueError), (True, TypeError)])
def test_parameters_are_checked(nodes, error):
    with pytest.raises(error, match=f"nodes must be .*, not {nodes}"):
        StepCounter(nodes)

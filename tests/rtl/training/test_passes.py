"""Pass source: the input of a reduction, pass by pass, in order."""

import random

import pytest

from rtl.training import PassSource
from rtl.training.passes import PASS_COUNTERS
from tests.support import a_bit_apart, receiver, sender, simulate


def beat(step, rng):
    return {"key": {"row": rng.getrandbits(36), "table": rng.getrandbits(12)},
            "beat": rng.getrandbits(4), "step": step, "data": rng.getrandbits(512)}


class Reduction:
    """Takes beats and ends; each pass spills the number in ``spills``."""

    def __init__(self, dut, spills, *, stall, seed=0):
        self.dut, self.spills, self.stall = dut, list(spills), stall
        self.rng, self.taken, self.owed = random.Random(seed), [], []

    async def run(self, ctx):
        dut = self.dut
        while self.spills:
            for port in (dut.o, dut.flush):
                ctx.set(port.ready, self.rng.random() >= self.stall)
            _, _, *seen = await ctx.tick().sample(
                dut.o.valid, dut.o.ready, dut.o.payload,
                dut.flush.valid, dut.flush.ready, dut.flush.payload)
            valid, ready, payload, ends, end_ready, step = seen
            if valid and ready:
                self.taken.append({
                    "key": {"row": payload.key.row, "table": payload.key.table},
                    "beat": payload.beat, "step": payload.step, "data": payload.data})
            if ends and end_ready:
                self.taken.append(step)
                for port in (dut.o, dut.flush):
                    ctx.set(port.ready, 0)
                await ctx.tick().repeat(self.rng.randrange(1, 12))
                spilled = self.spills.pop(0)
                ctx.set(dut.passed, {
                    "valid": 1, "step": step, "spilled": spilled, "some": int(spilled > 0)})
                await ctx.tick()
                ctx.set(dut.passed, {
                    "valid": 0, "step": 0, "spilled": 0, "some": 0})
                if spilled:
                    self.owed.append((step, spilled))


def idle_moves_nothing(dut):
    given = [port.valid for port in (dut.fresh, dut.over, dut.returned, dut.lost, dut.passed)]
    shown = [dut.o.valid, dut.flush.valid, *(dut.counters[n] for n in PASS_COUNTERS.members)]

    async def watch(ctx):
        resting, before = False, None
        async for _, _, idle, *seen in ctx.tick().sample(dut.idle, *given, *shown):
            inputs, outputs = seen[:len(given)], seen[len(given):]
            assert not resting or outputs == before
            resting, before = idle and not any(inputs), outputs

    return watch


def test_what_is_lost_on_its_way_back_is_not_waited_for():
    """All of a pass, some of it, and none of another step, whose beats are dropped, too."""
    dut, rng = PassSource(), random.Random(1)
    beats = [beat(7, rng) for _ in range(2)]
    others = [beat(step, rng) for step in a_bit_apart(7)]
    reduction = Reduction(dut, [3, 2, 0], stall=0.0)

    async def lose(ctx, step):
        ctx.set(dut.lost, {"valid": 1, "level": 0, "step": step})
        await ctx.tick()
        ctx.set(dut.lost.valid, 0)

    async def host(ctx):
        await lose(ctx, 7)  # nobody waits
        await sender(dut.over, [7])(ctx)
        while len(reduction.owed) < 1:
            await ctx.tick()
        await sender(dut.returned, beats[:1])(ctx)
        await lose(ctx, 7)
        for step in a_bit_apart(7):
            await lose(ctx, step)
        await sender(dut.returned, others)(ctx)
        await ctx.tick().repeat(10)
        assert len(reduction.spills) == 2
        await sender(dut.returned, beats[1:])(ctx)
        while len(reduction.owed) < 2:
            await ctx.tick()
        await lose(ctx, 7)
        await lose(ctx, 7)
        while reduction.spills:
            await ctx.tick()
        await ctx.tick().repeat(20)
        assert ctx.get(dut.idle) and ctx.get(dut.counters.returned) == 2
        assert ctx.get(dut.counters.bad_returned) == len(others)

    simulate(dut, host, background=[reduction.run, idle_moves_nothing(dut)], limit=500)
    assert reduction.taken == [7, *beats, 7, 7]


@pytest.mark.parametrize("stall", [0.0, 0.6])
def test_what_follows_the_last_is_dropped(stall):
    """At once behind it, whether the last came back or was lost."""
    dut, rng = PassSource(), random.Random(1)
    spills = [2, 2, 1, 1]
    beats = [beat(7, rng) for _ in range(8)]
    reduction = Reduction(dut, [*spills, 0], stall=stall)

    async def lose(ctx):
        ctx.set(dut.lost, {"valid": 1, "level": 0, "step": 7})
        await ctx.tick()
        ctx.set(dut.lost.valid, 0)

    async def host(ctx):
        await sender(dut.returned, [beat(7, rng)])(ctx)
        await ctx.tick().repeat(5)
        await sender(dut.over, [7])(ctx)
        for number, last_is_lost in enumerate([False, True, False, True]):
            while len(reduction.owed) <= number:
                await ctx.tick()
            wanted = spills[number] - last_is_lost
            await sender(dut.returned, beats[2 * number:2 * number + wanted])(ctx)
            if last_is_lost:
                await ctx.tick().repeat(5)
                await lose(ctx)
            await sender(dut.returned, [beat(7, rng) for _ in range(3)])(ctx)
            await lose(ctx)
        while reduction.spills:
            await ctx.tick()
        await ctx.tick().repeat(20)
        assert ctx.get(dut.idle)
        assert ctx.get(dut.counters.returned) == 4 and ctx.get(dut.counters.bad_returned) == 13

    simulate(dut, host, background=[reduction.run, idle_moves_nothing(dut)], limit=1_000)
    assert reduction.taken == [7, *beats[:2], 7, beats[2], 7, beats[4], 7, 7]


def test_a_dropped_beat_waits_for_no_room():
    """An end comes behind strays while the reduction takes no beat."""
    dut, rng = PassSource(), random.Random(1)
    ends = []

    async def host(ctx):
        await sender(dut.over, [7])(ctx)
        await receiver(dut.flush, ends, 1)(ctx)
        ctx.set(dut.passed, {"valid": 1, "step": 7, "spilled": 1, "some": 1})
        await ctx.tick()
        ctx.set(dut.passed.valid, 0)
        await sender(dut.returned, [beat(8, rng) for _ in range(5)])(ctx)
        ctx.set(dut.lost, {"valid": 1, "level": 0, "step": 7})
        await ctx.tick()
        ctx.set(dut.lost.valid, 0)
        await receiver(dut.flush, ends, 2)(ctx)

    async def nothing(ctx):
        async for _, _, valid in ctx.tick().sample(dut.o.valid):
            assert not valid

    simulate(dut, host, background=[nothing], limit=100)
    assert ends == [7, 7]


@pytest.mark.parametrize("stall, seed", [(0.0, 0), (0.5, 1), (0.8, 2)])
def test_what_is_lost_between_beats_counts_once(stall, seed):
    """One after the other, in any order, however the beats before are taken."""
    dut, rng = PassSource(), random.Random(seed)
    spills = [1, 2, 3, 20, 30]
    reduction = Reduction(dut, [*spills, 0], stall=stall, seed=seed)
    expected = [7]

    async def host(ctx):
        await sender(dut.over, [7])(ctx)
        for number, count in enumerate(spills, 1):
            while len(reduction.owed) < number:
                await ctx.tick()
            for _ in range(count):
                if rng.random() < 0.5:
                    ctx.set(dut.lost, {"valid": 1, "level": 0, "step": 7})
                    await ctx.tick()
                    ctx.set(dut.lost.valid, 0)
                else:
                    expected.append(beat(7, rng))
                    await sender(dut.returned, expected[-1:])(ctx)
            expected.append(7)
        while reduction.spills:
            await ctx.tick()

    simulate(dut, host, background=[reduction.run], limit=2_000)
    assert reduction.taken == expected


@pytest.mark.parametrize("stalls", [(0.0, 0.0, 0.0), (0.5, 0.3, 0.4), (0.0, 0.8, 0.0)])
def test_passes_follow_until_none_spills(stalls):
    rng = random.Random(str(stalls))
    dut = PassSource()
    # Beats of each step, and the spilled beats of its passes; the last pass spills nothing.
    plan = [(12, [0]), (9, [5, 3, 0]), (0, [0]), (7, [7, 0]), (1, [1, 1, 1, 0])]
    steps = [0xFFFE + n & 0xFFFF for n in range(len(plan))]
    fresh = [[beat(step, rng) for _ in range(count)]
             for step, (count, _) in zip(steps, plan, strict=True)]
    reduction = Reduction(dut, [n for _, spills in plan for n in spills], stall=stalls[1])
    wanted, returned, strays = [], [], [0]

    async def feed(ctx):
        for step, beats in zip(steps, fresh, strict=True):
            await sender(dut.fresh, beats, stall=stalls[0], seed=step)(ctx)
            await sender(dut.over, [step])(ctx)

    async def give_back(ctx):
        """Model the host: return the spilled beats, and unrequested ones."""
        left = sum(1 for _, spills in plan for n in spills if n)
        while left:
            if not reduction.owed:
                await ctx.tick()
                continue
            step, count = reduction.owed.pop(0)
            beats = [beat(step, rng) for _ in range(count)]
            returned.append(beats)
            other = [beat(step + 1 & 0xFFFF, rng) for _ in range(2)]
            strays[0] += 2
            await sender(dut.returned, [*beats[:1], *other, *beats[1:]] if count > 1
                         else [*other, *beats], stall=stalls[2], seed=count)(ctx)
            if count > 2:
                # More than were spilled.
                await sender(dut.returned, [beat(step, rng) for _ in range(3)])(ctx)
                strays[0] += 3
            left -= 1

    async def finish(ctx):
        while reduction.spills:
            await ctx.tick()
        await ctx.tick().repeat(20)
        assert ctx.get(dut.idle)
        assert ctx.get(dut.counters.returned) == sum(len(beats) for beats in returned)
        assert ctx.get(dut.counters.bad_returned) == strays[0]

    simulate(dut, feed, reduction.run, give_back, finish, limit=5_000)
    again = iter(returned)
    for step, beats, (_, spills) in zip(steps, fresh, plan, strict=True):
        wanted += [*beats, step]
        for _ in spills[1:]:
            wanted += [*next(again), step]
    assert reduction.taken == wanted


def test_one_beat_a_cycle_both_ways():
    dut, rng = PassSource(), random.Random(1)
    reduction = Reduction(dut, [60, 0], stall=0.0)
    moved = []

    async def feed(ctx):
        await sender(dut.fresh, [beat(3, rng) for _ in range(60)])(ctx)
        await sender(dut.over, [3])(ctx)
        while not reduction.owed:
            await ctx.tick()
        await sender(dut.returned, [beat(3, rng) for _ in range(60)])(ctx)

    async def watch(ctx):
        async for _, _, valid, ready in ctx.tick().sample(dut.o.valid, dut.o.ready):
            moved.append(bool(valid and ready))

    simulate(dut, feed, reduction.run, background=[watch], limit=400)
    first, second = moved.index(True), len(moved) - 1 - moved[::-1].index(True)
    assert all(moved[first:first + 60]) and all(moved[second - 59:second + 1])

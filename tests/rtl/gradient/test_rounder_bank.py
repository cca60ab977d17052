"""RounderBank: two sides share the same units without affecting each other's results."""

import random
from collections import defaultdict

import pytest

from host.dlrm.exact import ExactSum
from rtl.gradient import RounderBank
from tests.rtl.float.exact_cases import beats_of
from tests.rtl.float.test_exact_round import SPECIAL_SUMS, around_ties
from tests.rtl.float.test_exact_terms import in_range, payloads
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, sender, simulate


def entries_of(count: int, lanes: int, seed: int) -> list[list[ExactSum]]:
    rng = random.Random(seed)
    sums = in_range(SPECIAL_SUMS) + in_range(around_ties(3))[::40] + [
        ExactSum(rng.getrandbits(bits) - (1 << bits - 1), other=True) for bits in range(60, 270, 7)]
    return [[rng.choice(sums) for _ in range(lanes)] for _ in range(count)]


@pytest.mark.few(2)
@pytest.mark.parametrize("lanes, units, rounded, stall", [
    (2, 1, False, 0.0), (2, 1, True, 0.4), (2, 2, False, 0.4), (4, 2, False, 0.2)])
def test_both_sides_get_their_own(lanes, units, rounded, stall):
    """Sums of both come in bursts, at the same time too; each side's leave as if it were alone."""
    entries = [entries_of(18, lanes, 1), entries_of(18, lanes, 2)]
    expected = [[beats_of(sums, side == 0 and not rounded) for sums in entries[side]]
                for side in range(2)]
    dut = made(RounderBank, 16, lanes=lanes, units=units)
    got: list[list[dict]] = [[], []]
    done = [False, False]

    def send(side):
        async def bench(ctx):
            ctx.set(dut.rounded, int(rounded))
            rng = random.Random(side)
            for item in payloads(entries[side]):
                while rng.random() < 0.1:
                    await ctx.tick().repeat(rng.randrange(1, 25))
                # An offered sum clears ``quiet`` for either turn.
                await sender(dut.sums[side], [item])(ctx)
                assert not ctx.get(dut.quiet[side])
            done[side] = True
        return bench

    def take(side):
        return receiver(dut.terms[side], got[side], sum(map(len, expected[side])), stall=stall,
                        seed=side)

    async def rest(ctx):
        async for *_, quiet, idle in ctx.tick().sample(dut.quiet, dut.idle):
            for side in range(2):
                if quiet >> side & 1 and done[side]:
                    assert len(got[side]) == sum(map(len, expected[side]))
            assert not idle or quiet == 3

    simulate(powered_up(dut), send(0), send(1), take(0), take(1), background=[rest], limit=4000)
    for side in range(2):
        beats = defaultdict(list)
        for item in got[side]:
            beats[item["meta"]].append(item["data"])
        assert [beats[number] for number in range(len(entries[side]))] == expected[side]
    assert [item["meta"] for item in got[1]] == list(range(len(entries[1])))


def test_a_sum_in_two_cycles_whoever_has_the_turn():
    """The turn changes only for the other side's sums, once nothing is under way."""
    entries = entries_of(20, 2, 3)
    dut = made(RounderBank, 16, lanes=2, units=1)
    cycles = []

    async def bench(ctx):
        ctx.set(dut.rounded, 1)
        for side in (0, 1, 1, 0):
            taken: list[dict] = []
            ctx.set(dut.terms[side].ready, 1)
            ctx.set(dut.sums[side].valid, 1)
            sent = waited = 0
            while len(taken) < len(entries):
                if sent < len(entries):
                    ctx.set(dut.sums[side].payload, payloads(entries)[sent])
                ctx.set(dut.sums[side].valid, int(sent < len(entries)))
                *_, ready, valid = await ctx.tick().sample(
                    dut.sums[side].ready, dut.terms[side].valid)
                sent += ready and sent < len(entries)
                if valid:
                    taken.append({})
                waited += 1
            cycles.append(waited)
            while not ctx.get(dut.idle):
                await ctx.tick()

    simulate(powered_up(dut), bench, limit=1000)
    first = cycles[0]
    assert first <= 2 * len(entries) + 11 and cycles == [first, first + 1, first, first + 1]


@pytest.mark.parametrize("units", [3, True])
def test_arguments(units):
    with pytest.raises(ValueError, match=r"units must be lanes \(4\) divided by 1, 2"):
        RounderBank(16, lanes=4, units=units)

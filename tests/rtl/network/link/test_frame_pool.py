"""Frame pool: chains of beats, taken, read and returned in any order."""

import random

import pytest

from rtl.network.link.frame_pool import FramePool
from tests.rtl.network.dirty import simulate
from tests.support import made

BEATS = 32


def run(seed: int, cycles: int, gap: float):
    """Take, read and return chains at random; each beat has one owner and its content."""
    dut, rng = made(FramePool, BEATS), random.Random(seed)
    free = set(range(BEATS))
    contents = {}
    chains, building, laps = [], [], [0]
    reading, expected = [], []

    async def bench(ctx):
        await ctx.tick()
        giving = None
        for _ in range(cycles):
            take = len(free) > FramePool.SPARE and rng.random() > gap
            data = rng.getrandbits(512)
            if take:
                beat = ctx.get(dut.beat)
                assert beat in free
                free.remove(beat)
                contents[beat] = data
                building.append(beat)
                laps[0] += 1
            ctx.set(dut.take, take)
            ctx.set(dut.data, data)
            if giving is None and chains and not reading and rng.random() > gap:
                giving = chains.pop(rng.randrange(len(chains)))
                ctx.set(dut.give.payload, {"first": giving[0], "last": giving[-1]})
            ctx.set(dut.give.valid, giving is not None)
            follow = bool(reading)
            if not reading and chains and rng.random() > gap:
                reading.extend(rng.choice(chains))
            read = bool(reading) and rng.random() > gap
            if read:
                ctx.set(dut.first, reading[0] if not follow else rng.randrange(BEATS))
                ctx.set(dut.follow, follow)
            ctx.set(dut.read, read)
            if reading and not follow and not read:
                reading.clear()
            _, _, given, seen = await ctx.tick().sample(dut.give.ready, dut.read_data)
            # The beat read two cycles ago.
            expected.insert(0, contents[reading.pop(0)] if read else None)
            if len(expected) > 2:
                due = expected.pop()
                assert due is None or seen == due
            if giving is not None and given:
                free.update(giving)
                giving = None
            if building and (len(building) == 6 or rng.random() < 0.3):
                later.append((3, building[:]))  # when it is written
                building.clear()
            for k, (wait, chain) in enumerate(later):
                later[k] = wait - 1, chain
            while later and later[0][0] < 0:
                chains.append(later.pop(0)[1])

    later = []
    simulate(dut, bench)
    return laps[0]


@pytest.mark.parametrize("seed,gap", [(1, 0.0), (2, 0.2), (3, 0.6)])
def test_every_beat_has_one_owner(seed, gap):
    assert run(seed, 1500, gap) > 4 * BEATS


def test_arguments_are_checked():
    with pytest.raises(TypeError, match="beats must be an integer, not '8'"):
        FramePool("8")
    with pytest.raises(ValueError, match="a power of two of at least 8, not 24"):
        FramePool(24)

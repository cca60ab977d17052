"""RAM: contents against a dict, collisions give the old word."""

import random

import pytest

from rtl.memory import Ram
from tests.rtl.power_up import powered_up
from tests.support import made, simulate


@pytest.mark.parametrize("latency", [0, 1])
@pytest.mark.parametrize(("width", "depth"), [(1, 1), (9, 5), (64, 16)])
def test_reads_what_was_written(latency, width, depth):
    dut = made(Ram, width, depth, latency=latency)
    rng = random.Random(width)

    async def bench(ctx):
        words: dict[int, int] = {}
        expected = None
        for _ in range(300):
            write, read = rng.random() < 0.6, rng.random() < 0.8
            where, word = rng.randrange(depth), rng.getrandbits(width)
            at = rng.choice([where, rng.randrange(depth)])
            ctx.set(dut.write_en, write)
            ctx.set(dut.write_addr, where)
            ctx.set(dut.write_data, word)
            ctx.set(dut.read_en, read)
            ctx.set(dut.read_addr, at)
            if latency == 0 and at in words:
                assert ctx.get(dut.read_data) == words[at]
            await ctx.tick()
            if latency == 1:
                expected = words.get(at) if read else expected
                if expected is not None:
                    assert ctx.get(dut.read_data) == expected
            if write:
                words[where] = word

    simulate(powered_up(dut), bench)


@pytest.mark.parametrize(("arguments", "said"), [
    ({"width": 0, "depth": 4}, "width must be a positive integer, not 0"),
    ({"width": 4, "depth": "8"}, "depth must be a positive integer, not '8'"),
    ({"width": 4, "depth": 8, "style": "tape"}, "style must be one of .*, not 'tape'"),
    ({"width": 4, "depth": 8, "latency": 2}, "latency must be 0 or 1, not 2"),
    ({"width": 4, "depth": 8, "latency": 0, "style": "uram"},
     "style must be lutram for latency 0, not 'uram'"),
])
def test_arguments(arguments, said):
    with pytest.raises(ValueError, match=said):
        Ram(**arguments)

"""ExactLane with a memory of Python integers: every sum is exact for any order of entries."""

import random

import pytest
from amaranth.hdl import Value

from host.dlrm.exact import sums_of_bits
from rtl.float.exact import EXACT, EXACT_BITS, EXACT_SEGMENTS, segment_slice
from rtl.float.exact_lane import (
    CONTROL_LATENCY,
    HELD_LATENCY,
    LANE_CONTROL,
    SUM_LATENCY,
    ExactLane,
)
from tests.rtl.float.cases import SPECIAL
from tests.support import made, simulate


@pytest.mark.parametrize("entries", [1, 2, 5])
def test_terms_one_a_cycle(entries):
    """A read sees what was written in an earlier cycle only; ``control`` names what came since."""
    rng, dut = random.Random(entries), made(ExactLane)
    pool = [*SPECIAL.tolist(), *(value | 1 << 31 for value in SPECIAL.tolist()),
            *(rng.getrandbits(32) for _ in range(100))]
    terms = [(rng.randrange(entries), rng.choice(pool)) for _ in range(200)]
    memory = [[rng.getrandbits(EXACT_BITS) for _ in range(entries)] for _ in range(EXACT_SEGMENTS)]

    def control(n: int) -> int:
        entry = terms[n][0]
        again = [n >= ago and terms[n - ago][0] == entry for ago in (1, 2)]
        return LANE_CONTROL.const({
            "clear": entry not in (before for before, _ in terms[:n]),
            "again1": again[0], "again2": again[1]}).as_bits()

    async def bench(ctx):
        for cycle in range(len(terms) + SUM_LATENCY + EXACT_SEGMENTS):
            ctx.set(dut.x, terms[cycle][1] if cycle < len(terms) else 0)
            n = cycle - CONTROL_LATENCY
            ctx.set(Value.cast(dut.control), control(n) if 0 <= n < len(terms) else 0)
            held, total = 0, ctx.get(Value.cast(dut.sum))
            for segment in range(EXACT_SEGMENTS):
                where = segment_slice(segment)
                mask = (1 << where.stop) - (1 << where.start)
                # A read is one cycle old; a write of this cycle is visible in the next one.
                n = cycle - HELD_LATENCY - segment
                if 0 <= n < len(terms):
                    held |= reads[segment] & mask
                n = cycle - HELD_LATENCY - segment + 1
                if 0 <= n < len(terms):
                    reads[segment] = memory[segment][terms[n][0]]
                n = cycle - SUM_LATENCY - segment
                if 0 <= n < len(terms):
                    memory[segment][terms[n][0]] = total & mask
            ctx.set(Value.cast(dut.held), held)
            await ctx.tick()

    reads = [0] * EXACT_SEGMENTS
    simulate(dut, bench)
    for entry in {entry for entry, _ in terms}:
        found = EXACT.from_bits(sum(words[entry] for words in memory))
        expected = sums_of_bits([bits for of, bits in terms if of == entry])
        value = found.value - (found.value >> EXACT["value"].width - 1 << EXACT["value"].width)
        assert value == expected.value
        assert [found.plus, found.minus, found.other] == [
            expected.plus, expected.minus, expected.other]

"""Short vectors that share a beat: placed vectors are read back, and all other bits are zero."""

import random

import pytest
from amaranth.hdl import Module, Mux, Signal

from rtl.config import BEAT_BITS
from rtl.stream.packing import QUARTER, placed, taken
from tests.support import simulate


@pytest.mark.parametrize("packing", [0, 1, 2])
def test_placed_is_taken(packing):
    m = Module()
    vector, index, mode = Signal(BEAT_BITS), Signal(4), Signal(2)
    beat, back = Signal(BEAT_BITS), Signal(BEAT_BITS)
    for k, (writes, data) in enumerate(placed(vector, index, mode)):
        part = beat.word_select(k, QUARTER)
        m.d.sync += part.eq(Mux(writes, data, part))
    m.d.comb += back.eq(taken(beat, index, mode))
    bits, rng = BEAT_BITS >> packing, random.Random(packing)

    async def bench(ctx):
        ctx.set(mode, packing)
        for _ in range(20):
            first = rng.randrange(16 >> packing) << packing
            vectors = [rng.getrandbits(bits) for _ in range(1 << packing)]
            for k, word in enumerate(vectors):
                ctx.set(index, first + k)
                ctx.set(vector, word)
                await ctx.tick()
                # Vectors that have not arrived are zero.
                assert ctx.get(beat) == sum(w << bits * j for j, w in enumerate(vectors[:k + 1]))
            for k, word in enumerate(vectors):
                ctx.set(index, k)
                assert packing == 0 or ctx.get(back) == word

    simulate(m, bench)

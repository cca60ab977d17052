"""Answer check against a plain list of the vectors that each node owes."""

import random

import pytest

from rtl.cache.answer_check import AnswerCheck
from rtl.cache.fills import FillWriter
from tests.rtl.power_up import powered_up
from tests.support import made, simulate

LANDED = FillWriter.LATENCY["last beat", "write"]


@pytest.mark.parametrize("ids", [4, 256])
def test_only_what_is_owed(ids):
    """Right vectors, those that come twice at once or much later, of a wrong node, of an earlier
    lap, of ids that are not asked, and of those that are in use again but not asked yet."""
    dut, rng = made(AnswerCheck, ids), random.Random(ids)
    bits = ids.bit_length() - 1
    owed: dict[int, int] = {}  # tag to node
    gone: list[tuple[int, int]] = []
    free = list(range(ids))
    seen = dict.fromkeys(("right", "again", "wrong node", "never"), 0)

    async def ask(ctx):
        number, node = free.pop(rng.randrange(min(3, len(free)))), rng.randrange(8)
        ctx.set(dut.asked, {"valid": 1, "id": number, "node": node})
        tag = ctx.get(dut.tag)
        assert tag & ids - 1 == number and tag not in owed
        await ctx.tick()
        ctx.set(dut.asked.valid, 0)
        await ctx.tick()
        owed[tag] = node

    async def offer(ctx, tag, node):
        ctx.set(dut.vector, {"tag": tag, "source": node})
        await ctx.tick()
        ctx.set(dut.vector, {"tag": rng.getrandbits(16), "source": rng.randrange(8)})
        return ctx.get(dut.owed)

    async def bench(ctx):
        await ctx.tick().until(dut.idle)
        for _ in range(2000):
            kind = rng.choice(("ask", "right", "right", "again", "wrong node", "never"))
            if kind == "ask" and free:
                await ask(ctx)
            elif kind == "right" and owed:
                tag = rng.choice(list(owed))
                node = owed.pop(tag)
                assert await offer(ctx, tag, node)
                await ctx.tick().repeat(LANDED - 1)
                ctx.set(dut.landed, 1)
                await ctx.tick()
                ctx.set(dut.landed, 0)
                await ctx.tick().repeat(2)
                free.append(tag & ids - 1)
                gone.append((tag, node))
            elif kind == "again" and gone:
                # The lap differs by the number of requests of the id since.
                tag, node = rng.choice(gone[-(1 << min(8, 15 - bits)):])
                if tag not in owed:
                    assert not await offer(ctx, tag, node)
            elif kind == "wrong node" and owed:
                tag = rng.choice(list(owed))
                assert not await offer(ctx, tag, (owed[tag] + rng.randrange(1, 256)) % 256)
            elif kind == "never":
                tag, node = rng.getrandbits(16), rng.randrange(8)
                assert await offer(ctx, tag, node) == (owed.get(tag) == node)
            else:
                continue
            seen[kind] = seen.get(kind, 0) + 1

    simulate(powered_up(dut, 3), bench, limit=60_000)
    assert min(seen.values()) > 50


def test_an_id_has_another_lap_each_time():
    dut = made(AnswerCheck, 1 << 12)
    laps = []

    async def bench(ctx):
        await ctx.tick().until(dut.idle)
        for _ in range(40):
            ctx.set(dut.asked, {"valid": 1, "id": 5, "node": 1})
            laps.append(ctx.get(dut.tag) >> 12)
            assert ctx.get(dut.tag) & 0xFFF == 5
            await ctx.tick()
            ctx.set(dut.asked.valid, 0)
            await ctx.tick()

    simulate(dut, bench, limit=10_000)
    assert laps == [(1 + k) % 16 for k in range(40)]


@pytest.mark.parametrize("count", [1, 3, 1 << 16, "8"])
def test_the_number_of_ids_is_checked(count):
    with pytest.raises(ValueError, match=f"in_flight must be a power of two, .*, not {count!r}"):
        AnswerCheck(count)

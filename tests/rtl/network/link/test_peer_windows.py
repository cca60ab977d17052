"""Peer windows: four numbers per peer, in order, past 2^24."""

import random

import pytest

from rtl.network.link.layouts import WINDOW
from rtl.network.link.peer_windows import PeerWindows
from tests.rtl.network.dirty import simulate
from tests.support import made

NODES, NUMBERS = 3, 1 << 24


@pytest.mark.thorough
@pytest.mark.parametrize("first", [0, NUMBERS - 900])
def test_numbers_follow_each_other(first):
    dut, rng = made(PeerWindows, NODES, first), random.Random(first)
    oldest, told, sent, following = ([0] * NODES for _ in range(4))

    def of(number: int) -> int:
        return (first + number) % NUMBERS

    async def bench(ctx):
        await ctx.tick().until(dut.idle)
        heard, bad = [], []
        for cycle in range(5000):
            node, to = rng.randrange(NODES), rng.choice([0, 0, 0, rng.randrange(NODES)])
            # For a while no packet is acknowledged, and the windows fill.
            quiet = cycle < 2500
            ctx.set(dut.new_node, to)
            ctx.set(dut.node, node)
            full = following[to] - oldest[to] == WINDOW
            number = not full and rng.random() < 0.95
            ctx.set(dut.number, number)
            keeps = sent[to] < following[to]
            ctx.set(dut.kept, {"valid": keeps, "node": to, "sequence": of(sent[to])})
            says = rng.randrange(NODES)
            what = rng.choice([
                told[says] - rng.randrange(50), sent[says], told[says], sent[says] + 1,
                sent[says] + rng.randrange(WINDOW), rng.randint(told[says], sent[says])])
            ctx.set(dut.acknowledged, {
                "valid": not quiet, "node": says, "acknowledge": of(what)})
            frees = oldest[node] < told[node] and not quiet
            upto = rng.randint(oldest[node], told[node])
            ctx.set(dut.freed, {"valid": frees, "node": node, "sequence": of(upto)})
            got = await ctx.tick().sample(
                dut.next, dut.full, dut.oldest, dut.told, dut.sent, dut.heard.valid,
                dut.heard.node, dut.bad)
            assert got[2:7] == (of(following[to]), full, of(oldest[node]), of(settled[node]),
                                of(sent[node]))
            following[to] += number
            sent[to] += keeps
            # Two cycles after the event, with the value of ``sent`` of the previous cycle.
            heard.append((told[says] < what <= sent[says] and not quiet, says))
            bad.append(what > sent[says] and not quiet)
            if len(heard) > 2:
                came, who = heard.pop(0)
                assert got[7] == came and (not came or got[8] == who)
                assert got[9] == bad.pop(0)
            settled[:] = told
            if heard[-1][0]:
                told[says] = what
            if frees:
                oldest[node] = upto

    settled = told[:]
    simulate(dut, bench)
    assert max(told) > 3 * WINDOW // 2 and min(told) > WINDOW // 8


def test_a_window_is_full_with_2048_packets():
    dut = made(PeerWindows, NODES, 0)

    async def bench(ctx):
        await ctx.tick().until(dut.idle)
        ctx.set(dut.new_node, 1)
        ctx.set(dut.number, 1)
        for number in range(2048):
            _, _, following, full = await ctx.tick().sample(dut.next, dut.full)
            assert (following, full) == (number, 0)
        ctx.set(dut.number, 0)
        _, _, full = await ctx.tick().sample(dut.full)
        assert full
        ctx.set(dut.new_node, 2)
        _, _, full = await ctx.tick().sample(dut.full)
        assert not full

    simulate(dut, bench)

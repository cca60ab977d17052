"""Pool room: a packet is admitted only with beats for it, and a peer always finds its own share."""

import random

import pytest

from rtl.network.link.frame_pool import FramePool
from rtl.network.link.pool_room import PoolRoom
from tests.rtl.network.dirty import simulate
from tests.support import made

NODES, MOST = 4, 6


@pytest.mark.parametrize("beats", [32, 64])
@pytest.mark.parametrize("frees", [0.02, 0.3])
def test_room(beats, frees):
    dut, rng = made(PoolRoom, NODES, beats, MOST), random.Random(beats)
    used, claims, packets = [0] * NODES, [], []
    refused = [0]

    async def bench(ctx):
        await ctx.tick().until(dut.idle)
        giving, asks, fits = None, None, False
        for cycle in range(2500):
            # A packet that asks is admitted one cycle later.
            claim = fits and asks is not None and len(claims) < 5
            if claim:
                claims.append(asks)
            ctx.set(dut.claim, claim)
            asks = None if claim or cycle % 200 > 150 else rng.randrange(NODES)
            ctx.set(dut.node, asks or 0)
            keeps = bool(claims) and rng.random() < 0.5 and not claim
            if keeps:
                node, size = claims.pop(0), rng.randint(1, MOST)
                packets.append((node, size))
                used[node] += size
            ctx.set(dut.kept, {"valid": keeps, "node": node if keeps else 0,
                               "beats": size if keeps else 0})
            if giving is None and packets and rng.random() < frees:
                giving = packets.pop(rng.randrange(len(packets)))
            ctx.set(dut.freed.valid, giving is not None)
            if giving:
                ctx.set(dut.freed.payload, {"node": giving[0], "beats": giving[1]})
            held = [*claims, asks]
            _, _, given, fits = await ctx.tick().sample(dut.freed.ready, dut.fits)
            if asks is None:
                fits = False
            if fits:
                # For any outcome of the claims, the pool holds them, and the share of every peer
                # besides.
                worst = [used[k] + MOST * held.count(k) for k in range(NODES)]
                assert sum(max(MOST, beats) for beats in worst) <= beats - FramePool.SPARE
                assert worst[asks] <= max(beats // 2, MOST)
            refused[0] += asks is not None and not fits
            if giving and given:
                used[giving[0]] -= giving[1]
                giving = None
            # With no update in flight, a peer without packets finds room.
            if not claims and ctx.get(dut.idle):
                for node in range(NODES):
                    if used[node] == 0 and giving is None and not claim:
                        ctx.set(dut.kept.valid, 0)
                        ctx.set(dut.node, node)
                        assert ctx.get(dut.fits)

    simulate(dut, bench)
    assert refused[0] > 50


def test_the_pool_holds_a_packet_of_every_peer():
    with pytest.raises(ValueError, match="beats must be at least 28 for packets of 6 beats to 4 "
                                         "nodes, not 16"):
        PoolRoom(4, 16, 6)

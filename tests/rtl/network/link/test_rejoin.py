"""Rejoin of a peer: the order of its steps, their duration, and the valid credits."""

import random

import pytest

from rtl.formats import Opcode
from rtl.network.link.fence import Fence
from rtl.network.link.peer_credits import PeerCredits
from rtl.network.link.peer_states import PeerStates
from rtl.network.link.rejoin import LinkRejoin
from tests.rtl.network.dirty import simulate
from tests.support import made

NODES = 4
CONDITIONS = ("closed", "empty", "passed", "settled", "cleared", "renewed")


def test_latency_and_order():
    """The peer is closed first; held while its state is wiped, and its consumed beats are cleared;
    then the sender opens, in the next cycle the credits begin anew, then the receiver opens."""
    dut, seen = made(LinkRejoin), []

    async def bench(ctx):
        ctx.set(dut.epoch, 0x35)
        ctx.set(dut.order, {"valid": 1, "node": 3, "epoch": 0xA6})
        for name in CONDITIONS:
            ctx.set(getattr(dut, name), 1)
        await ctx.tick()
        ctx.set(dut.order.valid, 0)
        words, cycles, opened = [], 0, -1
        while not ctx.get(dut.idle):
            for name in ("close", "mark", "wipe", "clear", "rejoined", "renew", "peer"):
                port = getattr(dut, name)
                if ctx.get(port.valid if hasattr(port, "valid") else port) and name not in seen:
                    seen.append(name)
            if ctx.get(dut.wipe.valid):
                assert ctx.get(dut.held.valid) and ctx.get(dut.held.node) == 3
                words.append(ctx.get(dut.wipe.word))
            if ctx.get(dut.rejoined.valid):
                assert cycles == LinkRejoin.LATENCY[
                    "order", "rejoined, if nothing is under way"] - 1
                assert ctx.get(dut.rejoined.change) == 0xA6 ^ 0x35
                ctx.set(dut.closed, 0)
                opened = cycles
            if ctx.get(dut.renew):
                assert cycles == opened + 1
            if ctx.get(dut.peer.valid):
                assert not ctx.get(dut.peer.closed) and ctx.get(dut.peer.node) == 3
                assert ctx.get(dut.peer.change) == 0xA6 ^ 0x35
            cycles += 1
            await ctx.tick()
        assert words == [word for word in range(32) for _ in range(2)]
        assert seen == ["close", "mark", "wipe", "clear", "rejoined", "renew", "peer"]

    simulate(dut, bench)


@pytest.mark.parametrize("name", [*CONDITIONS, "sender_busy", "receiver_busy"])
def test_it_waits(name):
    """For each of the conditions, before the peer is open on both sides."""
    dut = made(LinkRejoin)
    busy = name.endswith("busy")

    async def bench(ctx):
        for other in CONDITIONS:
            ctx.set(getattr(dut, other), other != name)
        ctx.set(getattr(dut, name), int(busy))
        ctx.set(dut.order, {"valid": 1, "node": 1, "epoch": 1})
        await ctx.tick()
        ctx.set(dut.order.valid, 0)
        for _ in range(300):
            assert not ctx.get(dut.peer.valid) and ctx.get(dut.working)
            assert name == "renewed" or not ctx.get(dut.rejoined.valid)
            await ctx.tick()
        ctx.set(getattr(dut, name), int(not busy))
        await ctx.tick().until(dut.peer.valid)

    async def taken(ctx):
        # The sender then no longer counts it as failed.
        await ctx.tick().until(dut.rejoined.valid)
        ctx.set(dut.closed, 0)
        await ctx.tick().repeat(10_000)

    simulate(dut, bench, background=[taken], limit=2_000)


def test_a_peer_that_fails_again_stays_closed():
    dut = made(LinkRejoin)

    async def bench(ctx):
        for name in CONDITIONS:
            ctx.set(getattr(dut, name), name != "renewed")
        ctx.set(dut.order, {"valid": 1, "node": 2, "epoch": 9})
        await ctx.tick()
        ctx.set(dut.order.valid, 0)
        await ctx.tick().until(dut.rejoined.valid)
        ctx.set(dut.closed, 0)
        await ctx.tick().until(dut.renew)
        ctx.set(dut.failed, {"valid": 1, "node": 2})
        await ctx.tick()
        assert ctx.get(dut.peer.valid) and ctx.get(dut.peer.closed)
        ctx.set(dut.failed.valid, 0)
        ctx.set(dut.closed, 1)
        ctx.set(dut.renewed, 1)
        await ctx.tick()
        while not ctx.get(dut.idle):
            assert not ctx.get(dut.peer.valid)
            await ctx.tick()

    simulate(dut, bench)


def test_a_fence_passes_when_what_was_inside_has_left():
    dut, rng = made(Fence, 9), random.Random(1)

    async def bench(ctx):
        inside = marked = taken = 0
        for _ in range(3_000):
            put, take = inside < 9 and rng.random() < 0.5, inside > 0 and rng.random() < 0.5
            mark = rng.random() < 0.05
            for port, value in ((dut.put, put), (dut.take, take), (dut.mark, mark)):
                ctx.set(port, int(value))
            assert ctx.get(dut.passed) == (marked == 0)
            # Events of the previous cycle are counted in this one.
            marked, taken = inside if mark else max(0, marked - taken), take
            inside += put - take
            await ctx.tick()

    simulate(dut, bench)


def test_peers_are_given_up_once_and_taken_back():
    """By a packet that is spent or by order, at any time; and the epoch of each."""
    dut, rng = made(PeerStates, NODES), random.Random(2)
    lost, changes = [False] * NODES, [0] * NODES

    async def bench(ctx):
        await ctx.tick().repeat(NODES + 1)
        for _ in range(2_000):
            spent, close, back = (rng.randrange(NODES) for _ in range(3))
            events = [rng.random() < 0.2 for _ in range(3)]
            events[2] &= lost[back] and not (events[0] and spent == back)
            events[1] &= close != back
            change, node = rng.randrange(256), rng.randrange(NODES)
            ctx.set(dut.spent, {"valid": events[0], "node": spent, "step": 7})
            ctx.set(dut.close, {"valid": events[1], "node": close})
            ctx.set(dut.rejoined, {"valid": events[2], "node": back, "change": change})
            ctx.set(dut.step, 9)
            ctx.set(dut.node, node)
            fails = ((spent, 7) if events[0] and not lost[spent] else
                     (close, 9) if events[1] and not events[0] and not lost[close] else None)
            assert ctx.get(dut.change) == changes[node]
            assert ctx.get(dut.closed) == lost[close]
            assert ctx.get(dut.failed.valid) == (fails is not None)
            if fails is not None:
                assert (ctx.get(dut.failed.node), ctx.get(dut.failed.step)) == fails
                lost[fails[0]] = True
            if events[2]:
                lost[back], changes[back] = False, change
            await ctx.tick()
            assert ctx.get(dut.lost) == sum(bit << k for k, bit in enumerate(lost))

    simulate(dut, bench)


def test_credits_of_a_new_peer_count_from_zero():
    """Those of all others go on; what had not reached the link counts as sent to the new one."""
    dut, rng = made(PeerCredits, NODES), random.Random(3)
    sent, base, owed = [0] * NODES, [0] * NODES, [0] * NODES

    async def leave(ctx, node: int, opcode: Opcode, count: int):
        ctx.set(dut.leaving, {"valid": 1, "node": node, "opcode": opcode, "count": count})
        await ctx.tick()
        ctx.set(dut.leaving.valid, 0)

    async def bench(ctx):
        await ctx.tick().until(dut.idle)
        for round_ in range(150):
            held, later = rng.randrange(NODES), 0
            ctx.set(dut.held, held)
            for _ in range(rng.randrange(12)):
                node, count = rng.randrange(NODES), rng.randrange(1, 177)
                opcode = rng.choice([Opcode.LOOKUPS, Opcode.VECTORS, Opcode.STEPS])
                if opcode == Opcode.VECTORS:
                    count = min(owed[node], 32)
                    owed[node] -= count
                    if not count:
                        continue
                if opcode == Opcode.LOOKUPS:
                    sent[node] += -(-count // 8)
                await leave(ctx, node, opcode, count)
                node, asked = rng.randrange(NODES), rng.randrange(1, 9)
                refused = rng.random() < 0.3
                ctx.set(dut.asked, {"valid": 1, "node": node, "beats": asked})
                ctx.set(dut.refused, {"valid": refused, "node": node})
                owed[node] += asked - refused
                await ctx.tick()
                ctx.set(dut.asked.valid, 0)
                ctx.set(dut.refused.valid, 0)
            await ctx.tick().repeat(3)
            assert ctx.get(dut.settled) == (owed[held] == 0)
            other = (held + 1) % NODES
            value = rng.randrange(1 << 16)
            ctx.set(dut.returned, {"valid": 1, "node": other, "value": value})
            if round_ % 3 == 0:
                # The gate is updated in the first cycle without a header's credit. From the second
                # cycle on, beats that reach the link belong to the rejoined peer.
                ctx.set(dut.renew, 1)
                for _ in range(rng.randrange(1, 9)):
                    assert ctx.get(dut.credit.node) == other and not ctx.get(dut.renewed)
                    await ctx.tick()
                    ctx.set(dut.leaving, {"valid": 1, "node": held, "opcode": Opcode.LOOKUPS,
                                          "count": 8})
                    later += 1
                ctx.set(dut.leaving.valid, 0)
                ctx.set(dut.returned.valid, 0)
                assert ctx.get(dut.credit) == dut.credit.shape().const(
                    {"valid": 1, "node": held, "value": sent[held] % (1 << 16)})
                base[held] = sent[held]
                sent[held] += later - 1
                assert ctx.get(dut.renewed)
                await ctx.tick()
                ctx.set(dut.renew, 0)
                assert not ctx.get(dut.renewed)
                await ctx.tick()
                ctx.set(dut.returned.valid, 1)
            for node in range(NODES):
                value = rng.randrange(1 << 16)
                ctx.set(dut.returned, {"valid": 1, "node": node, "value": value})
                assert ctx.get(dut.credit) == dut.credit.shape().const(
                    {"valid": 1, "node": node, "value": (value + base[node]) % (1 << 16)})
            ctx.set(dut.returned.valid, 0)
            assert not ctx.get(dut.credit.valid)

    simulate(dut, bench, limit=60_000)


def test_bags_of_a_peer_are_settled_when_beats_and_answers_are_gone():
    """A beat that waits, or a bag without an answer, is not hidden by the other; bags that get no
    answer do not count. Lookups and their vectors count for nothing."""
    dut, rng = made(PeerCredits, NODES, bags=True), random.Random(5)
    beats, bags, sent = [0] * NODES, [0] * NODES, [0] * NODES
    seen = set()

    async def bench(ctx):
        await ctx.tick().until(dut.idle)
        for _ in range(1500):
            asked, gone, answered = (rng.randrange(NODES) for _ in range(3))
            comes, goes = rng.random() < 0.4, beats[gone] > 0 and rng.random() < 0.5
            # A bag passes with its last beat, or before.
            passes = beats[gone] > 0 and rng.random() < 0.4
            opcode, count = rng.choice([
                (Opcode.BAG_VECTORS, min(bags[answered], rng.randrange(1, 33))),
                (Opcode.BAG_VECTORS, bags[answered]),
                (Opcode.LOOKUPS, rng.randrange(1, 177)), (Opcode.VECTORS, rng.randrange(1, 33)),
                (Opcode.BAGS, rng.randrange(1, 177))])
            ctx.set(dut.asked, {"valid": comes, "node": asked, "beats": 1})
            ctx.set(dut.refused, {"valid": goes, "node": gone})
            ctx.set(dut.passed, {"valid": passes, "node": gone})
            ctx.set(dut.leaving, {"valid": count > 0, "node": answered, "opcode": opcode,
                                  "count": count})
            if opcode == Opcode.BAG_VECTORS:
                bags[answered] -= count
            elif opcode == Opcode.BAGS:
                sent[answered] += -(-count // 8)
            beats[asked] += comes
            beats[gone] -= goes
            bags[gone] += passes
            await ctx.tick()
            for event in (dut.asked, dut.refused, dut.passed, dut.leaving):
                ctx.set(event.valid, 0)
            held = rng.randrange(NODES)
            ctx.set(dut.held, held)
            await ctx.tick().repeat(3)
            assert ctx.get(dut.idle)
            assert ctx.get(dut.settled) == (beats[held] == bags[held] == 0)
            seen.add((beats[held] > 0, bags[held] > 0))
        # Only beats of bags count as sent.
        ctx.set(dut.renew, 1)
        await ctx.tick()
        assert ctx.get(dut.renewed)
        assert ctx.get(dut.credit.value) == sent[held] % (1 << 16)

    simulate(dut, bench)
    assert len(seen) == 4

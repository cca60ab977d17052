"""For both sides of the link, a peer whose state was wiped equals a peer without any history."""

import random

import pytest
from amaranth.hdl import Elaboratable, Module, Value

from rtl.config import preset
from rtl.formats import Opcode
from rtl.network.link.receiver import LinkReceiver
from rtl.network.link.sender import LinkSender
from tests.rtl.network.dirty import simulate

NODES, PEER, OTHER = 3, 1, 2
WRAP = (1 << 24) - 40
CONFIG = preset("tiny").with_fields(nodes=NODES, net_payload_beats=6)
FIRST, LEAST, MOST = 900, 200, 20_000


class Pair(Elaboratable):
    """Two blocks with equal inputs: one with a history, one without."""

    def __init__(self, used, fresh):
        self.used, self.fresh = used, fresh

    @property
    def both(self):
        return self.used, self.fresh

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.used, m.submodules.fresh = self.both
        return m


def shown(ctx, dut: LinkReceiver) -> list[int]:
    """Return the outputs of ``dut`` in this cycle."""
    return [ctx.get(valid) and ctx.get(Value.cast(value)) for valid, value in (
        (dut.acknowledged.valid, dut.acknowledged), (dut.links.valid, dut.links.payload),
        (dut.waits, dut.deadline))]


async def wipe(ctx, dut) -> None:
    """Wipe the peer's state in ``dut``, as a :class:`rtl.network.link.rejoin.LinkRejoin` does."""
    ctx.set(dut.held, {"valid": 1, "node": PEER})
    await ctx.tick().repeat(8)
    await ctx.tick().until(~dut.busy)
    for word in range(32):
        ctx.set(dut.wipe, {"valid": 1, "node": PEER, "word": word})
        await ctx.tick().repeat(2)
    ctx.set(dut.wipe.valid, 0)
    ctx.set(dut.held.valid, 0)
    await ctx.tick()


@pytest.mark.thorough
@pytest.mark.parametrize("past, first", [(50, WRAP), *(
    pytest.param(past, first, marks=pytest.mark.slow)
    for past, first in ((5, 0), (90, 0), (2_100, 0), (2_100, WRAP)))])
def test_receiver(past, first):
    """Of packets before, some are missing, and others came twice; some are told of by headers."""
    pair, rng = Pair(*(LinkReceiver(NODES, first_sequence=first) for _ in range(2))), (
        random.Random(past))
    time = 0

    def of(number: int) -> int:
        return (first + number) % (1 << 24)

    async def packet(ctx, duts, number: int, source: int = PEER):
        """Send a packet, and let a header leave now and then; return the outputs."""
        nonlocal time
        at, seen = {"source": source, "sequence": of(number)}, []
        told = rng.random() < 0.2
        for cycle in range(6):
            for dut in duts:
                ctx.set(dut.look, at)
                ctx.set(dut.packet, {"valid": cycle == 3, "number": at, "room": 1})
                ctx.set(dut.ack_node, source)
                ctx.set(dut.told, {"valid": told and cycle == 5, "node": source})
                ctx.set(dut.links.ready, 1)
                ctx.set(dut.time, time)
            seen.append([[ctx.get(dut.ack_value), *shown(ctx, dut)] + [
                ctx.get(port) for port in (dut.fresh, dut.duplicate, dut.outside) if cycle == 3]
                for dut in duts])
            time += 1
            await ctx.tick()
        return seen

    async def rest(ctx, cycles: int = 600):
        nonlocal time
        seen = []
        for _ in range(cycles):
            for dut in pair.both:
                ctx.set(dut.time, time)
            seen.append([[ctx.get(dut.idle), *shown(ctx, dut)] for dut in pair.both])
            time += 1
            await ctx.tick()
        return seen

    async def bench(ctx):
        for dut in pair.both:
            ctx.set(dut.ack_delay, 40)
            await ctx.tick().until(dut.ready)
        for number in range(past):
            if rng.random() < (0.9 if number > past - 200 else 1):
                await packet(ctx, [pair.used], number)
            if rng.random() < 0.1:
                await packet(ctx, [pair.used], rng.randrange(number + 1))
            if rng.random() < 0.1:
                await packet(ctx, [pair.used], number, OTHER)
        await rest(ctx)
        ctx.set(pair.used.ack_node, PEER)
        assert ctx.get(pair.used.ack_value) != of(0)
        await wipe(ctx, pair.used)
        for number in rng.sample(range(160), 160):
            if rng.random() < 0.9:
                for used, fresh in await packet(ctx, pair.both, number):
                    assert used == fresh
            if rng.random() < 0.1:
                for used, fresh in await packet(ctx, pair.both, rng.randrange(170)):
                    assert used == fresh
        assert all(used == fresh for used, fresh in await rest(ctx))

    simulate(pair, bench, limit=100_000)


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True], ids=["", "late"])
@pytest.mark.parametrize("first", [0, WRAP], ids=["", "wrap"])
def test_sender(first, late):
    """Its numbers, and when packets are sent again, are those of a sender that has just begun.

    The round trips before were short, or it was silent for long (``late``).
    """
    pair = Pair(*(LinkSender(CONFIG, first_sequence=first, beats=128) for _ in range(2)))
    rng = random.Random(first + late)
    state = {"time": 0}
    sent: dict[int, list[tuple[int, int]]] = {0: [], 1: []}

    async def run(ctx, cycles: int, which, packets=(), answers=None):
        """Run that many cycles.

        packets: cycles in which a packet begins.
        answers: cycles until the acknowledgement of each packet, or None.
        """
        due, todo = [[], []], [list(packets), list(packets)]
        for cycle in range(cycles):
            for k in which:
                dut = pair.both[k]
                ctx.set(dut.time, state["time"])
                offers = bool(todo[k]) and todo[k][0] <= cycle
                ctx.set(dut.headers.valid, int(offers))
                ctx.set(dut.headers.payload, {
                    "opcode": Opcode.LOOKUPS, "destination": PEER, "step": 3, "count": 8,
                    "empty": 1})
                ctx.set(dut.header_out.ready, 1)
                ctx.set(dut.payload_out.ready, 1)
                ready = due[k] and due[k][0][0] <= cycle
                ctx.set(dut.acknowledged, {
                    "valid": int(bool(ready)), "node": PEER,
                    "acknowledge": due[k].pop(0)[1] if ready else 0})
                if offers and ctx.get(dut.headers.ready):
                    todo[k].pop(0)
                if ctx.get(dut.header_out.valid):
                    number = ctx.get(dut.header_out.payload.sequence)
                    sent[k].append((state["time"], number))
                    if answers is not None and (wait := answers(number)) is not None:
                        due[k].append((cycle + wait, (number + 1) % (1 << 24)))
            state["time"] += 1
            await ctx.tick()

    async def bench(ctx):
        for dut in pair.both:
            for name, value in (("timeout_first", FIRST), ("timeout_least", LEAST),
                                ("timeout_most", MOST), ("tries", 9)):
                ctx.set(getattr(dut, name), value)
        await ctx.tick().repeat(300)
        used = pair.used
        await run(ctx, 1_000, [0], sorted(rng.sample(range(800), 40)), lambda number: 30)
        await run(ctx, 9_000 if late else 400, [0], [5, 10, 15], None)
        ctx.set(used.close, {"valid": 1, "node": PEER})
        await ctx.tick().until(used.closed)
        ctx.set(used.close.valid, 0)
        await ctx.tick().repeat(300)
        ctx.set(used.held.node, PEER)
        await ctx.tick().repeat(3)
        assert ctx.get(used.empty)
        await wipe(ctx, used)
        ctx.set(used.rejoined, {"valid": 1, "node": PEER, "change": 0x5A})
        await ctx.tick()
        ctx.set(used.rejoined.valid, 0)
        sent[0].clear()
        # Some round trips are measured, and the last packets are repeated.
        await run(ctx, 7_000, [0, 1], sorted(rng.sample(range(1_500), 50)),
                  lambda number: 700 if (number - first) % (1 << 24) < 40 else None)
        assert [number for _, number in sent[0]] == [number for _, number in sent[1]]
        assert len(sent[0]) >= 60
        # Nodes are scanned in turn, from any start.
        assert all(abs(one - other) < 30 for (one, _), (other, _) in zip(*sent.values()))
        assert ctx.get(used.deadline) == pytest.approx(ctx.get(pair.fresh.deadline), abs=30)

    simulate(pair, bench, limit=100_000)

"""Bag pool: words without gaps, and the reason and time of each close."""

from functools import reduce

import pytest

from rtl.bags.pool import BagPool
from tests.mutants import variant
from tests.rtl.network.test_packet_pool import WatchedPackets
from tests.support import made, simulate

WORDS = 48
"""Words of a buffer."""


class Watched(WatchedPackets):
    """Drives a pool with bags of up to ``limit`` words, and records its outputs, cycle by cycle."""

    def __init__(self, destinations: int, *, limit: int = WORDS, batch: int = 0xFFFF, timeout: int,
                 busy: float, steps: int, seed: int, most: int | None = None, cycles: int = 1200):
        self.batch, self.most = max(1, batch), most or limit
        dut = made(BagPool, destinations, destinations + 2, WORDS, most_bags=True)
        super().__init__(dut, destinations, limit, timeout, busy, steps, seed, cycles)

    def offer(self) -> dict:
        """Return the next segment: of the rest of a bag, or the head of another."""
        if not self.left:
            self.words = self.left = self.rng.choice(
                [2, 2, 3, self.rng.randrange(2, self.most + 1), self.rng.randrange(2, 9)])
            self.words = self.left = min(self.left, self.most)
            self.bag = {"destination": self.rng.randrange(self.destinations),
                        "step": self.rng.choice(self.steps), "words": self.words}
        size = min(self.left, self.rng.choice([8, 8, self.rng.randrange(1, 9)]))
        item = self.bag | {"head": int(self.left == self.words), "size": size,
                           "last": int(size == self.left)}
        self.left -= size
        return item

    async def drive(self, ctx):
        dut, out = self.dut, []
        self.left, offered, inside = 0, None, None
        for name in ("limit", "timeout", "batch"):
            ctx.set(getattr(dut, name), getattr(self, name))
        await ctx.tick().repeat(2)
        for cycle in range(self.cycles):
            if offered is None and self.rng.random() < self.busy:
                offered = self.offer()
            ctx.set(dut.valid, offered is not None)
            for name in ("destination", "step", "words", "head", "size", "last"):
                port = getattr(dut, name)
                ctx.set(port, offered[name] if offered else self.rng.getrandbits(len(port)))
            ctx.set(dut.time, cycle)
            back = bool(out) and self.rng.random() < 0.5
            ctx.set(dut.freed, {"valid": back, "buffer": out.pop(0) if back else 0})
            ctx.set(dut.closed.ready, self.rng.random() < 0.8)
            (_, _, take, vacant, ready, buffer, position, unit, full, expired, stepped, outgrown,
             starved, valid, goes, packet) = await ctx.tick().sample(
                dut.take, dut.vacant, dut.ready, dut.buffer, dut.position, dut.unit, dut.full,
                dut.expired, dut.stepped, dut.outgrown, dut.starved, dut.closed.valid,
                dut.closed.ready, dut.closed.payload)
            assert vacant == (inside is None or ready) and take <= vacant
            assert starved <= (inside is not None) and ready + stepped + starved <= 1
            if ready:
                self.place(cycle, inside, buffer, position, unit, full)
            elif stepped:
                self.close_before(cycle, inside, outgrown)
            if expired:
                self.packets.append({"why": "expired", "closed": cycle})
            if valid and goes:
                self.leave(packet)
                out.append(packet.buffer)
            if take:
                inside, offered = offered, None

    def place(self, cycle, item, buffer, position, unit, full):
        destination = item["destination"]
        if item["head"] and destination in self.open and position == 0:
            # A timeout closed the previous one; its packet has not left yet.
            self.expired[destination].append(self.open.pop(destination))
        assert item["head"] or destination in self.open
        state = self.open.setdefault(destination, {
            "destination": destination, "step": item["step"], "buffer": buffer, "units": 0,
            "positions": 0, "opened": cycle})
        assert (state["buffer"], state["positions"]) == (buffer, position)
        if item["head"]:
            assert unit == state["units"]
            assert state["step"] == item["step"]
            assert state["positions"] + item["words"] <= self.limit
        state["positions"] += item["size"]
        state["units"] += item["head"]
        assert full == (item["last"] and (state["positions"] > self.limit - 2
                                          or state["units"] >= self.batch))
        if full:
            self.packets.append(self.open.pop(destination) | {"why": "full", "closed": cycle})

    def close_before(self, cycle, item, outgrown):
        state = self.open.pop(item["destination"])
        assert item["head"] and outgrown == (state["step"] == item["step"])
        assert not outgrown or state["positions"] + item["words"] > self.limit
        why = "outgrown" if outgrown else "stepped"
        self.packets.append(state | {"why": why, "closed": cycle})


@pytest.mark.few(3)
@pytest.mark.parametrize("destinations, limit, batch, steps, most", [
    (1, 48, 0xFFFF, 1, None), (3, 24, 0xFFFF, 3, None), (4, 16, 2, 1, 5), (1, 8, 0xFFFF, 17, 3),
    (2, 48, 0, 1, 9), (1, 40, 3, 2, 4)])
def test_words_and_full_packets(destinations, limit, batch, steps, most):
    """No timeout comes: buffers close when they are full, or before a bag."""
    watched = Watched(destinations, limit=limit, batch=batch, timeout=0xFFFF, busy=0.9,
                      steps=steps, seed=limit, most=most)
    reasons = {packet["why"] for packet in watched.packets}
    assert reasons <= {"full", "stepped", "outgrown"} and len(watched.packets) > 30
    assert "full" in reasons and ("stepped" in reasons) == (steps > 1)
    assert "outgrown" in reasons or batch <= 3 or steps == 17


@pytest.mark.parametrize("destinations", [1, 3])
@pytest.mark.parametrize("timeout", [0, 7, 30])
def test_old_packets_close(destinations, timeout):
    """At their age, or when the turn of their destination comes, each in a power of two cycles; a
    bag is never cut."""
    watched = Watched(destinations, timeout=timeout, busy=0.1, steps=1, seed=timeout, most=8)
    period = 1 << (destinations - 1).bit_length()
    expired = [p for p in watched.packets if p["why"] == "expired" and "left" in p]
    assert len(expired) > 5
    late = [packet["closed"] - packet["opened"] - max(1, timeout) for packet in expired]
    # A bag in progress has at most 8 segments, of about 10 cycles each.
    assert min(late) >= 1 and min(late) <= 2 * period and max(late) <= 2 * period + 160


@pytest.mark.parametrize("gap, moving, at_age", [
    (5, False, True), (9, False, True), (23, False, False), (23, True, True)])
def test_packets_fill_while_the_source_moves(gap, moving, at_age):
    """Bags to two destinations follow each other ``gap`` cycles apart, and the source may
    move between them. A packet closes at its age, or when the source has not moved for the timeout.
    """
    timeout, bags, ages = 10, 60, 8
    pool = variant(BagPool, ("AGES, WAITS = 64, 4", f"AGES, WAITS = {ages}, 4"))
    dut, opened, last, late, counts = pool(2, 6, 512, pauses=True), {}, 0, [], []

    async def bench(ctx):
        nonlocal last
        for name, value in (("limit", 512), ("timeout", timeout), ("head", 1), ("last", 1),
                            ("size", 2), ("words", 2), ("closed.ready", 1)):
            ctx.set(reduce(getattr, name.split("."), dut), value)
        await ctx.tick().repeat(10)
        for cycle in range(bags * gap + 8 * timeout):
            number, phase = divmod(cycle, gap)
            ctx.set(dut.valid, phase == 0 and number < bags)
            ctx.set(dut.destination, number % 2)
            moves = moving and phase % 8 == 4 and number < bags
            ctx.set(dut.moving, moves)
            ctx.set(dut.time, cycle)
            _, _, ready, goes, packet = await ctx.tick().sample(
                dut.ready, dut.closed.valid, dut.closed.payload)
            if ready:
                opened.setdefault(number % 2, cycle)
            if ready or moves:
                last = cycle
            ctx.set(dut.freed, {"valid": goes, "buffer": packet.buffer})
            if goes:
                # The packet passes a queue.
                due = last + timeout, opened.pop(packet.destination) + ages * timeout
                late.append((cycle - min(due), due[0] < due[1], number >= bags))
                counts.append(packet.units)
        assert not opened and ctx.get(dut.idle) and sum(counts) == bags

    simulate(dut, bench)
    assert min(late)[0] >= 2 and max(late)[0] <= 7
    assert all(pause <= over if at_age else pause for _, pause, over in late)
    assert max(counts) == (1 + ages * timeout // (2 * gap) if at_age else 1)


@pytest.mark.parametrize("waits", [0, 1])
def test_packets_stay_longer_while_the_source_waits(waits):
    """For 4 times the timeout; the source ceases to wait while the second packet is open."""
    timeout, dut, closed = 6, made(BagPool, 1, 3, WORDS, pauses=True), []

    async def bench(ctx):
        for name in ("limit", "timeout", "head", "last", "size", "words"):
            ctx.set(getattr(dut, name), {"limit": WORDS, "timeout": timeout, "size": 2,
                                         "words": 2}.get(name, 1))
        ctx.set(dut.closed.ready, 1)
        await ctx.tick().repeat(10)
        for cycle in range(120):
            ctx.set(dut.valid, cycle in (0, 60))
            ctx.set(dut.waiting, waits and cycle < 60 + 12)
            ctx.set(dut.time, cycle)
            _, _, expired = await ctx.tick().sample(dut.expired)
            if expired:
                closed.append(cycle)

    simulate(dut, bench)
    # A segment enters, gets its position a cycle later, and its packet closes behind the check.
    assert closed == ([1 + 4 * timeout + 1, 60 + 12 + 1 + 1] if waits else [
        1 + timeout + 1, 60 + 1 + timeout + 1])


def test_a_bag_in_progress_is_not_cut():
    """The timeout comes between the segments of a bag: the packet closes behind the tail."""
    dut, closed = made(BagPool, 1, 3, WORDS, most_bags=True), []

    async def bench(ctx):
        ctx.set(dut.limit, WORDS)
        ctx.set(dut.batch, 9)
        ctx.set(dut.timeout, 4)
        ctx.set(dut.closed.ready, 1)
        time = 0
        for number in range(3):
            for _ in range(20):
                ctx.set(dut.time, time)
                time += 1
                assert not ctx.get(dut.closed.valid)
                await ctx.tick()
            for name, value in (("valid", 1), ("head", number == 0), ("last", number == 2),
                                ("size", 5), ("words", 15)):
                ctx.set(getattr(dut, name), value)
            assert ctx.get(dut.take)
            await ctx.tick()
            ctx.set(dut.valid, 0)
        for _ in range(8):
            ctx.set(dut.time, time)
            time += 1
            if ctx.get(dut.closed.valid):
                closed.append(ctx.get(dut.closed.payload.positions))
            await ctx.tick()
        assert ctx.get(dut.idle)

    simulate(dut, bench)
    assert closed == [15]

"""Packet pool: positions without gaps, and the reason and time of each close."""

import random

import pytest

from rtl.network.packet_pool import PacketPool
from tests.support import a_bit_apart, made, simulate

POSITIONS = 6


class WatchedPackets:
    """Drives ``dut``, a pool of packets, and compares the packets that leave.

    ``steps``: number of steps, up to 17; each differs from the first one in one bit.
    """

    def __init__(self, dut, destinations, limit, timeout, busy, steps, seed, cycles):
        self.rng, self.cycles, self.busy = random.Random(seed), cycles, busy
        self.steps = [0xFFFE, *a_bit_apart(0xFFFE)][:steps]
        self.destinations, self.limit, self.timeout = destinations, limit, timeout
        self.packets: list[dict] = []
        self.open: dict[int, dict] = {}
        self.expired: dict[int, list[dict]] = {k: [] for k in range(destinations)}
        self.dut = dut
        simulate(dut, self.drive)

    async def drive(self, ctx):
        """Offer items and record what leaves, for all cycles."""
        raise NotImplementedError

    def leave(self, packet):
        """Compare a packet with the first closed one."""
        first = next(p for p in self.packets if "left" not in p)
        if first["why"] == "expired":
            earlier = self.expired[packet.destination]
            first.update(earlier.pop(0) if earlier else self.open.pop(packet.destination))
        first["left"] = True
        for name in ("destination", "step", "buffer", "units", "positions"):
            assert packet[name] == first[name], name


class Watched(WatchedPackets):
    """Drives a pool with units of up to ``most`` items, and records its outputs, cycle by cycle."""

    def __init__(self, destinations: int, *, limit: int, timeout: int, busy: float, steps: int,
                 seed: int, most: int = 3, cycles: int = 900):
        self.most = most
        dut = made(PacketPool, destinations, destinations + 2, POSITIONS, match_step=True)
        super().__init__(dut, destinations, limit, timeout, busy, steps, seed, cycles)

    def offer(self):
        """Return the next item: the rest of a unit, or the first of another."""
        if not self.left:
            self.left = self.rng.randrange(self.most) + 1
            self.unit = (self.rng.randrange(self.destinations), self.rng.choice(self.steps))
        return *self.unit, int(self.left == 1)

    async def drive(self, ctx):
        dut, out = self.dut, []
        self.left, offered, inside = 0, None, None
        ctx.set(dut.limit, self.limit)
        ctx.set(dut.timeout, self.timeout)
        for cycle in range(self.cycles):
            if offered is None and self.rng.random() < self.busy:
                offered = self.offer()
            ctx.set(dut.valid, offered is not None)
            if offered is not None:
                for port, value in zip((dut.destination, dut.step, dut.last), offered):
                    ctx.set(port, value)
            ctx.set(dut.time, cycle)
            back = bool(out) and self.rng.random() < 0.5
            ctx.set(dut.freed, {"valid": back, "buffer": out.pop(0) if back else 0})
            ctx.set(dut.closed.ready, self.rng.random() < 0.8)
            (_, _, take, ready, buffer, position, unit, full, expired, stepped, valid, goes,
             packet) = await ctx.tick().sample(
                dut.take, dut.ready, dut.buffer, dut.position, dut.unit, dut.full, dut.expired,
                dut.stepped, dut.closed.valid, dut.closed.ready, dut.closed.payload)
            if ready:
                self.place(cycle, inside, buffer, position, unit, full)
            elif stepped:
                assert inside is not None
                state = self.open.pop(inside[0])
                assert state["step"] != inside[1]
                self.packets.append(state | {"why": "stepped", "closed": cycle})
            if expired:
                self.packets.append({"why": "expired", "closed": cycle})
            if valid and goes:
                self.leave(packet)
                out.append(packet.buffer)
            if take:
                inside, offered = offered, None
                if inside is not None:
                    self.left -= 1

    def place(self, cycle, item, buffer, position, unit, full):
        destination, step, last = item
        if destination in self.open and position == 0:
            # A timeout closed the previous one; its packet has not left yet.
            self.expired[destination].append(self.open.pop(destination))
        state = self.open.setdefault(destination, {
            "destination": destination, "step": step, "buffer": buffer, "units": 0, "positions": 0,
            "opened": cycle})
        assert (state["buffer"], state["positions"], state["units"]) == (buffer, position, unit)
        assert state["step"] == step
        state["positions"] += 1
        state["units"] += last
        assert full == (last and state["units"] >= max(1, self.limit))
        if full:
            self.packets.append(self.open.pop(destination) | {"why": "full", "closed": cycle})


@pytest.mark.parametrize("destinations, limit, steps", [
    (1, 2, 1), (3, 2, 1), (3, 1, 2), (4, 2, 3), (1, 2, 17)])
def test_places_and_full_packets(destinations, limit, steps):
    """No time-out comes: buffers close when they are full, or by another step."""
    watched = Watched(destinations, limit=limit, timeout=0xFFFF, busy=0.9, steps=steps, seed=limit)
    reasons = {packet["why"] for packet in watched.packets}
    assert reasons <= {"full", "stepped"} and "full" in reasons and len(watched.packets) > 50
    assert steps == 1 or limit == 1 or "stepped" in reasons


@pytest.mark.parametrize("destinations", [1, 3, 4])
@pytest.mark.parametrize("timeout", [0, 1, 7, 30])
def test_old_packets_close(destinations, timeout):
    """At their age, or when the turn of their destination comes, each in a power of two cycles."""
    watched = Watched(destinations, limit=6, timeout=timeout, busy=0.08, steps=1, seed=timeout,
                      most=1)
    period = 1 << (destinations - 1).bit_length()
    expired = [p for p in watched.packets if p["why"] == "expired" and "left" in p]
    assert len(expired) > 5
    late = [packet["closed"] - packet["opened"] - max(1, timeout) for packet in expired]
    # One cycle after the check; a missed turn comes again in the next round.
    assert min(late) == 1 and max(late) <= (2 * period if destinations > 1 else 1)

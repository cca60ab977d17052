"""Vector pool: packets of vectors of one size, each as full as it gets."""

import random

import pytest
from amaranth.hdl import Cat

from rtl.network.packet_pool import PacketPool
from rtl.network.vector_pool import VectorPool
from tests.support import made, simulate

POSITIONS, DESTINATIONS, BUFFERS = 8, 3, 5
OUTPUTS = "ready", "full", "starved", "expired", "stepped", "idle"


def watched(dut, inputs, sizes: list[int], busy: float, timeout: int = 40):
    """Return the outputs of ``dut`` in each of 900 cycles, and the packets; the vectors are of
    ``sizes`` beats. ``inputs`` returns the ports to set for a size; buffers are freed late."""
    rng, seen, packets, out = random.Random(timeout), [], [], []

    async def drive(ctx):
        beat, offered, vector = 0, None, (0, 1)
        ctx.set(dut.timeout, timeout)
        for cycle in range(900):
            if offered is None and rng.random() < busy:
                if beat == 0:
                    vector = rng.randrange(DESTINATIONS), rng.choice(sizes)
                offered = vector
            if offered is not None:
                ctx.set(dut.destination, offered[0])
                ctx.set(dut.last, beat == offered[1] - 1)
                for name, value in inputs(offered[1]).items():
                    ctx.set(getattr(dut, name), value)
            ctx.set(dut.valid, offered is not None)
            ctx.set(dut.time, cycle)
            ctx.set(dut.closed.ready, rng.random() < 0.7)
            back = bool(out) and rng.random() < 0.4
            ctx.set(dut.freed, {"valid": back, "buffer": out.pop(0) if back else 0})
            *_, ready, take, shown, place, valid, goes, packet = await ctx.tick().sample(
                dut.ready, dut.take, Cat(getattr(dut, name) for name in OUTPUTS),
                Cat(dut.buffer, dut.position, dut.unit), dut.closed.valid, dut.closed.ready,
                dut.closed.payload)
            seen.append((shown, place if ready else None, valid))
            if valid and goes:
                packets.append({name: packet[name] for name in packet.shape().members})
                out.append(packet.buffer)
            if take and offered is not None:
                beat = (beat + 1) % offered[1]
                offered = None

    simulate(dut, drive)
    return seen, packets


def pool() -> VectorPool:
    return made(VectorPool, DESTINATIONS, BUFFERS, POSITIONS)


@pytest.mark.parametrize("busy, timeout", [(0.9, 0xFFFF), (0.3, 40), (0.05, 3)])
def test_the_same_as_a_pool_of_steps(busy, timeout):
    """Sizes close packets as steps do, if a packet takes as many vectors of each size."""
    sizes = [1, 2]
    wanted, others = watched(
        made(PacketPool, DESTINATIONS, BUFFERS, POSITIONS, match_step=True),
        lambda size: {"step": size, "limit": 4}, sizes, busy, timeout)
    found, packets = watched(
        pool(), lambda size: {"label": size, "ahead": 3}, sizes, busy, timeout)
    assert found == wanted and len(packets) > 10
    for name in ("destination", "buffer", "units", "positions"):
        assert [packet[name] for packet in packets] == [packet[name] for packet in others]
    assert [packet["label"] for packet in packets] == [packet["step"] for packet in others]


@pytest.mark.parametrize("sizes", [[1], [3], [1, 4], [1, 2, 3, 8]])
def test_packets_are_as_full_as_they_get(sizes):
    seen, packets = watched(pool(), lambda size: {
        "label": size - 1, "ahead": POSITIONS // size - 1}, sizes, 0.95, 0xFFFF)
    full = [packet["units"] == POSITIONS // (packet["label"] + 1) for packet in packets]
    assert all(1 <= packet["units"] * (packet["label"] + 1) == packet["positions"] <= POSITIONS
               for packet in packets)
    assert len(packets) > 30 and any(full) and (len(sizes) > 1 or all(full))
    assert {packet["label"] + 1 for packet in packets} == set(sizes)
    counted = [sum(shown >> OUTPUTS.index(name) & 1 for shown, *_ in seen)
               for name in ("full", "stepped", "expired")]
    assert counted[2] == 0 and (counted[1] > 0) == (len(sizes) > 1)
    assert 0 <= sum(counted) - len(packets) <= BUFFERS and abs(counted[0] - sum(full)) <= BUFFERS

"""Pool of packets of one item: equal to a pool with one position, cycle by cycle."""

import random

import pytest
from amaranth.hdl import Cat

from rtl.network.packet_pool import PacketPool
from rtl.network.single_pool import SinglePool
from tests.support import simulate

OUTPUTS = "ready", "full", "starved", "expired", "stepped", "idle"


def watched(dut, buffers: int, busy: float):
    """Return the outputs of ``dut`` in each of 600 cycles; buffers are freed late."""
    rng, seen, out = random.Random(buffers), [], []

    async def drive(ctx):
        ctx.set(dut.limit, 1)
        ctx.set(dut.last, 1)
        for cycle in range(600):
            ctx.set(dut.valid, rng.random() < busy)
            ctx.set(dut.destination, rng.randrange(3))
            ctx.set(dut.step, rng.randrange(2))
            ctx.set(dut.time, cycle)
            ctx.set(dut.closed.ready, rng.random() < 0.7)
            back = bool(out) and rng.random() < 0.4
            ctx.set(dut.freed, {"valid": back, "buffer": out.pop(0) if back else 0})
            *_, ready, shown, buffer, position, unit, valid, take, packet = await ctx.tick().sample(
                dut.ready, Cat(getattr(dut, name) for name in OUTPUTS), dut.buffer, dut.position,
                dut.unit, dut.closed.valid, dut.closed.ready, dut.closed.payload)
            closed = None
            if valid and take:
                closed = {name: packet[name] for name in packet.shape().members}
                out.append(packet.buffer)
            seen.append((shown, (buffer, position, unit) if ready else None, valid, closed))

    simulate(dut, drive)
    return seen


@pytest.mark.parametrize("buffers, busy", [(4, 0.9), (7, 0.3)])
def test_the_same_as_a_pool_of_one_position(buffers, busy):
    wanted = watched(PacketPool(3, buffers, 1, match_step=True), buffers, busy)
    assert watched(SinglePool(3, buffers), buffers, busy) == wanted
    assert sum(closed is not None for *_, closed in wanted) > 100
    assert any(shown >> OUTPUTS.index("starved") & 1 for shown, *_ in wanted)

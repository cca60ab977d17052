"""Messages of the host to NICs that convert vectors: dense vectors of float32 among vectors of
16-bit values, which have other beats and another packing."""

import random
from dataclasses import replace

import pytest

from host.model import padded
from rtl.config import beats_of, packing_of
from rtl.formats import Opcode, Status
from tests.rtl.network.dirty import simulate
from tests.rtl.network.frames import DENSE_VECTORS, GPU_VECTORS, QUERIES, Frame, vector_payload
from tests.rtl.network.random_frames import (
    CONFIG,
    expected_records,
    expected_vectors,
    records_frame,
    seen_records,
    set_up,
)
from tests.rtl.network.reception import Reception
from tests.support import made, receiver, sender

NIC = CONFIG.with_fields(short_vectors=True, owner_bags=64)


def frame_of(rng, opcode, width):
    """Return a packet of vectors of ``width`` lanes or values, and its vectors."""
    most = min(32, max(1, 39 * 16 // width) - 2)
    beats = {"final_beat": beats_of(width) - 1} if opcode == Opcode.GPU_BAGS else {}
    vectors = [(rng.getrandbits(16), rng.randbytes(4 * width))
               for _ in range(rng.randrange(1, most + 1))]
    return Frame(opcode=opcode, count=len(vectors), step=rng.getrandbits(16), framing="host",
                 payload=vector_payload(vectors, rng), **beats), vectors


@pytest.mark.few(3)
@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("dimension", [4, 8, 16, 32, 48, 64])
def test_each_packet_has_the_size_of_its_vectors(dimension, stall):
    rng, width = random.Random(dimension), {
        DENSE_VECTORS: dimension, GPU_VECTORS: padded(dimension // 2),
        Opcode.GPU_BAGS: padded(dimension // 2)}
    names = {DENSE_VECTORS: "dense", GPU_VECTORS: "vectors", Opcode.GPU_BAGS: "bag_vectors"}
    frames, refused, out = [], [], {name: [] for name in ("records", *names.values())}
    for opcode in [*names, *rng.choices([*names, QUERIES], k=60)]:
        if opcode == QUERIES:
            frame, content = records_frame(rng, QUERIES, 40, framing="host", source=200)
            out["records"] += expected_records(frame, content)
        elif rng.random() < 0.8:
            frame, content = frame_of(rng, opcode, width[opcode])
            out[names[opcode]] += expected_vectors(frame, content)
        else:
            frame, _ = frame_of(rng, opcode, width[opcode])
            frame = replace(frame, payload=frame.payload + bytes(64))
            refused.append({"status": int(Status.LENGTH), "step": frame.step})
        frames.append(frame)
    dut, sent = made(Reception, NIC, "host", bags=True), []
    seen, found = {name: [] for name in out}, []

    async def feed(ctx):
        for name, of in (("vector", GPU_VECTORS), ("value", DENSE_VECTORS)):
            ctx.set(getattr(dut, f"{name}_beats"), beats_of(width[of]))
            ctx.set(getattr(dut, f"{name}_packing"), packing_of(width[of]))
        await set_up(dut, beats_of(width[GPU_VECTORS]), packing_of(width[GPU_VECTORS]))(ctx)
        await sender(dut.i, [beat for frame in frames for beat in frame.beats()])(ctx)
        sent.append(True)

    async def finish(ctx):
        await ctx.tick()
        while not sent or any(len(seen[n]) < len(out[n]) for n in out) or not ctx.get(dut.idle):
            await ctx.tick()

    simulate(dut, feed, finish, receiver(dut.refused, found, len(refused)),
             *(receiver(getattr(dut, name), seen[name], len(out[name]), stall=stall, seed=2 + k)
               for k, name in enumerate(out)), limit=6_000)
    seen["records"] = seen_records(seen["records"])
    assert (seen, found) == (out, refused)

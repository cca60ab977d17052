"""Packet parser: records, values and vectors of whole packets at the ports of their kinds."""

import random

import pytest

from rtl.config import beats_of, packing_of
from rtl.formats import Opcode
from rtl.network import PacketParser
from tests.rtl.network.bag_frames import BAG_PORTS, bag_frame
from tests.rtl.network.dirty import simulate
from tests.rtl.network.frames import (
    DENSE_VECTORS,
    GPU_VECTORS,
    LOOKUPS,
    QUERIES,
    VECTORS,
    Frame,
    vector_payload,
)
from tests.rtl.network.random_frames import (
    CONFIG,
    expected_records,
    expected_vectors,
    items_of,
    records_frame,
    seen_records,
    set_up,
    vectors_frame,
)
from tests.rtl.network.training_frames import CONFIG as SHORT
from tests.rtl.network.training_frames import PORTS, port_frame
from tests.support import made, receiver, sender


def run(dut, frames, out, *, beats=1, packing=0, gap=0.0, stall=0.0, background=()):
    """Send packets, compare the output with ``out``, by port; return the number of cycles."""
    items = [item for frame in frames for item in items_of(frame.beats())]
    seen, sent = {name: [] for name in out}, []

    async def feed(ctx):
        await set_up(dut, beats, packing)(ctx)
        await sender(dut.i, items, stall=gap)(ctx)
        sent.append(True)

    async def finish(ctx):
        await ctx.tick()
        while not sent or any(len(seen[n]) < len(out[n]) for n in out) or not ctx.get(dut.idle):
            await ctx.tick()

    cycles = simulate(
        dut, feed, finish,
        *(receiver(getattr(dut, name), seen[name], len(out[name]), stall=stall, seed=2 + k)
          for k, name in enumerate(out)), background=background)
    if "records" in out:
        seen["records"] = seen_records(seen["records"])
    assert seen == out
    return cycles


@pytest.mark.few(3)
@pytest.mark.parametrize("beats,packing,gap,stall", [
    (1, 0, 0.0, 0.0), (4, 0, 0.0, 0.3), (2, 0, 0.5, 0.2), (1, 1, 0.3, 0.3), (1, 2, 0.0, 0.2)])
def test_lookups_and_vectors(beats, packing, gap, stall):
    rng = random.Random(beats)
    frames, out = [], {"records": [], "vectors": []}
    for _ in range(50):
        if rng.random() < 0.5:
            frame, content = records_frame(rng, limit=6)
            out["records"] += expected_records(frame, content)
        else:
            frame, content = vectors_frame(rng, beats, packing=packing)
            out["vectors"] += expected_vectors(frame, content)
        frames.append(frame)
    run(made(PacketParser, CONFIG), frames, out, beats=beats, packing=packing, gap=gap,
        stall=stall)


@pytest.mark.few(1)
@pytest.mark.parametrize("gap,stall,packing", [(0.0, 0.0, 0), (0.3, 0.3, 0), (0.3, 0.2, 2)])
def test_messages_of_the_host(gap, stall, packing):
    rng = random.Random(int(gap * 10) + packing)
    frames, out = [], {"records": [], "vectors": [], "dense": []}
    for _ in range(40):
        if rng.random() < 0.5:
            frame, content = records_frame(rng, QUERIES, 40, framing="host", source=200)
            out["records"] += expected_records(frame, content)
        else:
            opcode, name = rng.choice([(GPU_VECTORS, "vectors"), (DENSE_VECTORS, "dense")])
            frame, content = vectors_frame(rng, 1, opcode, 40, framing="host", packing=packing)
            out[name] += expected_vectors(frame, content)
        frames.append(frame)
    run(made(PacketParser, CONFIG, "host"), frames, out, packing=packing, gap=gap, stall=stall)


@pytest.mark.few(2)
@pytest.mark.parametrize("framing, dimension, gap, stall", [
    ("ethernet", 4, 0.0, 0.2), ("ethernet", 64, 0.4, 0.0), ("host", 8, 0.2, 0.2),
    ("host", 32, 0.0, 0.4)])
def test_packets_of_training_between_others(framing, dimension, gap, stall):
    rng = random.Random(dimension)
    frames, out = [], {name: [] for name in ("records", "vectors", *PORTS[framing])}
    for name in [*out, *rng.choices([*out], k=20)]:
        frame, wanted = port_frame(rng, framing, name, dimension)
        frames.append(frame)
        out[name] += wanted
    dut = made(PacketParser, SHORT, "network" if framing == "ethernet" else framing, training=True)
    run(dut, frames, out, beats=beats_of(dimension), packing=packing_of(dimension), gap=gap,
        stall=stall)


@pytest.mark.parametrize("edge, framing", [("network", "ethernet"), ("host", "host")])
def test_without_training_it_has_no_ports_for_it(edge, framing):
    dut = made(PacketParser, SHORT, edge)
    assert not any(hasattr(dut, name) for name in (*PORTS[framing], "gradient_credit"))


BAGS = SHORT.with_fields(owner_bags=64)


@pytest.mark.few(2)
@pytest.mark.parametrize("framing, dimension, gap, stall, training", [
    ("ethernet", 64, 0.0, 0.2, False), ("host", 32, 0.3, 0.0, False),
    ("ethernet", 4, 0.4, 0.0, True), ("host", 8, 0.0, 0.4, True)])
def test_packets_of_bags_between_others(framing, dimension, gap, stall, training):
    """Words and vectors of bags leave at their own ports, whatever comes before."""
    rng = random.Random(dimension)
    frames, out = [], {name: [] for name in ("records", "vectors", *BAG_PORTS[framing],
                                             *(PORTS[framing] if training else ()))}
    if framing == "host":
        out["dense"] = []
    for name in [*out, *rng.choices([*out], k=24)]:
        if name == "dense":
            frame, content = vectors_frame(
                rng, beats_of(dimension), DENSE_VECTORS, 12, packing=packing_of(dimension),
                framing=framing)
            wanted = expected_vectors(frame, content)
        else:
            frame, wanted = bag_frame(rng, framing, name, dimension)
        frames.append(frame)
        out[name] += wanted
    dut = made(PacketParser, BAGS, "network" if framing == "ethernet" else framing,
               training=training, bags=True)
    run(dut, frames, out, beats=beats_of(dimension), packing=packing_of(dimension), gap=gap,
        stall=stall)


@pytest.mark.parametrize("edge, framing", [("network", "ethernet"), ("host", "host")])
def test_without_owner_pooling_it_has_no_ports_for_it(edge, framing):
    dut = made(PacketParser, BAGS, edge)
    assert not any(hasattr(dut, name) for name in (*BAG_PORTS[framing], "bag_credit"))


@pytest.mark.parametrize("edge, opcode", [("network", Opcode.BAG_VECTORS),
                                          ("host", Opcode.GPU_BAGS)])
def test_all_vectors_that_may_be_under_way_find_room(edge, opcode):
    """Vectors of keys and of bags at once, four a beat: each beat is taken when it is offered."""
    rng = random.Random(5)
    config = CONFIG.with_fields(remote_in_flight=64, misses_in_flight=32, dense_vectors=32,
                                owner_bags=128)
    frames, waited = [], []
    out = {name: [] for name in ("records", "vectors", "bag_vectors")}
    sources = {"source": 1} if edge == "network" else {}
    for name, kind, packets in (("vectors", VECTORS if edge == "network" else GPU_VECTORS, 2),
                                ("bag_vectors", opcode, 4)):
        for _ in range(packets):
            content = [(rng.getrandbits(16), rng.randbytes(16)) for _ in range(32)]
            frame = Frame(opcode=kind, source=1, count=32, payload=vector_payload(content, rng))
            frames.append(frame)
            out[name] += [beat | sources for beat in expected_vectors(frame, content)]
    frame, content = records_frame(rng, LOOKUPS if edge == "network" else QUERIES)
    frames.append(frame)
    out["records"] += expected_records(frame, content)

    async def watch(ctx):
        async for _, _, offered, ready in ctx.tick().sample(dut.i.valid, dut.i.ready):
            waited.extend([1] * (offered and not ready))

    dut = made(PacketParser, config, edge, bags=True)
    run(dut, frames, out, packing=2, background=[watch])
    assert not waited


def test_credits_of_bags():
    """Each header's credit leaves at one port, a cycle later."""
    rng = random.Random(3)
    dut = made(PacketParser, BAGS, training=True, bags=True)
    after = PacketParser.LATENCY["header's event", "its credit"]

    async def bench(ctx):
        past = []
        for _ in range(120):
            kind = rng.choice(["credit", "gradient_credit", "bag_credit"])
            event = {"valid": rng.getrandbits(1), "source": rng.getrandbits(8),
                     "credit": rng.getrandbits(16), "gradient": int(kind == "gradient_credit"),
                     "bag": int(kind == "bag_credit")}
            past.append((kind, event))
            ctx.set(dut.header, event)
            await ctx.tick()
            if len(past) < after:
                continue
            kind, event = past[-after]
            for name in ("credit", "gradient_credit", "bag_credit"):
                seen = ctx.get(getattr(dut, name))
                assert seen.valid == (event["valid"] and kind == name)
                if seen.valid:
                    assert (seen.node, seen.value) == (event["source"], event["credit"])

    simulate(dut, bench)


@pytest.mark.parametrize("kind", ["records", "vectors of 1", "vectors of 4", "partials"])
def test_a_beat_per_cycle(kind):
    """Header and tag beats included: no cycle is lost between packets."""
    rng, beats = random.Random(11), 4 if kind == "vectors of 4" else 1
    frames, out = [], []
    for _ in range(20):
        if kind == "partials":
            frame, wanted = port_frame(rng, "ethernet", kind, 16)
        elif kind == "records":
            frame, content = records_frame(rng)
            wanted = expected_records(frame, content)
        else:
            frame, content = vectors_frame(rng, beats)
            wanted = expected_vectors(frame, content)
        frames.append(frame)
        out += wanted
    dut = (made(PacketParser, SHORT, training=True) if kind == "partials" else
           made(PacketParser, CONFIG))
    cycles = run(dut, frames, {kind.split()[0]: out}, beats=beats)
    assert cycles <= sum(len(frame.beats()) for frame in frames) + 8


@pytest.mark.parametrize("edge, packing", [("network", 1), ("network", 2), ("host", 2)])
def test_beats_of_several_vectors_hold_up_nothing_behind_them(edge, packing):
    """All vectors that may be under way come at once, and records right behind them. Every beat is
    taken in the cycle in which it is offered, though the vectors leave one a cycle."""
    rng = random.Random(packing)
    config = CONFIG.with_fields(remote_in_flight=256, misses_in_flight=128, dense_vectors=128)
    kinds = {"network": {"vectors": (VECTORS, 8)},
             "host": {"dense": (DENSE_VECTORS, 4), "vectors": (GPU_VECTORS, 4)}}[edge]
    frames, out, waited, leaving = [], {name: [] for name in ("records", *kinds)}, [], []
    for name, (opcode, packets) in kinds.items():
        for _ in range(packets):
            content = [(rng.getrandbits(16), rng.randbytes(64 >> packing)) for _ in range(32)]
            frame = Frame(opcode=opcode, source=1, count=32, payload=vector_payload(content, rng))
            frames.append(frame)
            out[name] += expected_vectors(frame, content)
    for _ in range(12):
        frame, content = records_frame(rng, LOOKUPS if edge == "network" else QUERIES)
        frames.append(frame)
        out["records"] += expected_records(frame, content)
    dut = made(PacketParser, config, edge)

    async def watch(ctx):
        count = 0
        async for _, _, offered, ready, *vectors in ctx.tick().sample(
                dut.i.valid, dut.i.ready, *(getattr(dut, name).valid for name in kinds)):
            count += 1
            if offered and not ready:
                waited.append(count)
            if any(vectors):
                leaving.append(count)

    run(dut, frames, out, packing=packing, background=[watch])
    assert not waited
    assert leaving == list(range(leaving[0], leaving[0] + 256))


def test_credits():
    """Each header's credit a cycle later, at the port of its kind; packets do not matter."""
    rng, dut = random.Random(3), made(PacketParser, SHORT, training=True)
    after = PacketParser.LATENCY["header's event", "its credit"]

    async def bench(ctx):
        past = []
        for _ in range(100):
            event = {"valid": rng.getrandbits(1), "source": rng.getrandbits(8),
                     "credit": rng.getrandbits(16), "gradient": rng.getrandbits(1)}
            past.append(event)
            ctx.set(dut.header, event)
            await ctx.tick()
            if len(past) < after:
                continue
            event = past[-after]
            for gradient, port in enumerate((dut.credit, dut.gradient_credit)):
                seen = ctx.get(port)
                assert seen.valid == (event["valid"] and event["gradient"] == gradient)
                if seen.valid:
                    assert (seen.node, seen.value) == (event["source"], event["credit"])

    simulate(dut, bench)


def test_arguments_are_checked():
    with pytest.raises(TypeError, match="edge must be a string, not 3"):
        PacketParser(CONFIG, 3)
    with pytest.raises(ValueError, match="edge must be network or host, not 'ethernet'"):
        PacketParser(CONFIG, "ethernet")

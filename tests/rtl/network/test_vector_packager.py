"""Vector packager: its packets, byte for byte, and its rate."""

import random

import pytest

from rtl.config import NicConfig
from rtl.formats import Opcode
from rtl.network.vector_packager import VectorPackager
from tests.rtl.network.packing import credit_of, run_packager
from tests.support import made


def make_vectors(rng, nodes, count, beats, packing=0):
    return [(rng.randrange(nodes), rng.getrandbits(16), rng.getrandbits(16),
             [rng.getrandbits(512 >> packing) for _ in range(beats)]) for _ in range(count)]


def beats_of(vectors):
    return [{"data": d, "tag": {"landing": landing, "node": node, "step": step},
             "last": int(k == len(data) - 1)}
            for node, landing, step, data in vectors for k, d in enumerate(data)]


def unpack(header, beats, vector_beats, packing=0):
    """Return [(landing, data)] of a packet; unused tags and lanes must be zero."""
    count = header["count"]
    assert header["opcode"] == Opcode.VECTORS and header["empty"] == 0
    assert header["credit"] == credit_of(header["destination"])
    assert 1 <= count <= 32 and len(beats) == 1 - -count * vector_beats // (1 << packing)
    tags = [beats[0] >> 16 * k & 0xFFFF for k in range(32)]
    assert not any(tags[count:])
    if packing:
        bits, values = 512 >> packing, sum(b << 512 * k for k, b in enumerate(beats[1:]))
        assert not values >> bits * count
        return [(tags[k], [values >> bits * k & (1 << bits) - 1]) for k in range(count)]
    return [(tags[k], beats[1 + k * vector_beats:1 + (k + 1) * vector_beats])
            for k in range(count)]


@pytest.mark.few(4)
@pytest.mark.parametrize("nodes,dimension,vector_beats,packing,payload,gap,stall", [
    (1, 16, 1, 0, 22, 0.0, 0.0), (3, 64, 4, 0, 22, 0.0, 0.4), (8, 64, 1, 0, 60, 0.3, 0.0),
    (5, 64, 3, 0, 22, 0.3, 0.3), (16, 16, 1, 0, 2, 0.0, 0.5), (2, 256, 16, 0, 22, 0.2, 0.3),
    (3, 64, 1, 2, 22, 0.3, 0.4), (5, 16, 1, 1, 22, 0.0, 0.3), (7, 4, 1, 2, 2, 0.2, 0.0)])
def test_packets_without_time_outs(nodes, dimension, vector_beats, packing, payload, gap, stall):
    """Every packet is predicted: content, step of its first vector, order of leaving."""
    rng = random.Random(nodes)
    config = NicConfig(nodes=nodes, max_dimension=dimension, net_payload_beats=payload)
    limit = min(32, ((payload - 1) << packing) // vector_beats)
    vectors = make_vectors(rng, nodes, 200 // vector_beats, vector_beats, packing)
    packets, _, counters = run_packager(
        made(VectorPackager, config), beats_of(vectors),
        {"vector_beats": vector_beats, "vector_packing": packing, "timeout": 5000},
        gap=gap, stall=stall, hurry=True)
    expected, opened = [], {}
    for node, landing, step, data in vectors:
        opened.setdefault(node, (step, []))[1].append((landing, data))
        if len(opened[node][1]) == limit:
            expected.append((node, *opened.pop(node)))
    seen = [(h["destination"], h["step"], unpack(h, b, vector_beats, packing))
            for h, b in packets]
    assert seen[:len(expected)] == expected
    assert {n: (s, v) for n, s, v in seen[len(expected):]} == opened
    assert len(seen) == len(expected) + len(opened)
    assert counters["vectors"] == len(vectors)
    assert counters["beats"] == len(vectors) * vector_beats
    assert counters["packets"] == len(seen)
    assert (counters["full"], counters["timeouts"]) == (len(expected), len(opened))


@pytest.mark.few(2)
@pytest.mark.parametrize("nodes, most, payload, gap, stall", [
    (1, 4, 22, 0.0, 0.0), (3, 16, 22, 0.0, 0.4), (5, 16, 60, 0.3, 0.3), (4, 2, 3, 0.2, 0.0)])
def test_a_packet_has_vectors_of_one_size(nodes, most, payload, gap, stall):
    """Every packet is predicted. It closes before a vector of another size for its destination, or
    when it has no room for another vector of its size."""
    rng, size = random.Random(most), 1
    config = NicConfig(nodes=nodes, max_dimension=16 * most, net_payload_beats=payload)
    vectors, expected, opened, changes = [], [], {}, 0
    for _ in range(200):
        size = rng.randint(1, most) if rng.random() < 0.4 else size
        vectors += make_vectors(rng, nodes, 1, size)
        node, landing, step, data = vectors[-1]
        if node in opened and opened[node][0] != size:
            expected.append((node, *opened.pop(node)))
            changes += 1
        opened.setdefault(node, (size, step, []))[2].append((landing, data))
        if len(opened[node][2]) == min(32, (payload - 1) // size):
            expected.append((node, *opened.pop(node)))
    items = [beat | {"final_beat": len(data) - 1} for vector in vectors
             for data in [vector[3]] for beat in beats_of([vector])]
    packets, _, counters = run_packager(
        made(VectorPackager, config, sized=True), items, {"timeout": 5000}, gap=gap, stall=stall,
        hurry=True)
    seen = [(h["destination"], h["final_beat"] + 1, h["step"], unpack(h, b, h["final_beat"] + 1))
            for h, b in packets]
    assert seen[:len(expected)] == expected
    assert {n: rest for n, *rest in seen[len(expected):]} == {
        n: list(each) for n, each in opened.items()}
    assert counters == counters | {
        "vectors": 200, "beats": len(items), "packets": len(seen), "size_changes": changes,
        "full": len(expected) - changes, "timeouts": len(opened)}
    assert changes > 10


@pytest.mark.few(2)
@pytest.mark.parametrize("vector_beats,packing,timeout", [
    (1, 0, 0), (1, 0, 60), (4, 0, 30), (1, 2, 20)])
def test_time_outs(vector_beats, packing, timeout):
    """Packets close in time and never inside a vector; order per destination is kept."""
    rng = random.Random(timeout)
    config = NicConfig(nodes=6, max_dimension=64)
    vectors = make_vectors(rng, 6, 150, vector_beats, packing)
    now, accepted, left = [0], [], []

    async def watch(ctx):
        first = True
        async for _, _, valid, ready, last in ctx.tick().sample(
                dut.i.valid, dut.i.ready, dut.i.payload.last):
            if valid and ready:
                if first:
                    accepted.append(now[0])
                first = last

    dut = made(VectorPackager, config)
    packets, _, counters = run_packager(
        dut, beats_of(vectors),
        {"vector_beats": vector_beats, "vector_packing": packing, "timeout": timeout}, gap=0.8,
        background=[watch], now=now, on_header=lambda _: left.append(now[0]))
    queues = {n: [] for n in range(6)}
    for vector, at in zip(vectors, accepted):
        queues[vector[0]].append((*vector, at))
    for (header, beats), at in zip(packets, left):
        queue = queues[header["destination"]]
        sent, queue[:header["count"]] = queue[:header["count"]], []
        assert unpack(header, beats, vector_beats, packing) == [(v[1], v[3]) for v in sent]
        assert header["step"] == sent[0][2]
        # The pool waits for the end of a begun vector: at most 4 beats with gaps.
        assert at - sent[0][4] <= timeout + 8 + 24 + 40 * (vector_beats > 1)
    assert not any(queues.values())
    assert counters["timeouts"] > 20
    assert counters["full"] + counters["timeouts"] == len(packets)


@pytest.mark.thorough
@pytest.mark.parametrize("nodes,vector_beats", [
    (8, 4), *(pytest.param(nodes, 1, marks=pytest.mark.slow) for nodes in (1, 8, 16))])
def test_full_rate(nodes, vector_beats):
    """A beat a cycle leaves, tag beats included, with destinations mixed at random."""
    rng = random.Random(nodes)
    config = NicConfig(nodes=nodes, max_dimension=16 * vector_beats)
    vectors = make_vectors(rng, nodes, 1600 // vector_beats, vector_beats)
    packets, cycles, _ = run_packager(
        made(VectorPackager, config), beats_of(vectors),
        {"vector_beats": vector_beats, "timeout": 300})
    beats = sum(len(b) for _, b in packets)
    # After the last beat, add a timeout and the open packets of all destinations.
    assert cycles <= beats + 300 + 60
    assert 1600 / (cycles - 300 - 60) >= 0.9


@pytest.mark.thorough
@pytest.mark.few(1)
@pytest.mark.parametrize("nodes,packing", [(8, 1), (1, 2)])
def test_a_vector_a_cycle(nodes, packing):
    """Vectors that share beats come in one a cycle, which the beats that leave never hold up."""
    rng = random.Random(nodes)
    vectors = make_vectors(rng, nodes, 1200, 1, packing)
    packets, cycles, _ = run_packager(
        made(VectorPackager, NicConfig(nodes=nodes)), beats_of(vectors),
        {"vector_beats": 1, "vector_packing": packing, "timeout": 300})
    # After the last vector, add a timeout and the open packets of all destinations.
    last = 300 + 60 + 17 * nodes
    assert 1200 / (cycles - last) >= 0.95
    # One tag beat per packet of 32 vectors, and for each destination a packet that is not full.
    assert sum(len(beats) for _, beats in packets) <= (1200 >> packing) + 1200 / 32 + 2 * nodes


def test_buffers_are_checked():
    with pytest.raises(ValueError, match=r"buffers must be more than destinations \(16\), not 16"):
        VectorPackager(NicConfig(), buffers=16)

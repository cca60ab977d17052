"""Packets of several packagers through one multiplexer, under random stalls."""

import random

import pytest

from rtl.network.packet_mux import PacketMux
from rtl.network.vector_router import VectorRouter
from tests.support import made, receiver, sender, simulate

STALLS = [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.4, 0.4)]


def _info(port: int, number: int, length: int) -> dict:
    return {"opcode": port, "destination": 0, "step": number, "count": length, "credit": 0,
            "empty": int(length == 0)}


@pytest.mark.parametrize("stalls", STALLS)
def test_payloads_follow_their_headers(stalls):
    rng = random.Random(1)
    lengths = [[rng.randrange(0, 5) for _ in range(25)] for _ in range(3)]
    dut = made(PacketMux, 3)
    headers: list[dict] = []
    payload: list[dict] = []
    beats = sum(map(sum, lengths))
    producers = []
    for port, sizes in enumerate(lengths):
        producers.append(sender(dut.headers[port], [
            _info(port, number, size) for number, size in enumerate(sizes)],
            stall=stalls[0], seed=port))
        producers.append(sender(dut.payload[port], [
            {"data": port << 32 | number << 16 | beat, "last": int(beat == size - 1)}
            for number, size in enumerate(sizes) for beat in range(size)],
            stall=stalls[0], seed=10 + port))
    simulate(dut, *producers, receiver(dut.header_out, headers, 75, stall=stalls[1]),
             receiver(dut.payload_out, payload, beats, stall=stalls[1], seed=7))
    for port, sizes in enumerate(lengths):
        assert [h["count"] for h in headers if h["opcode"] == port] == sizes
    expected = [{"data": h["opcode"] << 32 | h["step"] << 16 | beat,
                 "last": int(beat == h["count"] - 1)}
                for h in headers for beat in range(h["count"])]
    assert payload == expected


def test_payload_flows_every_cycle():
    dut = made(PacketMux, 2)
    payload: list[dict] = []
    headers: list[dict] = []
    background = [sender(dut.headers[p], [_info(p, k, 8) for k in range(20)]) for p in range(2)]
    background += [sender(dut.payload[p], [
        {"data": 0, "last": int(b == 7)} for _ in range(20) for b in range(8)]) for p in range(2)]
    cycles = simulate(dut, receiver(dut.header_out, headers, 40),
                      receiver(dut.payload_out, payload, 320), background=background)
    assert cycles <= 320 / 0.95


def test_short_packets_of_all_ports_take_two_cycles_each():
    dut = made(PacketMux, 3)
    headers: list[dict] = []
    background = [sender(dut.headers[p], [_info(p, k, 1) for k in range(40)]) for p in range(3)]
    background += [sender(dut.payload[p], [{"data": 0, "last": 1}] * 40) for p in range(3)]
    payload: list[dict] = []
    cycles = simulate(dut, receiver(dut.header_out, headers, 60),
                      receiver(dut.payload_out, payload, 60), background=background)
    assert cycles <= 2 * 60 + 5
    assert [header["opcode"] for header in headers[:6]] in ([0, 1, 2, 0, 1, 2], [1, 2, 0, 1, 2, 0])


@pytest.mark.parametrize("stalls", STALLS)
def test_router_splits_by_node(stalls):
    rng = random.Random(2)
    beats = [{"data": k, "tag": {"landing": k, "node": rng.choice([2, 2, 1, 5]), "step": 0},
              "last": 1} for k in range(120)]
    dut = made(VectorRouter)
    own = [beat for beat in beats if beat["tag"]["node"] == 2]
    others = [beat for beat in beats if beat["tag"]["node"] != 2]
    local: list[dict] = []
    remote: list[dict] = []

    async def be_node_two(ctx):
        ctx.set(dut.node, 2)

    simulate(dut, be_node_two, sender(dut.i, beats, stall=stalls[0]),
             receiver(dut.local, local, len(own), stall=stalls[1]),
             receiver(dut.remote, remote, len(others), stall=stalls[1], seed=4))
    assert local == own and remote == others

"""Packets on the wire: byte order, addresses, CRC coverage, sizes; against plain bytes."""

import random

import pytest
from amaranth.hdl import Module, Signal

from rtl.config import preset
from rtl.formats import EMBER_OFFSET, HeaderBeat
from rtl.network.wire import (
    IP_LENGTH,
    UDP_LENGTH,
    address,
    covered,
    edge_of,
    header,
    is_address,
    longest_payload,
    swap_bytes,
)
from tests.support import simulate


def evaluate(inputs: dict, expressions: dict, cases: list[dict]) -> list[dict]:
    """Return the values of ``expressions`` for each of ``cases``, values of ``inputs``."""
    m, results = Module(), []
    outputs = {name: Signal(len(value), name=name) for name, value in expressions.items()}
    m.d.comb += [outputs[name].eq(value) for name, value in expressions.items()]
    m.d.sync += Signal().eq(1)

    async def bench(ctx):
        for case in cases:
            for name, value in case.items():
                ctx.set(inputs[name], value)
            results.append({name: ctx.get(output) for name, output in outputs.items()})
            await ctx.tick()

    simulate(m, bench)
    return results


def test_numbers_stand_on_the_wire_most_significant_byte_first():
    inputs = {f"b{bits}": Signal(bits, name=f"b{bits}") for bits in (8, 16, 32, 48)}
    rng = random.Random(1)
    cases = [{name: rng.getrandbits(len(signal)) for name, signal in inputs.items()}
             for _ in range(20)]
    found = evaluate(inputs, {name: swap_bytes(signal) for name, signal in inputs.items()}, cases)
    for case, swapped in zip(cases, found, strict=True):
        for name, value in case.items():
            size = len(inputs[name]) // 8
            assert swapped[name].to_bytes(size, "little") == value.to_bytes(size, "big")


def test_an_address_is_the_base_and_the_node():
    inputs = {"base": Signal(48), "node": Signal(8)}
    cases = [{"base": 0x02AA_0000_00F0, "node": 0}, {"base": 0x02AA_0000_00F0, "node": 255},
             {"base": (1 << 48) - 2, "node": 5}]
    found = evaluate(inputs, {"address": address(*inputs.values(), 48)}, cases)
    assert [each["address"] for each in found] == [
        (case["base"] + case["node"]) % (1 << 48) for case in cases]


def test_whether_a_number_is_the_address_of_a_node():
    inputs, rng = {"value": Signal(48), "base": Signal(48), "node": Signal(8)}, random.Random(5)
    cases = []
    for base in (0, (1 << 48) - 2, 0x02AA_FFFF_FF00, *(rng.getrandbits(48) for _ in range(20))):
        for node in (0, 1, 255, rng.getrandbits(8)):
            right = (base + node) % (1 << 48)
            cases += [{"value": value, "base": base, "node": node} for value in (
                right, right ^ 1, right ^ 1 << rng.randrange(48), (right - 1) % (1 << 48), base)]
    found = evaluate(inputs, {"is": is_address(*inputs.values())}, cases)
    assert [each["is"] for each in found] == [
        int(case["value"] == (case["base"] + case["node"]) % (1 << 48)) for case in cases]


def test_the_crc_covers_addresses_and_header_but_itself():
    inputs, rng = {"beat": Signal(512), "first": Signal()}, random.Random(2)
    cases = [{"beat": rng.getrandbits(512), "first": n & 1} for n in range(20)]
    cases += [{"beat": (1 << 512) - 1, "first": 1}]
    found = evaluate(inputs, {"covered": covered(*inputs.values())}, cases)
    # IP addresses: bytes 12 to 19 of the IP header, which follows 14 bytes. The CRC is last.
    kept = {*range(14 + 12, 14 + 20), *range(EMBER_OFFSET, 60)}
    for case, each in zip(cases, found, strict=True):
        seen = case["beat"].to_bytes(64, "little")
        if case["first"]:
            seen = bytes(byte if n in kept else 0 for n, byte in enumerate(seen))
        assert each["covered"].to_bytes(64, "little") == seen


def test_a_header_is_the_first_beat():
    beat, rng = Signal(512), random.Random(3)
    view = header(beat)
    names = ("mac_destination", "ip_length", "udp_destination")
    word = rng.getrandbits(512)
    found, = evaluate({"beat": beat}, {name: view[name] for name in names}
                      | {"crc": view.ember.crc}, [{"beat": word}])
    raw = word.to_bytes(64, "little")
    places = {"mac_destination": (0, 6), "ip_length": (16, 18), "udp_destination": (36, 38),
              "crc": (60, 64)}
    assert found == {name: int.from_bytes(raw[slice(*place)], "little")
                     for name, place in places.items()}
    assert view.shape() == HeaderBeat


def test_sizes():
    # A packet without payload: the bytes behind the Ethernet header, and behind the IP header.
    assert (IP_LENGTH, UDP_LENGTH) == (64 - 14, 64 - 14 - 20)
    config = preset("tiny").with_fields(net_payload_beats=9, host_payload_beats=17)
    assert [longest_payload(config, edge_of(framing)) for framing in (
        "ethernet", "udp", "host")] == [9, 9, 17]


@pytest.mark.parametrize("framing, error, message", [
    ("tcp", ValueError, "framing must be ethernet, udp or host, not 'tcp'"),
    (4, TypeError, "framing must be a string, not 4")])
def test_framing_is_checked(framing, error, message):
    with pytest.raises(error, match=message):
        edge_of(framing)

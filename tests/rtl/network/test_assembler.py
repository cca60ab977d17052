"""Frame assembler: every byte of every packet, and its rate."""

import random
from itertools import product

import pytest

from rtl.config import NicConfig
from rtl.network.assembler import FrameAssembler
from tests.rtl.network.dirty import simulate
from tests.rtl.network.frames import IP_BASE, LOOKUPS, MAC_BASE, PORT, QUERIES, VECTORS, parse
from tests.support import made, receiver, sender

CONFIG = NicConfig(net_payload_beats=22, host_payload_beats=40)
NODE = 5
FULL = (1 << 64) - 1


def make_packets(rng, sizes, framing="ethernet"):
    packets = []
    for size in sizes:
        packets.append(({
            "opcode": rng.choice([LOOKUPS, VECTORS, QUERIES, 0x23]),
            "destination": rng.randrange(64), "step": rng.getrandbits(16),
            "count": rng.getrandbits(16), "credit": rng.getrandbits(16), "empty": int(size == 0),
        } | ({"address": rng.getrandbits(64), "answers": rng.getrandbits(16),
              "status": rng.getrandbits(8)} if framing == "host" else {}),
            [rng.getrandbits(512) for _ in range(size)]))
    return packets


def run(framing, packets, *, gap=0.0, stall=0.0, acknowledge=0, epoch=None):
    """Assemble ``packets``; return (beats out, cycles, counters). ``epoch``: with a link."""
    linked = {} if epoch is None else {"link": True}
    dut, taken, counters, lengths = made(FrameAssembler, CONFIG, framing, **linked), [], {}, []
    payload = [{"data": d, "last": int(k == len(beats) - 1)}
               for _, beats in packets for k, d in enumerate(beats)]

    async def set_up(ctx):
        for name, value in (("node", NODE), ("mac_base", MAC_BASE), ("ip_base", IP_BASE),
                            ("udp_port", PORT),
                            ("acknowledge", acknowledge) if epoch is None else ("epoch", epoch)):
            ctx.set(getattr(dut, name), value)

    async def headers(ctx):
        await set_up(ctx)
        await ctx.tick().repeat(2)
        await sender(dut.headers, [h for h, _ in packets], stall=gap, seed=1)(ctx)

    expected = len(packets) + len(payload)

    async def take(ctx):
        await receiver(dut.o, taken, expected, stall=stall)(ctx)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.idle) and not ctx.get(dut.o.valid)
        counters.update(packets=ctx.get(dut.counters.packets), beats=ctx.get(dut.counters.beats))

    async def sizes(ctx):
        async for _, _, ready, offered, length in ctx.tick().sample(
                dut.o.ready, dut.o.valid, dut.bytes):
            if ready and offered:
                lengths.append(length)

    cycles = simulate(dut, headers, sender(dut.payload, payload, stall=gap, seed=2), take,
                      background=[sizes])
    # Every beat, including the first one, has the length of the whole packet.
    assert lengths == [64 * (len(beats) + 1) for _, beats in packets
                       for _ in range(len(beats) + 1)]
    return taken, cycles, counters


@pytest.mark.few(4)
@pytest.mark.parametrize("framing,gap,stall", [
    *product(["ethernet", "host"], [0.0, 0.3], [0.0, 0.5]), ("udp", 0.0, 0.0), ("udp", 0.3, 0.3)])
def test_every_byte(framing, gap, stall):
    rng = random.Random(9)
    longest = 40 if framing == "host" else 22
    sizes = [rng.choice([0, 0, 1, 2, rng.randrange(1, longest + 1), longest]) for _ in range(40)]
    packets = make_packets(rng, sizes, framing)
    taken, _, counters = run(framing, packets, gap=gap, stall=stall)
    position = 0
    for sequence, (info, beats) in enumerate(packets):
        part = taken[position:position + len(beats) + 1]
        position += len(part)
        assert [b["last"] for b in part] == [0] * len(beats) + [1]
        assert all(b["keep"] == FULL and b["err"] == 0 for b in part)
        info = dict(info)
        if framing == "host":  # its address in GPU memory; ``answers`` is not sent
            assert part[0]["data"] & (1 << 64) - 1 == info.pop("address")
            part[0]["data"] &= -1 << 64
            del info["answers"], info["status"]
        frame = parse(b"".join(b["data"].to_bytes(64, "little") for b in part), framing)
        assert [int.from_bytes(frame.payload[k:k + 64], "little")
                for k in range(0, len(frame.payload), 64)] == beats
        assert (frame.source, frame.sequence) == (NODE, sequence)
        assert {name: getattr(frame, name) for name in info if name != "empty"} == {
            name: info[name] for name in info if name != "empty"}
    assert position == len(taken)
    assert counters == {"packets": len(packets), "beats": sum(sizes)}


@pytest.mark.parametrize("framing", ["ethernet", "udp", "host"])
def test_what_is_acknowledged_is_in_every_header(framing):
    packets = make_packets(random.Random(3), [0, 1, 2, 0])
    taken, *_ = run(framing, packets, acknowledge=0xBEEF)
    for _, beats in packets:
        part, taken = taken[:len(beats) + 1], taken[len(beats) + 1:]
        data = b"".join(b["data"].to_bytes(64, "little") for b in part)
        assert parse(data, framing, 0xBEEF).step == data[48] | data[49] << 8


@pytest.mark.few(2)
@pytest.mark.parametrize("framing,gap,stall", [
    ("ethernet", 0.0, 0.0), ("ethernet", 0.3, 0.4), ("udp", 0.2, 0.0)])
def test_a_link_numbers_packets_itself(framing, gap, stall):
    rng = random.Random(7)
    packets = make_packets(rng, [0, 1, 22, 0, 3])
    for info, _ in packets:
        info.update(sequence=rng.getrandbits(24), acknowledge=rng.getrandbits(24))
    taken, *_ = run(framing, packets, gap=gap, stall=stall, epoch=0xA5)
    for info, beats in packets:
        part, taken = taken[:len(beats) + 1], taken[len(beats) + 1:]
        frame = parse(b"".join(b["data"].to_bytes(64, "little") for b in part), framing,
                      info["acknowledge"], 0xA5)
        assert frame.sequence == info["sequence"]


@pytest.mark.parametrize("payload_bytes,beats", [(150, 2), (1110, 17), (1430, 22), (22, 0)])
def test_full_rate(payload_bytes, beats):
    """p = 22 + 64 n bytes of UDP payload in n + 1 cycles, packets back to back."""
    assert payload_bytes == 22 + 64 * beats
    packets = make_packets(random.Random(beats), [beats] * 40)
    _, cycles, _ = run("ethernet", packets)
    assert cycles <= 40 * (beats + 1) + beats + 20


def test_arguments_are_checked():
    with pytest.raises(TypeError, match="framing must be a string, not None"):
        FrameAssembler(CONFIG, None)
    with pytest.raises(ValueError, match="framing must be ethernet, udp or host, not 'ip'"):
        FrameAssembler(CONFIG, "ip")
    with pytest.raises(ValueError, match="framing must be ethernet or udp with a link, not 'host'"):
        FrameAssembler(CONFIG, "host", link=True)

"""Frame parser: random good packets between foreign, malformed and corrupted ones."""

import random
from dataclasses import replace

import pytest

from rtl.config import NicConfig
from rtl.formats import Status
from rtl.network.parser import PARSER_COUNTERS, FrameParser
from tests.rtl.network.dirty import simulate
from tests.rtl.network.frames import (
    DENSE_VECTORS,
    GPU_VECTORS,
    IP_BASE,
    LOOKUPS,
    MAC_BASE,
    PORT,
    QUERIES,
    VECTORS,
    Frame,
    beats_of,
    record_payload,
    vector_payload,
)
from tests.support import made, receiver, sender

CONFIG = NicConfig(max_dimension=64, net_payload_beats=22, host_payload_beats=40)
NODE, NODES = 2, 6


def records_frame(rng, opcode=LOOKUPS, limit=22, **fields):
    records = [rng.getrandbits(64) for _ in range(rng.randrange(1, 8 * limit + 1))]
    return Frame(**{
        "opcode": opcode, "source": rng.choice([0, 1, 3, 4, 5]), "destination": NODE,
        "step": rng.getrandbits(16), "count": len(records), "credit": rng.getrandbits(16),
        "payload": record_payload(records, rng)} | fields), records


def vectors_frame(rng, beats=1, opcode=VECTORS, limit=22, most=None, packing=0, **fields):
    most = most or max(n for n in range(1, limit << packing)
                       if -(-n // 32) - (-n * beats >> packing) <= limit)
    vectors = [(rng.getrandbits(16), rng.randbytes(64 * beats >> packing))
               for _ in range(rng.randrange(1, most + 1))]
    return Frame(**{
        "opcode": opcode, "source": rng.choice([0, 1, 3, 4, 5]), "destination": NODE,
        "step": rng.getrandbits(16), "count": len(vectors), "credit": rng.getrandbits(16),
        "payload": vector_payload(vectors, rng)} | fields), vectors


def expected_records(frame, records):
    beats = [records[k:k + 8] for k in range(0, len(records), 8)]
    return [{"beat": tuple(b), "source": frame.source, "step": frame.step,
             "last": int(k == len(beats) - 1)} for k, b in enumerate(beats)]


def seen_records(items):
    return [{"beat": tuple(i["data"] >> 64 * k & (1 << 64) - 1 for k in range(i["records"])),
             "source": i["source"], "step": i["step"], "last": i["last"]} for i in items]


def expected_vectors(vectors):
    return [{"tag": tag, "data": int.from_bytes(data[k:k + 64], "little"),
             "last": int(k + 64 >= len(data))}
            for tag, data in vectors for k in range(0, len(data), 64)]


def broken(rng, frame):
    """Return (counter, beats) of what has gone wrong with a good frame."""
    shorter = replace(frame, payload=frame.payload[:-64])
    longer = replace(frame, payload=frame.payload + rng.randbytes(64))
    half = (1 << 32) - 1
    last = len(frame.payload) // 64
    flipped = bytearray(frame.bytes())
    flipped[rng.randrange(64, len(flipped))] ^= 1 << rng.randrange(8)
    in_ember = bytearray(frame.bytes())
    in_ember[rng.choice([48, 49, 50, 51, 54, 57])] ^= 1 << rng.randrange(8)
    of_ethernet = [
        ("foreign", replace(frame, ethertype=0x86DD)),
        ("foreign", replace(frame, ethertype=0x0008)),
        ("foreign", replace(frame, version_ihl=0x46)),
        ("foreign", replace(frame, version_ihl=0x65)),
        ("foreign", replace(frame, protocol=6)),
        ("foreign", replace(frame, port=PORT ^ 1)),
        ("foreign", replace(frame, port=((PORT & 255) << 8) | (PORT >> 8))),
        ("foreign", replace(frame, mac=(1 << 48) - 1)),
        ("foreign", replace(frame, mac=MAC_BASE + NODE + 1)),
        ("foreign", replace(frame, ip=IP_BASE + NODE + 256)),
        ("foreign", replace(frame, ip=0xFFFFFFFF)),
        ("foreign", replace(frame, fragment=0x2000)),
        ("foreign", replace(frame, fragment=0x0001)),
        ("foreign", replace(frame, fragment=0x5000)),
        ("bad_length", replace(frame, ip_length=50 + len(frame.payload) + 64)),
        ("bad_length", replace(frame, udp_length=30 + len(frame.payload) - 64)),
        ("bad_crc", replace(frame, checksum_error=1 << rng.randrange(16))),
        ("errors_mac", replace(frame, err=1, ethertype=0, crc_error=1)),
        ("foreign", rng.randbytes(rng.randrange(14, 1514))),
    ]
    choice = [
        ("bad_length", replace(frame, keep={last: half})),
        ("bad_length", replace(frame, keep={max(1, last - 1): half})),
        ("bad_length", replace(frame, payload=b"")),
        ("bad_length", shorter), ("bad_length", longer),
        ("bad_length", replace(frame, count=0)),
        ("bad_length", replace(frame, count=frame.count + 0x800)),
        ("bad_length", replace(frame, payload=rng.randbytes(64 * 23))),
        ("bad_length", replace(frame, payload=rng.randbytes(64 * 60))),
        ("bad_crc", replace(frame, crc_error=1 << rng.randrange(32))),
        ("bad_crc", bytes(flipped)), ("bad_crc", bytes(in_ember)),
        ("bad_opcode", replace(frame, opcode=QUERIES)),
        ("bad_opcode", replace(frame, opcode=0)),
        ("bad_opcode", replace(frame, version=2)),
        ("bad_node", replace(frame, source=NODE)),
        ("bad_node", replace(frame, source=NODES)),
        ("bad_node", replace(frame, destination=NODE + 1, mac=MAC_BASE + NODE,
                             ip=IP_BASE + NODE)),
        ("errors_mac", replace(frame, err=1)),
    ]
    counter, what = rng.choice(choice + of_ethernet * (frame.framing == "ethernet"))
    return counter, what.beats() if isinstance(what, Frame) else beats_of(what)


def set_up(dut, beats, packing=0):
    async def bench(ctx):
        for name, value in (("node", NODE), ("nodes", NODES), ("mac_base", MAC_BASE),
                            ("ip_base", IP_BASE), ("udp_port", PORT), ("vector_beats", beats),
                            ("vector_packing", packing)):
            ctx.set(getattr(dut, name), value)
        await ctx.tick().repeat(2)
    return bench


def drive(dut, packets, beats=1, packing=0, *, gap=0.0, stall=0.0, records=(), vectors=(),
          dense=(), refused=(), credits=None, background=()):
    """Send packets, compare what comes out, return (cycles, counters)."""
    items = [beat for packet in packets for beat in packet]
    seen, seen_vectors, seen_dense, seen_refused, result, sent = [], [], [], [], {}, []

    async def feed(ctx):
        await set_up(dut, beats, packing)(ctx)
        await sender(dut.i, items, stall=gap)(ctx)
        sent.append(True)

    async def finish(ctx):
        await ctx.tick()
        assert ctx.get(dut.i.ready)
        while not sent or len(seen) < len(records) or len(seen_vectors) < len(vectors) or (
                len(seen_dense) < len(dense) or len(seen_refused) < len(refused)) or (
                not ctx.get(dut.idle)):
            await ctx.tick()
        for name in PARSER_COUNTERS.members:
            result[name] = ctx.get(dut.counters[name])

    async def watch(ctx):
        async for _, _, ready, valid, node, value in ctx.tick().sample(
                dut.i.ready, dut.credit.valid, dut.credit.node, dut.credit.value):
            assert ready
            if valid:
                credits.append((node, value))

    cycles = simulate(
        dut, feed, finish,
        receiver(dut.records, seen, len(records), stall=stall, seed=2),
        receiver(dut.vectors, seen_vectors, len(vectors), stall=stall, seed=3),
        receiver(dut.refused, seen_refused, len(refused), stall=stall, seed=4),
        *([receiver(dut.dense, seen_dense, len(dense), stall=stall, seed=5)] if dense else []),
        background=[*background, *([watch] if credits is not None else [])])
    assert seen_records(seen) == list(records)
    assert seen_vectors == list(vectors) and seen_dense == list(dense)
    assert seen_refused == list(refused)
    return cycles, result


@pytest.mark.few(3)
@pytest.mark.parametrize("beats,packing,gap,stall,framing", [
    (1, 0, 0.0, 0.0, "ethernet"), (4, 0, 0.0, 0.3, "ethernet"), (2, 0, 0.5, 0.2, "ethernet"),
    (1, 1, 0.3, 0.3, "ethernet"), (1, 2, 0.0, 0.2, "ethernet"), (1, 0, 0.3, 0.2, "udp")])
def test_good_frames_between_bad_ones(beats, packing, gap, stall, framing):
    rng = random.Random(beats)
    packets, records, vectors, credits, seen_credits = [], [], [], [], []
    counts = dict.fromkeys(PARSER_COUNTERS.members, 0)
    for _ in range(90):
        if rng.random() < 0.5:
            frame, content = records_frame(rng, limit=6, framing=framing)
            out, more = records, expected_records(frame, content)
        else:
            frame, content = vectors_frame(rng, beats, packing=packing, framing=framing)
            out, more = vectors, expected_vectors(content)
        if rng.random() < 0.6:
            counter, packet = broken(rng, frame)
            counts[counter] += 1
        else:
            packet = frame.beats()
            out += more
            counts["packets"] += 1
            counts["beats"] += len(packet) - 1
            credits.append((frame.source, frame.credit))
        packets.append(packet)
    dut = made(FrameParser, CONFIG, framing)
    _, seen = drive(dut, packets, beats, packing, gap=gap, stall=stall, records=records,
                    vectors=vectors, credits=seen_credits)
    assert seen == counts
    assert seen_credits == credits


def test_every_reason_is_met():
    """Each kind of broken frame alone, between two good ones."""
    rng = random.Random(7)
    met = set()
    packets, records, counts = [], [], dict.fromkeys(PARSER_COUNTERS.members, 0)
    for _ in range(120):
        frame, content = records_frame(rng, limit=2)
        counter, packet = broken(rng, frame)
        met.add(counter)
        counts[counter] += 1
        counts["packets"] += 1
        counts["beats"] += len(frame.payload) // 64
        packets += [packet, frame.beats()]
        records += expected_records(frame, content)
    assert met == {"foreign", "bad_length", "bad_crc", "bad_opcode", "bad_node", "errors_mac"}
    _, seen = drive(made(FrameParser, CONFIG), packets, records=records)
    assert seen == counts


@pytest.mark.few(2)
@pytest.mark.parametrize("beats,most", [(1, 1), (1, 16), (1, 21), (4, 5)])
def test_vectors_back_to_back(beats, most):
    """No cycle is lost behind the wire: 150, 1,110 and 1,430 bytes of UDP payload, full rate."""
    rng = random.Random(most)
    packets, vectors = [], []
    for _ in range(30):
        content = [(rng.getrandbits(16), rng.randbytes(64 * beats)) for _ in range(most)]
        frame = Frame(opcode=VECTORS, destination=NODE, source=1, count=most,
                      payload=vector_payload(content, rng))
        assert len(frame.payload) + 22 == {(1, 1): 150, (1, 16): 1110, (1, 21): 1430,
                                           (4, 5): 1366}[beats, most]
        packets.append(frame.beats())
        vectors += expected_vectors(content)
    wire = sum(map(len, packets))
    cycles, seen = drive(made(FrameParser, CONFIG), packets, beats, vectors=vectors)
    assert seen["packets"] == 30 and seen["beats"] == wire - 30
    assert cycles <= wire + len(packets[0]) + 16
    if most >= 16:
        assert len(vectors) / (cycles - len(packets[0]) - 16) >= 0.9


@pytest.mark.parametrize("packing", [1, 2])
def test_beats_of_several_vectors_hold_up_nothing_behind_them(packing):
    """All that may be under way comes at once, and full lookups packets right behind it.

    The records are out as soon as they are read, though the vectors take far longer, and nothing
    is dropped; a FIFO of half the packets would not do for what waits.
    """
    rng = random.Random(packing)
    config = CONFIG.with_fields(remote_in_flight=256)
    packets, vectors, records = [], [], []
    for _ in range(8):
        content = [(rng.getrandbits(16), rng.randbytes(64 >> packing)) for _ in range(32)]
        packets.append(Frame(opcode=VECTORS, destination=NODE, source=1, count=32,
                             payload=vector_payload(content, rng)).beats())
        vectors += expected_vectors(content)
    for _ in range(12):
        frame, content = records_frame(rng)
        packets.append(frame.beats())
        records += expected_records(frame, content)
    wire = sum(map(len, packets))
    dut = made(FrameParser, config, depth=2 * (22 + 4))
    seen = []

    async def clock(ctx):
        count = 0
        async for _, _, valid, ready in ctx.tick().sample(
                dut.vectors.valid, dut.vectors.ready):
            count += 1
            if valid and ready:
                seen.append(count)

    cycles, counters = drive(dut, packets, packing=packing, vectors=vectors, records=records,
                             background=[clock])
    assert counters["overruns"] == 0 and counters["packets"] == 20
    assert len(vectors) / (seen[-1] - seen[0] + 1) >= 0.95
    assert cycles <= max(wire, 256) + 60


def test_records_back_to_back():
    rng = random.Random(11)
    packets, records = [], []
    for _ in range(20):
        frame, content = records_frame(rng)
        packets.append(frame.beats())
        records += expected_records(frame, content)
    wire = sum(map(len, packets))
    cycles, _ = drive(made(FrameParser, CONFIG), packets, records=records)
    assert cycles <= wire + 40


def test_overrun_drops_whole_packets():
    """With the consumer stopped, packets beyond the FIFO are counted; the rest is intact."""
    rng = random.Random(5)
    dut = made(FrameParser, CONFIG, depth=64)
    frames = [records_frame(rng, limit=10) for _ in range(40)]
    bad = replace(frames[0][0], crc_error=1)
    seen, taken = [], {}

    async def bench(ctx):
        await set_up(dut, 1)(ctx)
        await sender(dut.i, [b for f, _ in frames for b in f.beats()] + bad.beats())(ctx)
        await ctx.tick().repeat(10)
        taken.update({n: ctx.get(dut.counters[n]) for n in ("packets", "overruns", "bad_crc")})
        ctx.set(dut.records.ready, 1)
        while not ctx.get(dut.idle):
            item, valid = ctx.get(dut.records.payload), ctx.get(dut.records.valid)
            if valid:
                seen.append({n: item[n] for n in ("data", "records", "source", "step", "last")})
            await ctx.tick()

    simulate(dut, bench)
    assert taken["packets"] + taken["overruns"] == 40 and taken["bad_crc"] == 1
    assert taken["packets"] >= 3 and taken["overruns"] >= 20
    # What came out is whole packets, in order, each one that was sent.
    out = seen_records(seen)
    position = 0
    for frame, content in frames:
        want = expected_records(frame, content)
        if out[position:position + len(want)] == want:
            position += len(want)
    assert position == len(out) and sum(i["last"] for i in out) == taken["packets"]


@pytest.mark.few(1)
@pytest.mark.parametrize("gap,stall,packing", [(0.0, 0.0, 0), (0.3, 0.3, 0), (0.3, 0.2, 2)])
def test_host_messages(gap, stall, packing):
    rng = random.Random(int(gap * 10) + packing)
    packets, records, vectors, dense, refused = [], [], [], [], []
    counts = dict.fromkeys(PARSER_COUNTERS.members, 0)
    for _ in range(60):
        kind = rng.random()
        if kind < 0.5:
            frame, content = records_frame(rng, QUERIES, 40, framing="host", source=200)
            out, more = records, expected_records(frame, content)
        else:
            opcode, out = rng.choice([(GPU_VECTORS, vectors), (DENSE_VECTORS, dense)])
            frame, content = vectors_frame(
                rng, 1, opcode, 40, framing="host", packing=packing)
            more = expected_vectors(content)
        if rng.random() < 0.3:
            counter, status, frame = rng.choice([
                ("bad_opcode", Status.OPCODE, replace(frame, opcode=LOOKUPS)),
                ("bad_opcode", Status.OPCODE, replace(frame, version=0)),
                ("bad_length", Status.LENGTH, replace(frame, count=frame.count + 0x100)),
                ("bad_length", Status.LENGTH, replace(frame, payload=frame.payload[:-64])),
                ("bad_length", Status.LENGTH, replace(frame, payload=rng.randbytes(64 * 41))),
                ("bad_length", Status.LENGTH,
                 replace(frame, keep={len(frame.payload) // 64: (1 << 63) - 1})),
                ("errors_mac", Status.TRUNCATED, replace(frame, err=1)),
            ])
            counts[counter] += 1
            refused.append({"status": int(status), "step": frame.step})
        else:
            out += more
            counts["packets"] += 1
            counts["beats"] += len(frame.payload) // 64
        packets.append(frame.beats())
    _, seen = drive(made(FrameParser, CONFIG, "host"), packets, 1, packing, gap=gap, stall=stall,
                    records=records, vectors=vectors, dense=dense, refused=refused)
    assert seen == counts


@pytest.mark.parametrize("framing,opcode,vectors", [
    ("ethernet", VECTORS, 22), ("ethernet", VECTORS, 130), ("host", GPU_VECTORS, 39)])
def test_longer_than_configured(framing, opcode, vectors):
    """A packet that is right in itself but longer than this NIC takes; the next one is well."""
    rng = random.Random(vectors)
    content = [(k, rng.randbytes(64)) for k in range(vectors)]
    long = Frame(opcode=opcode, framing=framing, destination=NODE, count=vectors, step=9,
                 payload=vector_payload(content))
    assert len(long.payload) // 64 > (22 if framing == "ethernet" else 40)
    good = replace(long, count=3, payload=vector_payload(content[:3]))
    _, seen = drive(made(FrameParser, CONFIG, framing), [long.beats(), good.beats()] * 2,
                    vectors=expected_vectors(content[:3]) * 2,
                    refused=[{"status": int(Status.LENGTH), "step": 9}] * 2 * (framing == "host"))
    assert (seen["packets"], seen["bad_length"], seen["overruns"]) == (2, 2, 0)


def test_arguments_are_checked():
    with pytest.raises(TypeError, match="framing must be a string, not 3"):
        FrameParser(CONFIG, 3)
    with pytest.raises(ValueError, match="framing must be ethernet, udp or host, not 'ip'"):
        FrameParser(CONFIG, "ip")
    with pytest.raises(ValueError, match="depth must be at least 52, not 51"):
        FrameParser(CONFIG, depth=51)
    with pytest.raises(TypeError, match=r"depth must be an integer, not 5\.5$"):
        FrameParser(CONFIG, depth=5.5)

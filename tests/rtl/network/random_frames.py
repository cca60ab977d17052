"""Random frames for a node, the expected results of receiving blocks, and ways to corrupt frames.
"""

from dataclasses import replace

from rtl.config import NicConfig
from tests.rtl.network.frames import (
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

__all__ = ["CONFIG", "NODE", "NODES", "broken", "expected_records", "expected_vectors", "items_of",
           "records_frame", "seen_records", "set_up", "vectors_frame"]

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


def items_of(packet):
    """Return the beats of a whole packet inside the NIC."""
    return [{"item": beat["data"], "last": beat["last"]} for beat in packet]


def expected_records(frame, records):
    beats = [records[k:k + 8] for k in range(0, len(records), 8)]
    return [{"beat": tuple(b), "source": frame.source, "step": frame.step,
             "last": int(k == len(beats) - 1)} for k, b in enumerate(beats)]


def seen_records(items):
    return [{"beat": tuple(i["data"] >> 64 * k & (1 << 64) - 1 for k in range(i["records"])),
             "source": i["source"], "step": i["step"], "last": i["last"]} for i in items]


def expected_vectors(frame, vectors):
    """Return the beats of the ``vectors`` of ``frame``; those of a peer contain its number."""
    sender = {"source": frame.source} if frame.opcode == VECTORS else {}
    return [{"tag": tag, "data": int.from_bytes(data[k:k + 64], "little"),
             "last": int(k + 64 >= len(data)), "lost": 0, **sender}
            for tag, data in vectors for k in range(0, len(data), 64)]


def broken(rng, frame):
    """Return (counter, beats) of a corrupted copy of a valid frame."""
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
        ("foreign", replace(frame, from_mac=MAC_BASE + (frame.source ^ 1))),
        ("foreign", replace(frame, from_mac=(MAC_BASE + frame.source) ^ 1 << 40)),
        ("foreign", replace(frame, from_ip=IP_BASE + frame.source + 256)),
        ("foreign", replace(frame, from_ip=IP_BASE + NODE)),
        ("foreign", replace(frame, from_port=PORT ^ 1 << rng.randrange(16))),
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


def set_up(dut, beats=1, packing=0):
    """Return a bench that sets the block's addresses and sizes, and waits."""
    async def bench(ctx):
        for name, value in (("node", NODE), ("nodes", NODES), ("mac_base", MAC_BASE),
                            ("ip_base", IP_BASE), ("udp_port", PORT), ("vector_beats", beats),
                            ("vector_packing", packing)):
            if hasattr(dut, name):
                ctx.set(getattr(dut, name), value)
        await ctx.tick().repeat(2)
    return bench

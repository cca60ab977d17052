"""EmberNIC packets in plain Python, written from the format, independent of the hardware."""

import random
import struct
from dataclasses import dataclass, field

import google_crc32c

MAC_BASE, IP_BASE, PORT = 0x02454D42FFFE, 0x0A45FFFE, 0x4853  # sums carry over byte borders
LOOKUPS, VECTORS, QUERIES, GPU_VECTORS, DENSE_VECTORS = 0x01, 0x02, 0x10, 0x11, 0x12
EMBER = struct.Struct("<BBBBBBH3s3sHHI")


def checksum(data: bytes) -> int:
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@dataclass
class Frame:
    """One packet; a test can set any field to a wrong value."""

    opcode: int = LOOKUPS
    source: int = 1
    destination: int = 0
    step: int = 0
    count: int = 0
    credit: int = 0
    sequence: int = 0
    acknowledge: int = 0
    epoch: int = 0
    final_beat: int = 0
    payload: bytes = b""
    version: int = 1
    mac: int | None = None
    ip: int | None = None
    from_mac: int | None = None
    from_ip: int | None = None
    from_port: int = PORT
    ethertype: int = 0x0800
    version_ihl: int = 0x45
    protocol: int = 17
    port: int = PORT
    fragment: int = 0x4000
    ip_length: int | None = None
    udp_length: int | None = None
    crc_error: int = 0
    checksum_error: int = 0
    keep: dict = field(default_factory=dict)
    err: int = 0
    framing: str = "ethernet"

    def header(self) -> bytes:
        def ember(crc):
            return EMBER.pack(
                self.version, self.opcode, self.source, self.destination, self.epoch,
                self.final_beat, self.step, self.sequence.to_bytes(3, "little"),
                self.acknowledge.to_bytes(3, "little"), self.credit, self.count, crc)

        if self.framing == "host":
            return bytes(42) + ember(0)
        if self.framing == "udp":
            crc = google_crc32c.value(bytes(42) + ember(0) + self.payload)
            return bytes(42) + ember(crc ^ self.crc_error)
        size = 50 + len(self.payload)
        mac = MAC_BASE + self.destination if self.mac is None else self.mac
        ip = IP_BASE + self.destination if self.ip is None else self.ip
        from_mac = MAC_BASE + self.source if self.from_mac is None else self.from_mac
        from_ip = IP_BASE + self.source if self.from_ip is None else self.from_ip
        addresses = from_ip.to_bytes(4, "big") + ip.to_bytes(4, "big")
        start = struct.pack(
            ">BBHHHBB", self.version_ihl, 0, size if self.ip_length is None else self.ip_length,
            0, self.fragment, 64, self.protocol)
        total = checksum(start + b"\0\0" + addresses) ^ self.checksum_error
        udp_length = size - 20 if self.udp_length is None else self.udp_length
        udp = struct.pack(">HHHH", self.from_port, self.port, udp_length, 0)
        crc = google_crc32c.value(bytes(26) + addresses + bytes(8) + ember(0) + self.payload)
        return (mac.to_bytes(6, "big") + from_mac.to_bytes(6, "big")
                + struct.pack(">H", self.ethertype) + start + struct.pack(">H", total) + addresses
                + udp + ember(crc ^ self.crc_error))

    def bytes(self) -> bytes:
        return self.header() + self.payload

    def beats(self) -> list[dict]:
        """Return the beats as :data:`rtl.formats.Beat` values."""
        return beats_of(self.bytes(), self.keep, self.err)


def beats_of(data: bytes, keep: dict | None = None, err: int = 0) -> list[dict]:
    size = -(-len(data) // 64)
    full = (1 << 64) - 1
    beats = []
    for k in range(size):
        part = data[64 * k:64 * k + 64]
        mask = (1 << len(part)) - 1
        last = int(k == size - 1)
        beats.append({"data": int.from_bytes(part, "little"), "keep": (keep or {}).get(k, mask),
                      "last": last, "err": err if last else 0})
    assert beats[0]["keep"] == full or size == 1
    return beats


def record_payload(records: list[int], rng: random.Random | None = None) -> bytes:
    """Pack 8-byte records; padding is random when ``rng`` is given, else zero."""
    return _whole(b"".join(r.to_bytes(8, "little") for r in records), rng)


def vector_payload(vectors: list[tuple[int, bytes]], rng: random.Random | None = None) -> bytes:
    """Pack tag beats and vectors; those shorter than a beat share beats."""
    tags = b"".join(tag.to_bytes(2, "little") for tag, _ in vectors)
    return _whole(tags, rng) + _whole(b"".join(v for _, v in vectors), rng)


def _whole(data: bytes, rng: random.Random | None) -> bytes:
    pad = -len(data) % 64
    return data + (rng.randbytes(pad) if rng else bytes(pad))


def parse(data: bytes, framing: str = "ethernet", acknowledged: int = 0, epoch: int = 0) -> Frame:
    """Parse a packet and check everything that a receiver may rely on."""
    assert len(data) % 64 == 0
    (version, opcode, source, destination, of_epoch, final_beat, step, sequence, acknowledge,
     credit, count, _) = EMBER.unpack(data[42:64])
    frame = Frame(opcode=opcode, source=source, destination=destination, step=step, count=count,
                  credit=credit, sequence=int.from_bytes(sequence, "little"), payload=data[64:],
                  version=version, framing=framing, acknowledge=acknowledged, epoch=epoch,
                  final_beat=final_beat)
    assert (version, of_epoch) == (1, epoch)
    assert acknowledge == acknowledged.to_bytes(3, "little")
    assert data == frame.bytes()
    return frame

"""The Wireshark dissector: the copy in ``docs`` is current, and tshark decodes packets with it."""

import json
import random
import struct
import subprocess
from pathlib import Path

import dpkt
import pytest

from gen.documents.dissector import dissector
from rtl.formats import EmberHeader, Opcode
from tests.optional import needs_tool
from tests.rtl.network.frames import Frame, record_payload, vector_payload

SCRIPT = Path(__file__).parents[3] / "docs" / "embernic.lua"
needs_tshark = needs_tool("tshark")


def test_copy_in_docs_is_current():
    assert SCRIPT.read_text() == dissector()


def _decode(tmp_path, frames: list[bytes], *options: str) -> list[dict]:
    """Return tshark's fields of each of ``frames``, as lists of texts."""
    path = tmp_path / "frames.pcap"
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file, snaplen=65535, nano=True)
        for number, frame in enumerate(frames):
            writer.writepkt(frame, number)
    done = subprocess.run(
        ["tshark", "-X", f"lua_script:{SCRIPT}", "-r", str(path), "-T", "json",
         "--no-duplicate-keys", *options],
        capture_output=True, text=True, check=True)
    assert "Lua" not in done.stderr and "rror" not in done.stderr, done.stderr
    return [_flat(packet["_source"]["layers"]) for packet in json.loads(done.stdout)]


def _flat(node, found: dict | None = None) -> dict:
    found = {} if found is None else found
    for key, value in node.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                found.setdefault(key, []).append("")
                _flat(one, found)
            else:
                found.setdefault(key, []).append(one)
    return found


def _header(packet: dict) -> dict[str, int]:
    return {name: int(packet[f"embernic.{name}"][0], 0) for name in EmberHeader.members}


def _numbers(packet: dict, field: str) -> list[int]:
    return [int(text, 0) for text in packet.get(f"embernic.{field}", [])]


@needs_tshark
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 176])
def test_lookups(tmp_path, count):
    rng = random.Random(count)
    keys = [(rng.getrandbits(36), rng.getrandbits(12), rng.getrandbits(16)) for _ in range(count)]
    keys[:2] = [((1 << 36) - 1, 0, 0), (0, (1 << 12) - 1, (1 << 16) - 1)][:count]
    payload = record_payload([row | table << 36 | landing << 48 for row, table, landing in keys],
                             rng)
    frame = Frame(count=count, payload=payload, step=0xFEDC, credit=0xABCD, sequence=0x123456,
                  source=200, destination=3)
    packet, = _decode(tmp_path, [frame.bytes()])
    assert _header(packet) == {
        "version": 1, "opcode": Opcode.LOOKUPS, "source": 200, "destination": 3, "epoch": 0,
        "final_beat": 0, "step": 0xFEDC, "sequence": 0x123456, "acknowledge": 0, "credit": 0xABCD,
        "count": count, "crc": struct.unpack("<I", frame.header()[60:])[0]}
    found = zip(_numbers(packet, "record.row"), _numbers(packet, "record.table"),
                _numbers(packet, "record.landing"))
    assert list(found) == keys
    assert ("embernic.padding" in packet) == bool(count % 8)
    assert "embernic.bad_length" not in packet


@needs_tshark
@pytest.mark.parametrize(("count", "beats"), [(1, 1), (3, 4), (32, 1), (33, 2)])
def test_vectors(tmp_path, count, beats):
    rng = random.Random(count)
    # Eighths are exact in the text that tshark prints.
    values = [[rng.randrange(-800, 800) / 8 for _ in range(16 * beats)] for _ in range(count)]
    tags = [rng.getrandbits(16) for _ in range(count)]
    payload = vector_payload(
        [(tag, struct.pack(f"<{16 * beats}f", *row)) for tag, row in zip(tags, values)], rng)
    frame = Frame(opcode=0x02, count=count, payload=payload)
    packet, = _decode(tmp_path, [frame.bytes()])
    assert _numbers(packet, "vector.landing") == tags
    assert [float(text) for text in packet["embernic.vector.value"]] == [
        value for row in values for value in row]
    assert len(packet["embernic.vector"]) == count
    assert "embernic.bad_length" not in packet


@needs_tshark
@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize(("count", "dimension"), [(2, 8), (3, 8), (31, 8), (2, 4), (3, 4), (5, 4),
                                                  (32, 4)])
def test_vectors_that_share_beats(tmp_path, count, dimension, told):
    rng = random.Random(count)
    values = [[rng.randrange(-800, 800) / 8 for _ in range(dimension)] for _ in range(count)]
    payload = vector_payload(
        [(k, struct.pack(f"<{dimension}f", *row)) for k, row in enumerate(values)])
    frame = Frame(opcode=0x02, count=count, payload=payload)
    packet, = _decode(tmp_path, [frame.bytes()],
                      *(("-o", f"embernic.dimension:{dimension}") if told else ()))
    assert "embernic.bad_length" not in packet
    assert _numbers(packet, "vector.landing") == list(range(count))
    # Two vectors of one beat may have 8 values or 4.
    divided = told or count > 2
    assert [float(text) for text in packet.get("embernic.vector.value", [])] == [
        value for row in values for value in row if divided]
    assert ("embernic.shared" in packet) != divided


@pytest.mark.few(4)
@needs_tshark
@pytest.mark.parametrize(("frame", "mark"), [
    (Frame(count=9, payload=bytes(64)), "bad_length"),
    (Frame(count=8, payload=bytes(128)), "bad_length"),
    (Frame(count=1), "bad_length"),
    (Frame(opcode=0x02, count=2, payload=bytes(64)), "bad_length"),
    (Frame(opcode=0x02, count=2, payload=bytes(64 * 4)), "bad_length"),
    (Frame(opcode=0x02, count=0, payload=bytes(64)), "bad_length"),
    (Frame(opcode=0x02, count=0xFFFF, payload=bytes(640)), "bad_length"),
    (Frame(opcode=0x23), "bad_opcode"),
    (Frame(opcode=0x7F, payload=bytes(64)), "bad_opcode"),
    (Frame(version=2, payload=bytes(64)), "bad_version"),
], ids=str)
def test_what_a_nic_refuses_is_marked(tmp_path, frame, mark):
    packet, = _decode(tmp_path, [frame.bytes()])
    marks = [name for name in ("bad_length", "bad_opcode", "bad_version")
             if f"embernic.{name}" in packet]
    assert marks == [mark]
    assert _header(packet)["count"] == frame.count


@needs_tshark
def test_only_packets_of_its_port(tmp_path):
    short = Frame(payload=b"").bytes()[:50]
    short = short[:38] + struct.pack(">H", 16) + short[40:]
    short = short[:16] + struct.pack(">H", 36) + short[18:]
    other = bytearray(Frame(count=1, payload=bytes(64)).bytes())
    other[34:38] = struct.pack(">HH", 40000, 40001)
    packets = _decode(tmp_path, [short, bytes(other)])
    assert ["embernic.version" in packet for packet in packets] == [False, False]

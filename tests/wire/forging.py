"""Frames of an attacker who knows the format: observed, changed, and made up."""

from dataclasses import replace

import numpy as np

from rtl.formats import BEAT_BYTES
from sim.nic.ports import DATA_WORDS
from tests.rtl.network.frames import EMBER, LOOKUPS, VECTORS, Frame, record_payload, vector_payload

__all__ = ["IP", "MAC", "as_node", "as_stranger", "landings", "lookups", "read", "vectors", "words"]

MAC, IP = 0x02454D420000, 0x0A450000
"""Addresses of node 0 in a run; other nodes add their number."""
_STRANGER = {"from_mac": 0x020A0B0C0D0E, "from_ip": 0x0A0A0A66}


def as_node(frame: Frame, node: int | None = None) -> Frame:
    """Return ``frame`` with the addresses of ``node``, by default of the node that it names
    itself."""
    node = frame.source if node is None else node
    return replace(frame, mac=MAC + frame.destination, ip=IP + frame.destination,
                   from_mac=MAC + node, from_ip=IP + node)


def as_stranger(frame: Frame) -> Frame:
    """Return ``frame``, which claims to be from a node, with addresses of no node."""
    return replace(as_node(frame), **_STRANGER)


def read(beats: np.ndarray) -> Frame:
    """Return the EmberNIC header and the payload of an observed frame."""
    data = np.ascontiguousarray(beats[:, :DATA_WORDS], "<u4").tobytes()
    (version, opcode, source, destination, epoch, _, step, sequence, acknowledge, credit, count,
     _) = EMBER.unpack(data[42:BEAT_BYTES])
    return Frame(version=version, opcode=opcode, source=source, destination=destination,
                 epoch=epoch, step=step, credit=credit, count=count, payload=data[BEAT_BYTES:],
                 sequence=int.from_bytes(sequence, "little"),
                 acknowledge=int.from_bytes(acknowledge, "little"))


def words(frame: Frame) -> np.ndarray:
    """Return the beats of ``frame`` in the form of an exchange."""
    return np.array([np.frombuffer(
        (b["data"] | b["keep"] << 512 | b["last"] << 576 | b["err"] << 577).to_bytes(76, "little"),
        "<u4") for b in frame.beats()], np.uint32)


def landings(frame: Frame) -> list[int]:
    """Return the landings that the lookups of ``frame`` name."""
    records = np.frombuffer(frame.payload, "<u8")[:frame.count]
    return [int(record) >> 48 for record in records]


def vectors(source: int, destination: int, tags: list[int], size: int, **fields) -> Frame:
    """Return a frame of VECTORS of ``size`` bytes, each of ones, with ``tags``."""
    ones = np.ones(size // 4, "<f4").tobytes()
    return Frame(opcode=VECTORS, source=source, destination=destination, count=len(tags),
                 payload=vector_payload([(tag, ones) for tag in tags]), **fields)


def lookups(source: int, destination: int, records: list[int], **fields) -> Frame:
    """Return a frame of LOOKUPS with ``records``."""
    return Frame(opcode=LOOKUPS, source=source, destination=destination, count=len(records),
                 payload=record_payload(records), **fields)

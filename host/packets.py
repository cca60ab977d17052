"""Packets between host and NIC, packed and parsed with the layouts of :mod:`rtl.formats`.

A packet here is an array of beats, uint32 ``[n, 16]`` little-endian words, header beat first.
"""

from dataclasses import dataclass

import numpy as np
from amaranth.lib.data import StructLayout

from rtl.config import LANES
from rtl.formats import (
    BEAT_BYTES,
    EMBER_OFFSET,
    RECORD_BITS,
    RECORDS_PER_BEAT,
    TAGS_PER_BEAT,
    VERSION,
    EmberHeader,
    ErrorRecord,
    LookupRecord,
    Opcode,
    PooledTag,
    QueryRecord,
    RecordKind,
    SampleRecord,
)

from .layouts import field_bits, pack, unpack
from .samples import Samples

__all__ = [
    "Header", "gpu_vectors", "header_beat", "pack_records", "parse_errors", "parse_header",
    "parse_lookup_requests", "parse_pooled", "parse_records", "query_packets", "query_records",
    "records_to_beats", "vectors_packet",
]

WORDS = BEAT_BYTES // 4


@dataclass(frozen=True)
class Header:
    """Fields of an EmberNIC header that a host looks at."""

    opcode: int
    source: int
    destination: int
    step: int
    credit: int
    count: int


def _byte_span(layout: StructLayout, name: str) -> slice:
    field = layout[name]
    start = EMBER_OFFSET + field.offset // 8
    return slice(start, start + layout.members[name] // 8)


_HEADER_SPANS = {name: _byte_span(EmberHeader, name) for name in EmberHeader.members}


def header_beat(opcode: Opcode, *, node: int, step: int, count: int, **fields: int) -> np.ndarray:
    """Return the header beat of a packet on a host port: uint32 ``[1, 16]``, framing zero."""
    raw = bytearray(BEAT_BYTES)
    values = {"version": VERSION, "opcode": int(opcode), "source": node, "destination": node,
              "step": step & 0xFFFF, "count": count, **fields}
    for name, value in values.items():
        span = _HEADER_SPANS[name]
        raw[span] = int(value).to_bytes(span.stop - span.start, "little")
    return np.frombuffer(bytes(raw), "<u4").reshape(1, WORDS)


def parse_header(beat: np.ndarray) -> Header:
    """Return the header in a header beat, uint32 ``[16]``."""
    raw = beat.astype("<u4").tobytes()
    return Header(*(int.from_bytes(raw[_HEADER_SPANS[name]], "little")
                    for name in ("opcode", "source", "destination", "step", "credit", "count")))


def pack_records(layout: StructLayout, **fields: np.ndarray | int) -> np.ndarray:
    """Return 64-bit records of ``layout``: uint64 ``[n]``; see :func:`host.layouts.pack`."""
    return pack(layout, **fields).astype("<u4").view("<u8").reshape(-1)


def parse_records(layout: StructLayout, beats: np.ndarray, count: int) -> dict[str, np.ndarray]:
    """Return the fields of the first ``count`` 64-bit records in payload ``beats``."""
    words = beats.reshape(-1, RECORD_BITS // 32)[:count]
    return {name: unpack(layout, words, name) for name in field_bits(layout)}


def records_to_beats(records: np.ndarray) -> np.ndarray:
    """Return payload beats of 64-bit records, the rest of the last beat zero."""
    padded = np.zeros(-(-len(records) // RECORDS_PER_BEAT) * RECORDS_PER_BEAT, "<u8")
    padded[:len(records)] = records
    return padded.view("<u4").reshape(-1, WORDS)


def query_records(samples: Samples, first_sample: int) -> np.ndarray:
    """Return the query records of ``samples``, numbered from ``first_sample``: uint64.

    Each sample is its head, then a record a slot: its keys, bag by bag, and one for an empty bag.
    """
    lengths = samples.bag_lengths
    n, tables = lengths.shape
    slots = np.maximum(lengths, 1).reshape(-1).astype(np.int64)
    # Places of the slots: one record before each sample for its head.
    slot_sample = np.repeat(np.repeat(np.arange(n), tables), slots)
    total = int(slots.sum())
    place = np.arange(total) + slot_sample + 1
    records = np.zeros(total + n, np.uint64)
    kinds = np.full(total, RecordKind.KEY, np.uint64)
    ends = np.cumsum(slots) - 1
    kinds[ends] = np.where(lengths.reshape(-1) == 0, RecordKind.EMPTY, RecordKind.KEY_END)
    rows, table = np.zeros(total, np.uint64), np.zeros(total, np.uint64)
    full = kinds != RecordKind.EMPTY
    rows[full], table[full] = samples.rows, samples.tables
    records[place] = pack_records(QueryRecord, row=rows, table=table, kind=kinds)
    sample_slots = samples.slots
    heads = np.concatenate(([0], np.cumsum(sample_slots + 1)[:-1])) if n else np.zeros(0, np.int64)
    if n:
        if int(sample_slots.max()) >> SampleRecord.members["slots"]:
            raise ValueError(f"slots of a sample must fit {SampleRecord.members['slots']} bits, "
                             f"not {int(sample_slots.max())!r}")
        numbers = (np.arange(n) + first_sample) & 0xFFFFFFFF
        records[heads] = pack_records(SampleRecord, sample=numbers, slots=sample_slots,
                                      kind=np.uint64(RecordKind.SAMPLE))
    return records


def query_packets(samples: Samples, first_sample: int, *, node: int, step: int,
                  payload_beats: int) -> list[np.ndarray]:
    """Return QUERIES packets of at most ``payload_beats`` behind the header."""
    records = query_records(samples, first_sample)
    per_packet = payload_beats * RECORDS_PER_BEAT
    packets = []
    for start in range(0, len(records), per_packet):
        part = records[start:start + per_packet]
        head = header_beat(Opcode.QUERIES, node=node, step=step, count=len(part))
        packets.append(np.concatenate((head, records_to_beats(part))))
    return packets


def vectors_packet(head: np.ndarray, tags: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return header beat, tag beats and vectors (float32 ``[n, dimension]``) as one packet."""
    tag_beats = -(-len(tags) // TAGS_PER_BEAT)
    padded = np.zeros(tag_beats * TAGS_PER_BEAT, "<u2")
    padded[:len(tags)] = tags
    body = np.ascontiguousarray(vectors, "<f4").view("<u4").reshape(-1, LANES)
    return np.concatenate((head, padded.view("<u4").reshape(-1, WORDS), body))


def gpu_vectors(tags: np.ndarray, vectors: np.ndarray, *, node: int, step: int,
                payload_beats: int) -> list[np.ndarray]:
    """Return GPU_VECTORS packets that answer the miss ids ``tags`` with ``vectors``."""
    beats = vectors.shape[1] // LANES
    per_packet = max(k for k in range(1, payload_beats)
                     if -(-k // TAGS_PER_BEAT) + k * beats <= payload_beats)
    packets = []
    for start in range(0, len(tags), per_packet):
        part = slice(start, start + per_packet)
        head = header_beat(Opcode.GPU_VECTORS, node=node, step=step, count=len(tags[part]))
        packets.append(vectors_packet(head, tags[part], vectors[part]))
    return packets


def parse_pooled(packet: np.ndarray, count: int) -> tuple[int, int, bool, np.ndarray]:
    """Return sample, first bag, whether it ends the sample, and the vectors of a POOLED packet."""
    sample, first_bag, last = (int(unpack(PooledTag, packet[1:2], name)[0])
                               for name in ("sample", "first_bag", "last"))
    vectors = np.ascontiguousarray(packet[2:]).view("<f4").reshape(count, -1)
    return sample, first_bag, bool(last), vectors


def parse_lookup_requests(packet: np.ndarray, count: int) -> dict[str, np.ndarray]:
    """Return tables, rows and landings (miss ids) of a LOOKUP_REQUESTS packet."""
    return parse_records(LookupRecord, packet[1:], count)


def parse_errors(packet: np.ndarray, count: int) -> dict[str, np.ndarray]:
    """Return samples, steps and statuses of an ERRORS packet."""
    return parse_records(ErrorRecord, packet[1:], count)


"""Packets between host and NIC, packed and parsed by the layouts of :mod:`rtl.formats`.

A packet is an array of beats, uint32 ``[n, 16]`` little-endian words, header beat first.
"""

from functools import cache
from struct import Struct
from typing import NamedTuple

import numpy as np
from amaranth.lib.data import StructLayout

from host.samples import Samples
from host.wire.layouts import field_bits, pack
from rtl.config import LANES
from rtl.formats import (
    BEAT_BYTES,
    EMBER_OFFSET,
    END_SAMPLE,
    RECORD_BITS,
    RECORDS_PER_BEAT,
    TAGS_PER_BEAT,
    VERSION,
    EmberHeader,
    ErrorRecord,
    Opcode,
    PooledTag,
    QueryRecord,
    RecordKind,
    SampleRecord,
)

__all__ = [
    "Header", "bag_slots", "destinations", "field_place", "gpu_vectors", "header_beat",
    "pack_records", "parse_errors", "parse_header", "parse_headers", "parse_pooled",
    "parse_records",
    "payload_records", "query_packets", "query_records", "record_fields", "records_to_beats",
    "share_end", "values_to_beats", "vectors_packet", "vectors_that_fit",
]

WORDS = BEAT_BYTES // 4


class Header(NamedTuple):
    """The fields of an EmberNIC header that a host uses; the low 16 bits of ``acknowledge``."""

    opcode: int
    source: int
    destination: int
    step: int
    acknowledge: int
    credit: int
    count: int


_WIDTHS = dict(EmberHeader.members)
_SHIFTS = {name: 8 * EMBER_OFFSET + EmberHeader[name].offset for name in _WIDTHS}
"""Lowest bit of each field in a header beat."""


def _header_struct() -> Struct:
    """Return a `Struct` that reads the fields of :class:`Header` from a header beat's bytes."""
    code, at = "<", 0
    for name in Header._fields:
        start, size = _SHIFTS[name] // 8, _WIDTHS[name] // 8
        code += f"{start - at}x{ {1: 'B', 2: 'H', 3: 'Hx', 4: 'I'}[size]}"
        at = start + size
    return Struct(f"{code}{BEAT_BYTES - at}x")


_HEADER = _header_struct()


def header_beat(opcode: Opcode, *, node: int, step: int, count: int, **fields: int) -> np.ndarray:
    """Return the header beat of a packet on a host port: uint32 ``[1, 16]``, framing zero."""
    values = {"version": VERSION, "opcode": opcode, "source": node, "destination": node,
              "step": step & 0xFFFF, "count": count, **fields}
    total = 0
    for name, value in values.items():
        if value >> _WIDTHS[name]:
            raise ValueError(f"{name} must fit {_WIDTHS[name]} bits, not {value!r}")
        total |= int(value) << _SHIFTS[name]
    return np.frombuffer(total.to_bytes(BEAT_BYTES, "little"), "<u4").reshape(1, WORDS)


def parse_headers(beats: np.ndarray) -> list[Header]:
    """Return the headers in header beats, uint32 ``[n, 16]`` or wider."""
    raw = np.ascontiguousarray(beats[:, :WORDS], "<u4").tobytes()
    return [Header._make(fields) for fields in _HEADER.iter_unpack(raw)]


def parse_header(beat: np.ndarray) -> Header:
    """Return the header in a header beat, uint32 ``[16]``."""
    return parse_headers(beat[None])[0]


def field_place(name: str) -> tuple[int, int]:
    """Return the lowest bit and the width of a header's field in the header beat."""
    return _SHIFTS[name], _WIDTHS[name]


def destinations(beats: np.ndarray) -> list[int]:
    """Return the destination nodes of header beats, uint32 ``[n, 16]`` or wider."""
    word, shift = divmod(_SHIFTS["destination"], 32)
    mask = (1 << _WIDTHS["destination"]) - 1
    return (beats[:, word] >> np.uint32(shift) & np.uint32(mask)).tolist()


def pack_records(layout: StructLayout, **fields: np.ndarray | int) -> np.ndarray:
    """Return 64-bit records of ``layout``: uint64 ``[n]``; see :func:`host.wire.layouts.pack`."""
    return pack(layout, **fields).astype("<u4").view("<u8").reshape(-1)


def parse_records(layout: StructLayout, beats: np.ndarray, count: int) -> dict[str, np.ndarray]:
    """Return the fields of the first ``count`` 64-bit records in payload ``beats``."""
    return record_fields(layout, payload_records(beats, count))


def payload_records(beats: np.ndarray, count: int) -> np.ndarray:
    """Return the first ``count`` 64-bit records in payload ``beats``: uint64 ``[count]``."""
    return np.ascontiguousarray(beats, "<u4").reshape(-1).view(f"<u{RECORD_BITS // 8}")[:count]


def record_fields(layout: StructLayout, records: np.ndarray) -> dict[str, np.ndarray]:
    """Return the fields of 64-bit ``records``: uint64 each."""
    return {name: records >> np.uint64(offset) & np.uint64((1 << width) - 1)
            for name, (offset, width) in field_bits(layout).items()}


def records_to_beats(records: np.ndarray) -> np.ndarray:
    """Return payload beats of 64-bit records; the last beat is zero-padded."""
    padded = np.zeros(-(-len(records) // RECORDS_PER_BEAT) * RECORDS_PER_BEAT, "<u8")
    padded[:len(records)] = records
    return padded.view("<u4").reshape(-1, WORDS)


def values_to_beats(values: np.ndarray) -> np.ndarray:
    """Return beats of concatenated vectors, float32 ``[n, dimension]``, zero-padded."""
    beats = np.zeros((-(-values.size // LANES), WORDS), "<u4")
    beats.reshape(-1).view("<f4")[:values.size] = values.reshape(-1)
    return beats


def query_records(samples: Samples, first_sample: int,
                  sent: np.ndarray | None = None) -> np.ndarray:
    """Return the query records of ``samples``, numbered from ``first_sample``: uint64.

    Each sample is a head and a record per slot: its keys, bag by bag, and a record per empty bag.
    ``sent``: whether to send each bag, bool ``[n, tables]``; None for all bags. A sample without a
    bag to send has no records.
    """
    lengths = samples.bag_lengths
    n, tables = lengths.shape
    slots = bag_slots(lengths, sent)
    sample_slots = slots.sum(axis=1)
    headed = sample_slots > 0
    slots = slots.reshape(-1)
    # Positions of the slots: each sample begins with a head record.
    slot_sample = np.repeat(np.repeat(np.arange(n), tables), slots)
    total = int(slots.sum())
    place = np.arange(total) + np.cumsum(headed)[slot_sample]
    records = np.zeros(total + np.count_nonzero(headed), np.uint64)
    kinds = np.full(total, RecordKind.KEY, np.uint64)
    ends = np.cumsum(slots)[slots > 0] - 1
    kinds[ends] = np.where(lengths.reshape(-1)[slots > 0] == 0, RecordKind.EMPTY,
                           RecordKind.KEY_END)
    rows, table = np.zeros(total, np.uint64), np.zeros(total, np.uint64)
    full = kinds != RecordKind.EMPTY
    keys = slice(None) if sent is None else np.repeat(sent.reshape(-1), lengths.reshape(-1))
    rows[full], table[full] = samples.rows[keys], samples.tables[keys]
    records[place] = pack_records(QueryRecord, row=rows, table=table, kind=kinds)
    if n:
        if int(sample_slots.max()) >> SampleRecord.members["slots"]:
            raise ValueError(f"slots of a sample must fit {SampleRecord.members['slots']} bits, "
                             f"not {int(sample_slots.max())!r}")
        sizes = sample_slots[headed] + 1
        records[np.cumsum(sizes) - sizes] = pack_records(
            SampleRecord, sample=(np.flatnonzero(headed) + first_sample) & 0xFFFFFFFF,
            slots=sample_slots[headed], kind=np.uint64(RecordKind.SAMPLE))
    return records


def bag_slots(lengths: np.ndarray, sent: np.ndarray | None = None) -> np.ndarray:
    """Return the slots of each bag: a slot per key, a slot for an empty bag, and 0 slots for a bag
    that is not ``sent``; int64."""
    slots = np.maximum(lengths, 1).astype(np.int64)
    return slots if sent is None else slots * sent


def share_end() -> np.ndarray:
    """Return the query records that end a share with ``unique`` delivery: uint64 ``[2]``."""
    return np.concatenate((
        pack_records(SampleRecord, sample=END_SAMPLE, slots=1, kind=RecordKind.SAMPLE, ends=1),
        pack_records(QueryRecord, kind=RecordKind.EMPTY)))


def query_packets(records: np.ndarray, *, node: int, step: int, payload_beats: int,
                  items: np.ndarray | None = None,
                  opcode: Opcode = Opcode.QUERIES) -> list[np.ndarray]:
    """Return QUERIES packets of ``records``, or packets of another ``opcode``, with at most
    ``payload_beats`` after the header.

    items: places at which a packet may begin, ascending from 0; None for every place.

    ``ValueError`` if the words from one place to the next exceed a packet.
    """
    per_packet = payload_beats * RECORDS_PER_BEAT
    cuts = list(range(0, len(records), per_packet)) if items is None else _cuts(
        np.append(items, len(records)), per_packet)
    packets = []
    for start, end in zip(cuts, [*cuts[1:], len(records)]):
        part = records[start:end]
        head = header_beat(opcode, node=node, step=step, count=len(part))
        packets.append(np.concatenate((head, records_to_beats(part))))
    return packets


def _cuts(items: np.ndarray, most: int) -> list[int]:
    """Return the begins of packets of at most ``most`` words; the last item is the end."""
    cuts, at = [], 0
    while at < len(items) - 1:
        cuts.append(int(items[at]))
        end = int(np.searchsorted(items, cuts[-1] + most, side="right")) - 1
        if end == at:
            raise ValueError(f"words of a bag must be at most {most}, those of a packet, "
                             f"not {items[at + 1] - cuts[-1]}")
        at = end
    return cuts


def vectors_packet(head: np.ndarray, tags: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return header beat, tag beats and vectors as one packet.

    vectors: float32 or, in lanes, uint32 ``[n, dimension]``. They are concatenated, and the last
    beat is zero-padded.
    """
    first = 1 - -len(tags) // TAGS_PER_BEAT
    packet = np.zeros((first - -vectors.size // LANES, WORDS), "<u4")
    packet[:1] = head
    packet[1:first].reshape(-1).view("<u2")[:len(tags)] = tags
    packet[first:].reshape(-1)[:vectors.size] = vectors.reshape(-1).view("<u4")
    return packet


@cache
def vectors_that_fit(dimension: int, payload_beats: int) -> int:
    """Return the maximum number of vectors, with their tag beats, in a payload; 0 if no vector
    fits.
    """
    return max((k for k in range(1, LANES // 4 * payload_beats)
                if -(-k // TAGS_PER_BEAT) - -k * dimension // LANES <= payload_beats), default=0)


def gpu_vectors(tags: np.ndarray, vectors: np.ndarray, *, node: int, step: int,
                payload_beats: int, opcode: Opcode = Opcode.GPU_VECTORS,
                final_beat: int = 0) -> list[np.ndarray]:
    """Return packets that answer the miss ids ``tags`` with ``vectors``.

    final_beat: field of the header.

    With ``opcode`` DENSE_VECTORS, they answer requests for dense vectors; the tags are slots.
    """
    per_packet = vectors_that_fit(vectors.shape[1], payload_beats)
    packets = []
    for start in range(0, len(tags), per_packet):
        part = slice(start, start + per_packet)
        head = header_beat(opcode, node=node, step=step, count=len(tags[part]),
                           final_beat=final_beat)
        packets.append(vectors_packet(head, tags[part], vectors[part]))
    return packets


_POOLED_TAG = [(offset, (1 << width) - 1) for offset, width in map(
    field_bits(PooledTag).get, ("sample", "first_bag", "last", "status"))]


def parse_pooled(packet: np.ndarray, count: int,
                 dimension: int) -> tuple[int, int, bool, np.ndarray, int]:
    """Return the content of a POOLED packet.

    The result contains sample, first bag, whether the packet ends the sample, vectors, and the
    status of the last vector. Raises ``ValueError`` if the packet's beats do not match ``count``
    vectors.
    """
    tag = int.from_bytes(packet[1].tobytes(), "little")
    sample, first_bag, last, status = (tag >> offset & mask for offset, mask in _POOLED_TAG)
    values = np.ascontiguousarray(packet[2:]).view("<f4")
    if -(-count * dimension // LANES) != len(values):
        raise ValueError(f"count must match {len(values)} beats of vectors, not {count!r}")
    vectors = values.reshape(-1)[:count * dimension].reshape(count, dimension)
    return sample, first_bag, bool(last), vectors, status


def parse_errors(packet: np.ndarray, count: int) -> dict[str, np.ndarray]:
    """Return samples, steps and statuses of an ERRORS packet."""
    return parse_records(ErrorRecord, packet[1:], count)


"""Packets of gradients: a vector per bag, from a GPU's backward pass to the NIC."""

import numpy as np

from host.wire.packets import header_beat, pack_records, records_to_beats, values_to_beats
from rtl.config import LANES
from rtl.formats import RECORDS_PER_BEAT, GradientRecord, Opcode, RecordKind

__all__ = ["end_packet", "gradient_packets", "longest_bag"]


def gradient_packets(tables: np.ndarray, rows: np.ndarray, bag_lengths: np.ndarray,
                     gradients: np.ndarray, *, node: int, step: int,
                     payload_beats: int) -> list[np.ndarray]:
    """Return the minimum number of GRADIENTS packets for the bags, in order and each bag whole.

    Parameters
    ----------
    tables, rows: keys, bag by bag: integers ``[keys]``.
    bag_lengths: keys of each bag: integers ``[bags]``. An empty bag has no row for its gradient and
        is omitted.
    gradients: float32 ``[bags, dimension]``.
    node, step: for the headers.
    payload_beats: maximum beats of a packet after its header.

    Raises
    ------
    ValueError
        The shapes are inconsistent, a value does not fit its field, or a bag does not fit a packet.
    """
    lengths = np.asarray(bag_lengths, np.int64)
    _check(tables, rows, lengths, gradients, payload_beats)
    kept = lengths > 0
    lengths, vectors = lengths[kept], gradients[kept]
    key_ends = np.concatenate(([0], np.cumsum(lengths)))
    kinds = np.full(len(rows), RecordKind.KEY, np.uint64)
    kinds[key_ends[1:] - 1] = RecordKind.KEY_END
    records = pack_records(GradientRecord, row=rows, table=tables, kind=kinds)
    packets, first = [], 0
    while first < len(lengths):
        # Every bag has a record, so a packet has no more bags than records.
        ends = key_ends[first + 1:first + RECORDS_PER_BEAT * payload_beats + 1]
        beats = _beats(ends - key_ends[first], np.arange(1, len(ends) + 1), vectors.shape[1])
        stop = first + int(np.searchsorted(beats, payload_beats, side="right"))
        part = records[key_ends[first]:key_ends[stop]]
        packets.append(np.concatenate((
            header_beat(Opcode.GRADIENTS, node=node, step=step, count=len(part)),
            records_to_beats(part), values_to_beats(vectors[first:stop]))))
        first = stop
    return packets


def end_packet(*, node: int, step: int) -> np.ndarray:
    """Return the GRADIENTS packet that ends a step: a single record, of kind EMPTY."""
    record = pack_records(GradientRecord, count=1, kind=RecordKind.EMPTY)
    return np.concatenate((header_beat(Opcode.GRADIENTS, node=node, step=step, count=1),
                           records_to_beats(record)))


def longest_bag(payload_beats: int, dimension: int) -> int:
    """Return the maximum keys of a bag that fits ``payload_beats`` with its gradient."""
    return RECORDS_PER_BEAT * max(0, payload_beats - -(-dimension // LANES))


def _check(tables, rows, lengths, gradients, payload_beats: int) -> None:
    """Raise ``ValueError`` for inconsistent arrays, or a bag that is too long."""
    if gradients.ndim != 2 or len(gradients) != len(lengths):
        raise ValueError(f"gradients must be {len(lengths)} vectors, one per bag, "
                         f"not of shape {gradients.shape}")
    if lengths.size and lengths.min() < 0:
        raise ValueError(f"bag_lengths must be at least 0, not {int(lengths.min())}")
    for name, keys in (("tables", tables), ("rows", rows)):
        if len(keys) != lengths.sum():
            raise ValueError(f"{name} must be {int(lengths.sum())}, the sum of bag_lengths, "
                             f"not {len(keys)}")
    longest = longest_bag(payload_beats, gradients.shape[1])
    if lengths.size and lengths.max() > longest:
        raise ValueError(f"bag_lengths must be at most {longest} for a bag to fit a packet of "
                         f"{payload_beats} beats, not {int(lengths.max())}")


def _beats(keys: np.ndarray, bags: np.ndarray, dimension: int) -> np.ndarray:
    """Return the payload beats of packets with ``keys`` keys and ``bags`` bags."""
    return -(-keys // RECORDS_PER_BEAT) - -bags * dimension // LANES

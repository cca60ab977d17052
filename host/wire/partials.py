"""Packets of single gradient or row beats: PARTIALS, SPILLED, RETURNED, ROW_UPDATES.

A partial's beat has 16 values, or the whole vector of 4 or 8 values. Several short vectors share a
packet beat, see :mod:`rtl.stream.packing`.
"""

from typing import NamedTuple

import numpy as np

from host.wire.packets import (
    header_beat,
    pack_records,
    parse_records,
    records_to_beats,
    values_to_beats,
)
from rtl.config import LANES, packing_of, partials_in
from rtl.formats import RECORDS_PER_BEAT, Opcode, PartialRecord

__all__ = ["Partials", "parse_partials", "partial_packets", "partials_that_fit"]


class Partials(NamedTuple):
    """Partial beats and their keys: uint64 ``[n]`` each, values float32 ``[n, 4, 8 or 16]``."""

    tables: np.ndarray
    rows: np.ndarray
    beats: np.ndarray
    levels: np.ndarray
    values: np.ndarray


def _payload(count: int, width: int) -> int:
    """Return the payload beats of ``count`` partials of ``width`` values."""
    return -(-count // RECORDS_PER_BEAT) - -count // (1 << packing_of(width))


def _check_width(width: int) -> None:
    if width not in (4, 8, LANES):
        raise ValueError(f"values must be 4, 8 or {LANES} a beat, not {width!r}")


def partials_that_fit(payload_beats: int, width: int = LANES) -> int:
    """Return the maximum number of partials of ``width`` values in ``payload_beats`` after a
    header.

    Raises ``ValueError`` if no partial fits, or for a width other than 4, 8 and 16.
    """
    _check_width(width)
    if payload_beats < 2:
        raise ValueError(f"payload_beats must be at least 2, not {payload_beats!r}")
    return partials_in(payload_beats, packing_of(width))


def partial_packets(opcode: Opcode, tables: np.ndarray, rows: np.ndarray, beats: np.ndarray | int,
                    values: np.ndarray, *, node: int, step: int, payload_beats: int,
                    level: int = 0, **fields: int) -> list[np.ndarray]:
    """Return packets of partials in order, each as full as possible.

    Parameters
    ----------
    opcode: PARTIALS, SPILLED, RETURNED or ROW_UPDATES.
    tables, rows, beats: integers ``[n]``: key of each partial, and its beat within its vector (0 if
        every vector is a single beat).
    values: float32 ``[n, 4, 8 or 16]``.
    node, step: for the headers; ``fields``: further fields, such as ``source`` and ``credit``.
    payload_beats: maximum beats of a packet after its header.
    level: reduction level of all records, see :class:`rtl.formats.ReductionLevel`.

    Raises ``ValueError`` for inconsistent shapes and values that do not fit their fields.
    """
    if values.ndim != 2 or len(values) != len(tables) or len(rows) != len(tables):
        raise ValueError(f"values must be {len(tables)} beats, one for each of tables and rows "
                         f"({len(rows)}), not of shape {values.shape}")
    most = partials_that_fit(payload_beats, values.shape[1])
    records = pack_records(PartialRecord, count=len(tables), table=tables, row=rows, beat=beats,
                           level=level)
    packets = []
    for first in range(0, len(records), most):
        part = slice(first, first + most)
        packets.append(np.concatenate((
            header_beat(opcode, node=node, step=step, count=len(records[part]), **fields),
            records_to_beats(records[part]), values_to_beats(values[part]))))
    return packets


def parse_partials(packet: np.ndarray, count: int, width: int = LANES) -> Partials:
    """Return the ``count`` partials of ``width`` values in a packet, header beat included.

    Raises ``ValueError`` if the packet's beats do not match ``count``.
    """
    _check_width(width)
    if not count or len(packet) - 1 != _payload(count, width):
        raise ValueError(f"count must fill the {len(packet) - 1} payload beats with partials of "
                         f"{width} values, not {count!r}")
    record_beats = -(-count // RECORDS_PER_BEAT)
    fields = parse_records(PartialRecord, packet[1:], count)
    values = np.ascontiguousarray(packet[1 + record_beats:], "<u4").view("<f4").reshape(-1)
    return Partials(fields["table"], fields["row"], fields["beat"], fields["level"],
                    values[:count * width].reshape(count, width))

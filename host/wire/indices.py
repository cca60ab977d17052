"""Packets of indices, which map each slot to a vector of the step."""

from typing import NamedTuple

import numpy as np

from host.wire.layouts import field_bits, pack
from host.wire.packets import WORDS, header_beat
from rtl.formats import INDICES_PER_BEAT, NO_INDEX, IndexTag, Opcode

__all__ = ["MOST_INDICES", "IndexPart", "check_share", "index_packet", "parse_indices",
           "pooled_instead"]

MOST_INDICES = NO_INDEX
"""Maximum number of indices of a step: 0 to ``MOST_INDICES`` - 1."""


class IndexPart(NamedTuple):
    """The indices of a packet.

    Members
    -------
    sample, first_slot: sample of the first slot, and the slot's number in the sample.
    samples: number of consecutive samples, modulo 2^32, with slots in this packet.
    last: whether the packet ends its last sample.
    indices: an index per slot, uint16.
    """

    sample: int
    first_slot: int
    samples: int
    last: bool
    indices: np.ndarray


def check_share(slots: int) -> None:
    """Raise ``ValueError`` if a share of ``slots`` slots may have more distinct keys than indices.
    """
    if slots > MOST_INDICES:
        raise ValueError(f"slots of a share must be at most {MOST_INDICES} with deliver unique, "
                         f"not {slots!r}: use deliver pooled or a smaller mini-batch")


def pooled_instead(slots: int) -> str:
    """Return the line which tells that NICs pool, because a share has ``slots`` slots."""
    return (f"NICs deliver pooled vectors: deliver unique supports at most {MOST_INDICES:,} slots "
            f"in a share, not {slots:,}")


_TAG = [(offset, (1 << width) - 1) for offset, width in map(
    field_bits(IndexTag).get, ("sample", "first_slot", "samples", "last"))]


def parse_indices(packet: np.ndarray, count: int) -> IndexPart:
    """Return the content of an INDICES packet of ``count`` indices.

    Raises ``ValueError`` if its beats do not match ``count``, or its number of samples is invalid.
    """
    if count < 1 or len(packet) != 2 - -count // INDICES_PER_BEAT:
        raise ValueError(f"count must match {max(len(packet) - 2, 0)} beats of indices, "
                         f"not {count!r}")
    tag = int.from_bytes(packet[1].tobytes(), "little")
    sample, first_slot, samples, last = (tag >> offset & mask for offset, mask in _TAG)
    if not 1 <= samples <= count:
        raise ValueError(f"samples must be between 1 and {count}, not {samples!r}")
    indices = np.ascontiguousarray(packet[2:], "<u4").reshape(-1).view("<u2")[:count]
    return IndexPart(sample, first_slot, samples, bool(last), indices)


def index_packet(part: IndexPart, *, node: int, step: int, **fields: int) -> np.ndarray:
    """Return an INDICES packet; ``fields`` are further header fields."""
    count = len(part.indices)
    packet = np.zeros((2 - -count // INDICES_PER_BEAT, WORDS), "<u4")
    packet[:1] = header_beat(Opcode.INDICES, node=node, step=step, count=count, **fields)
    tag = pack(IndexTag, 1, sample=part.sample, first_slot=part.first_slot, samples=part.samples,
               last=int(part.last))
    packet[1:2] = tag
    packet[2:].reshape(-1).view("<u2")[:count] = part.indices
    return packet

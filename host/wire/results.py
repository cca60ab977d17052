"""Packets of interaction results, parsed by the layouts of :mod:`rtl.formats`."""

import numpy as np

from host.wire.layouts import field_bits
from rtl.config import LANES
from rtl.formats import SAMPLES_PER_BEAT, ResultPartTag

__all__ = ["parse_result_part", "parse_results"]


def parse_results(packet: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples (uint32 ``[count]``) and beats of a RESULTS packet.

    The beats are float32 ``[count, beats of a result, 16]``. Raises ``ValueError`` if ``count``
    results of equal length do not fill the packet.
    """
    first = 1 - -count // SAMPLES_PER_BEAT
    beats = len(packet) - first
    if not count or beats <= 0 or beats % count:
        raise ValueError(f"count must divide the {max(beats, 0)} beats of results, not {count!r}")
    samples = np.ascontiguousarray(packet[1:first], "<u4").reshape(-1)[:count]
    values = np.ascontiguousarray(packet[first:]).view("<f4")
    return samples, values.reshape(count, -1, LANES)


_PART_TAG = [(offset, (1 << width) - 1) for offset, width in map(
    field_bits(ResultPartTag).get, ("sample", "first_beat", "last", "status"))]


def parse_result_part(packet: np.ndarray, count: int) -> tuple[int, int, bool, np.ndarray, int]:
    """Return the content of a RESULT_PART packet.

    The result contains sample, first beat, whether the packet ends the result, beats (float32
    ``[count, 16]``), and the status of the result. Raises ``ValueError`` if the number of beats is
    not ``count``.
    """
    tag = int.from_bytes(packet[1].tobytes(), "little")
    sample, first_beat, last, status = (tag >> offset & mask for offset, mask in _PART_TAG)
    values = np.ascontiguousarray(packet[2:]).view("<f4")
    if count != len(values):
        raise ValueError(f"count must be {len(values)}, the beats of the packet, not {count!r}")
    return sample, first_beat, bool(last), values, status

"""Packets of results made by hand."""

import numpy as np
import pytest

from host.wire.results import parse_result_part, parse_results
from rtl.formats import Status


def _packet(tags: list[int], beats: int) -> np.ndarray:
    """Return a header beat, tag beats of 32-bit words and beats that count 0, 1, ... by lane."""
    words = np.zeros(-(-len(tags) // 16) * 16, np.uint32)
    words[:len(tags)] = tags
    values = np.arange(16 * beats, dtype=np.float32).view(np.uint32)
    return np.concatenate((np.zeros(16, np.uint32), words, values)).reshape(-1, 16)


@pytest.mark.parametrize(("count", "each"), [(1, 23), (2, 23), (16, 3), (17, 3), (33, 1), (60, 1)])
def test_results(count, each):
    numbers = [0xFFFFFFFF - 3 * k for k in range(count)]
    samples, beats = parse_results(_packet(numbers, count * each), count)
    assert samples.tolist() == numbers
    assert beats.dtype == np.float32 and beats.shape == (count, each, 16)
    assert beats.reshape(-1).tolist() == list(range(16 * count * each))


@pytest.mark.parametrize(("count", "beats"), [(2, 3), (0, 4), (3, 0), (17, 16)])
def test_results_that_cannot_be(count, beats):
    with pytest.raises(ValueError, match=rf"^count must divide the \d+ beats .*, not {count}$"):
        parse_results(_packet([1] * max(count, 1), beats), count)


def test_parts_of_results():
    packet = _packet([77, 63 | 1 << 16], 5)
    sample, first, last, beats, status = parse_result_part(packet, 5)
    assert (sample, first, last, status) == (77, 63, True, 0)
    assert beats.shape == (5, 16) and beats.reshape(-1).tolist() == list(range(80))
    assert parse_result_part(_packet([1 << 31, 2], 1), 1)[:3] == (1 << 31, 2, False)
    assert parse_result_part(_packet([0, Status.PEER << 17], 1), 1)[4] == Status.PEER
    with pytest.raises(ValueError, match=r"^count must be 5, the beats of the packet, not 4$"):
        parse_result_part(packet, 4)

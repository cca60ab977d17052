"""Rows that a NIC reads: each takes a request, a tag and a completion."""

from dataclasses import replace

import pytest

from host.timing.pcie import Pcie, PcieProfile
from host.timing.row_reads import RowReadTimes

# A byte takes a quarter of a cycle, and a round trip takes 250.
PROFILE = PcieProfile("pcie", 0.5, 1.0, read_tags=16, request_bytes=24, completion_bytes=20)


def times(row_bytes: int = 64, **changes: int) -> RowReadTimes:
    profile = replace(PROFILE, **changes)
    return RowReadTimes(profile, Pcie(profile), row_bytes)


@pytest.mark.parametrize("row_bytes, reads, answers", [
    (16, 1, 36), (64, 1, 84), (256, 1, 276), (320, 1, 360), (512, 1, 552), (1024, 2, 1104)])
def test_bytes_of_a_row(row_bytes, reads, answers):
    """A read and a completion have a maximum size."""
    one = times(row_bytes)
    assert (one.reads, one.request_bytes, one.answer_bytes) == (reads, 24 * reads, answers)


def test_a_packet_stands_for_as_many_bytes():
    one = times()
    assert (one.asked(2, 128), one.asked(8, 128)) == (0, 64)
    assert (one.answered(1, 192), one.answered(8, 640)) == (0, 32)


def test_requests_follow_each_other():
    one = times()
    assert one.take(1000.0, 8, 128) == 1000 + 64 / 4
    assert one.take(1004.0, 2, 128) == 1016  # within its packet only, behind the first
    assert one.take(2000.0, 8, 128) == 2016


def test_reads_wait_for_tags():
    """The tags of the oldest reads are free a round trip after their rows have left and have
    crossed."""
    one = times()
    first = one.take(1000.0, 16, 192)
    assert first == 1000 + (16 * 24 - 192) / 4
    assert one.take(1000.0, 1, 128) == first + 250 + 16 * 84 / 4
    assert times(read_tags=4).take(0.0, 16, 384) == 0  # reads beyond the tags do not wait

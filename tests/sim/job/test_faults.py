"""Faults: their parser, and its error messages."""

from math import inf

import pytest

from sim.job.fault_plan import FaultPlan
from sim.job.faults import Silence, Windows, windows
from sim.job.options import RunOptions


def parse_faults(text: str | None, nodes: int) -> tuple[Silence, ...]:
    return FaultPlan.of(text, nodes).silences


def test_parsing():
    assert parse_faults(None, 4) == ()
    assert parse_faults("silent-gpu=20us:1ms@2, silent-host=1.5us:", 4) == (
        Silence("gpu", 20, 1000, 2), Silence("host", 1.5, inf))
    assert parse_faults("silent-network=0us:4ns", 2) == (Silence("network", 0, 0.004),)


@pytest.mark.parametrize(("text", "nodes", "message"), [
    ("lose=1", 4, "faults must be silent-PART=START:LENGTH"),
    ("silent-gpu=20us", 4, "faults must be silent-PART=START:LENGTH"),
    ("", 4, "not ''"),
    ("silent-disk=20us:1ms", 4, "part of silent-disk must be one of host, gpu, network"),
    ("silent-gpu=20:1ms", 4, "silent-gpu: start must be a string with a number and a unit"),
    ("silent-gpu=20us:1 GB", 4, "silent-gpu: length must have one of the units ns, us, ms, s"),
    ("silent-gpu=-1us:1ms", 4, "start of silent-gpu must be at least 0 us, not '-1us'"),
    ("silent-gpu=1us:0us", 4, "length of silent-gpu must be above 0 us"),
    ("silent-gpu=1us:1us@4", 4, "node of silent-gpu must be between 0 and 3, not '4'"),
    ("silent-gpu=1us:1us@x", 4, "node of silent-gpu must be between 0 and 3, not 'x'"),
    ("silent-network=1us:1us", 1, "silent-network must go with at least 2 nodes, not 1"),
])
def test_mistakes(text, nodes, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        RunOptions.of(nodes=nodes, faults=text)
    assert "\n" not in str(error.value)


def test_patience_is_bounded():
    with pytest.raises(ValueError, match="patience must be at least 1, not 0"):
        RunOptions.of(patience=0)


def test_windows_that_meet_are_merged():
    spans = Windows([(50, 60), (10, 20), (15, 30), (60, 70), (90, inf)])
    assert spans.spans == [(10, 30), (50, 70), (90, inf)]
    assert [spans.after(time) for time in (0, 10, 29.5, 30, 50, 69, 70, 1000)] == [
        0, 30, 30, 30, 70, 70, 70, inf]


def test_windows_of_a_part_and_node():
    faults = parse_faults("silent-gpu=1us:2us@1,silent-gpu=10us:,silent-host=1us:1us", 2)
    assert windows(faults, "gpu", 1, 1000).spans == [(1250, 1750), (3500, inf)]
    assert windows(faults, "gpu", 0, 1000).spans == [(3500, inf)]
    assert windows(faults, "network", 0, 1000).spans == []

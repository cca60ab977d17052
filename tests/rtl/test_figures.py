"""Latency and rate of blocks: all blocks declare them in the same form."""

import importlib
import pkgutil
from collections.abc import Iterator

import pytest
from amaranth.lib import wiring

import rtl
from rtl.config import preset
from rtl.figures import latency_of, rate_of
from rtl.float import DOT_LATENCY, DOT_TREE_LATENCY
from rtl.interaction.dot_array import DotArray
from rtl.network import FrameAssembler
from rtl.stream import SkidBuffer


def blocks() -> Iterator[type]:
    """Return every component of ``rtl``."""
    for found in pkgutil.walk_packages(rtl.__path__, "rtl."):
        module = importlib.import_module(found.name)
        yield from (kind for kind in vars(module).values()
                    if isinstance(kind, type) and issubclass(kind, wiring.Component)
                    and kind.__module__ == found.name)


TIMED = [block for block in blocks() if latency_of(block) or rate_of(block)]


def test_most_blocks_have_figures():
    assert len(TIMED) > 80


@pytest.mark.parametrize("block", TIMED, ids=lambda block: f"{block.__module__}.{block.__name__}")
def test_figures_have_one_form(block):
    for path, cycles in latency_of(block).items():
        start, end = path
        assert start and end and isinstance(start, str) and isinstance(end, str)
        assert cycles >= 0 if isinstance(cycles, int) else isinstance(cycles, str) and cycles
    assert isinstance(rate_of(block), str) and not rate_of(block).endswith(".")


def test_a_block_without_figures_says_nothing():
    assert latency_of(int) == {} and rate_of(int) == ""


def test_dots_take_an_addition_more_where_vectors_have_several_slices():
    tiny = preset("tiny")
    assert DotArray.latency(tiny.with_fields(max_dimension=16)) == DOT_TREE_LATENCY + 1
    assert DotArray.latency(tiny.with_fields(max_dimension=32)) == DOT_LATENCY + 1


def test_parts_of_a_latency_are_the_whole():
    """A packet passes the assembler's input buffer, three steps of its header and the output."""
    whole = FrameAssembler.LATENCY["last payload beat of a packet", "its header beat"]
    part = FrameAssembler.LATENCY["last payload beat behind its buffer",
                                  "CRC and length, for the header"]
    assert whole == part + 2 * SkidBuffer.LATENCY["item", "the same item"] + 3

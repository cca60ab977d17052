"""AXI4 memory master: direction and layout of its five channels."""

import pytest
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from rtl.memory.axi4 import (
    ADDRESS_BITS,
    BURST_BEATS,
    ID_BITS,
    Address,
    axi4_master,
    read_beat,
    write_beat,
    write_done,
)


@pytest.mark.parametrize("width", [256, 512])
def test_channels(width):
    members = axi4_master(width).members
    expected = {"aw": (Out, Address), "w": (Out, write_beat(width)), "b": (In, write_done),
                "ar": (Out, Address), "r": (In, read_beat(width))}
    assert members.keys() == expected.keys()
    for name, (flow, layout) in expected.items():
        member = Out(stream.Signature(layout)) if flow is Out else In(stream.Signature(layout))
        assert members[name] == member


def test_layouts():
    assert write_beat(512).size == 512 + 64 + 1 and read_beat(512).size == 512 + ID_BITS + 3
    assert Address.size == ADDRESS_BITS + (BURST_BEATS - 1).bit_length() + ID_BITS
    assert write_done.size == ID_BITS + 2

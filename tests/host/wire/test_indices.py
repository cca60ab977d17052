"""Packets of indices, packed and parsed."""

import numpy as np
import pytest

from host.wire.indices import IndexPart, check_share, index_packet, parse_indices
from host.wire.packets import parse_header
from rtl.formats import EMPTY_INDEX, Opcode


@pytest.mark.parametrize("count", [1, 31, 32, 33, 2016])
def test_what_is_packed_is_parsed(count):
    part = IndexPart(0xFFFF_FFFF, 25, min(count, 3), bool(count & 1),
                     np.arange(count, dtype=np.uint16) ^ EMPTY_INDEX)
    packet = index_packet(part, node=3, step=0x1_0007, credit=9)
    assert packet.shape == (2 - -count // 32, 16)
    head = parse_header(packet[0])
    assert (head.opcode, head.step, head.count, head.credit) == (Opcode.INDICES, 7, count, 9)
    found = parse_indices(packet, head.count)
    assert found[:4] == part[:4] and found.indices.dtype == np.uint16
    assert found.indices.tolist() == part.indices.tolist()


@pytest.mark.parametrize("count", [0, 32, 65])
def test_counts_that_cannot_be(count):
    packet = index_packet(IndexPart(1, 0, 1, True, np.zeros(40, np.uint16)), node=0, step=1)
    with pytest.raises(ValueError, match=f"^count must match 2 beats of indices, not {count}$"):
        parse_indices(packet, count)


@pytest.mark.parametrize("samples", [0, 3])
def test_samples_that_cannot_be(samples):
    packet = index_packet(IndexPart(1, 0, samples, True, np.zeros(2, np.uint16)), node=0, step=1)
    with pytest.raises(ValueError, match=f"^samples must be between 1 and 2, not {samples}$"):
        parse_indices(packet, 2)


def test_a_share_has_no_more_slots_than_indices():
    check_share(65_534)
    with pytest.raises(ValueError, match=r"^slots of a share must be at most 65534 .*, not 65535: "
                                         r"use deliver pooled or a smaller mini-batch$"):
        check_share(65_535)

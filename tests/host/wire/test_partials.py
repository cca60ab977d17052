"""Packets of partials: decoding returns the packed partials, and so does the parser."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host.wire.packets import parse_header
from host.wire.partials import parse_partials, partial_packets, partials_that_fit
from rtl.formats import Opcode


def inputs(count, width, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 1 << 32, (count, width), np.uint32).view(np.float32)
    return (rng.integers(0, 1 << 12, count), rng.integers(0, 1 << 36, count),
            rng.integers(0, 16, count), values)


def read(packet, width):
    """Return [(table, row, beat, level, bits of values)] by counting bits, and check other bits."""
    payload = int.from_bytes(np.ascontiguousarray(packet[1:], "<u4").tobytes(), "little")
    count = parse_header(packet[0]).count
    first = 512 * -(-count // 8)
    assert not payload % (1 << first) >> 64 * count and not payload >> first + 32 * width * count
    assert len(packet) - 1 == first // 512 - -count * width // 16
    items = []
    for k in range(count):
        record = payload >> 64 * k & (1 << 64) - 1
        assert not record >> 53
        at = first + 32 * width * k
        items.append((record >> 36 & 0xFFF, record & (1 << 36) - 1, record >> 48 & 15,
                      record >> 52 & 1,
                      [payload >> at + 32 * lane & 0xFFFFFFFF for lane in range(width)]))
    return items


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 90), st.sampled_from([4, 8, 16]), st.integers(2, 40), st.integers(0, 1))
def test_round_trip_in_the_fewest_packets(count, width, payload_beats, level):
    given_ = inputs(count, width)
    packets = partial_packets(Opcode.SPILLED, *given_, node=3, step=0x1FFFE, level=level,
                              payload_beats=payload_beats, acknowledge=77)
    items = [item for packet in packets for item in read(packet, width)]
    tables, rows, beats, values = (array.tolist() for array in (
        *given_[:3], given_[3].view(np.uint32)))
    assert items == list(zip(tables, rows, beats, [level] * count, values, strict=True))
    for packet in packets:
        header = parse_header(packet[0])
        assert (header.opcode, header.destination, header.step) == (Opcode.SPILLED, 3, 0xFFFE)
        assert len(packet) <= 1 + payload_beats
        parsed = parse_partials(packet, header.count, width)
        again = zip(*(a.tolist() for a in parsed[:4]), parsed.values.view(np.uint32).tolist())
        assert list(again) == read(packet, width)
    most = partials_that_fit(payload_beats, width)
    assert [parse_header(p[0]).count for p in packets[:-1]] == [most] * (len(packets) - 1)
    assert -(-most // 8) - -most * width // 16 <= payload_beats
    assert -(-(most + 1) // 8) - -(most + 1) * width // 16 > payload_beats


def test_bad_input_is_named():
    tables, rows, beats, values = inputs(3, 16)
    with pytest.raises(ValueError, match="values must be 4, 8 or 16 a beat, not 12"):
        partial_packets(Opcode.RETURNED, tables, rows, beats, values[:, :12], node=0, step=0,
                        payload_beats=22)
    with pytest.raises(ValueError, match="values must be 3 beats"):
        partial_packets(Opcode.RETURNED, tables, rows, beats, values[:2], node=0, step=0,
                        payload_beats=22)
    with pytest.raises(ValueError, match="payload_beats must be at least 2, not 1"):
        partials_that_fit(1)
    packet, = partial_packets(Opcode.RETURNED, tables, rows, beats, values, node=0, step=0,
                              payload_beats=22)
    for count in (0, 4):
        with pytest.raises(ValueError, match="count must fill the 4 payload beats"):
            parse_partials(packet, count)

"""Packets that open, flush and complete a step."""

import numpy as np

from host.wire.completions import (
    Completion,
    completion_packet,
    flush_packet,
    flushed_packet,
    parse_completion,
    step_open_packet,
)
from host.wire.packets import parse_header, parse_records, share_end
from rtl.formats import (
    END_SAMPLE,
    Opcode,
    QueryRecord,
    RecordKind,
    SampleRecord,
    StepOpenRecord,
)


def test_a_step_is_opened():
    packet = step_open_packet(0x2_FFFF, 1 << 24, 0x1_0003, node=3)
    assert packet.shape == (2, 16)
    head = parse_header(packet[0])
    assert (head.opcode, head.source, head.step, head.count) == (Opcode.STEP_OPEN, 3, 0xFFFF, 1)
    fields = parse_records(StepOpenRecord, packet[1:], 1)
    assert {name: int(value[0]) for name, value in fields.items()} == {
        "samples": 1 << 24, "step": 0xFFFF, "freed": 3}


def test_a_flush_is_echoed():
    flush = flush_packet(15, 0xFFFF, node=3, step=7, credit=9)
    answer = flushed_packet(flush, node=3, step=7)
    head = parse_header(answer[0])
    assert (head.opcode, head.step, head.count, head.credit) == (Opcode.FLUSHED, 7, 1, 0)
    assert np.array_equal(answer[1:], flush[1:]) and len(answer) == 2


def test_the_word_that_is_packed_is_parsed():
    word = Completion(12, 0xFFFE, 255, 127, 0x1234_5678_9ABC_DEF0)
    packet = completion_packet(word, node=3, credit=9)
    head = parse_header(packet[0])
    assert (head.opcode, head.step, head.count, head.credit) == (Opcode.COMPLETION, 0xFFFE, 1, 9)
    assert parse_completion(packet) == word


def test_the_end_of_a_share():
    head, slot = share_end().view("<u4").reshape(2, 2)
    fields = parse_records(SampleRecord, head, 1)
    assert {name: int(value[0]) for name, value in fields.items()} == {
        "sample": END_SAMPLE, "slots": 1, "kind": RecordKind.SAMPLE, "ends": 1, "reserved": 0}
    assert int(parse_records(QueryRecord, slot, 1)["kind"][0]) == RecordKind.EMPTY

"""Packets of step records and states: packed values are read back, at the places of the format."""

import numpy as np

from host.wire.packets import header_beat, parse_header
from host.wire.steps import (
    StepNews,
    parse_states,
    parse_steps,
    state_packets,
    step_packet,
    written_packet,
)
from rtl.formats import Opcode, StepKind


def test_step_records():
    news = [StepNews(StepKind.PASSED, 0xFFFFFFFF, 1), StepNews(StepKind.CREDIT),
            StepNews(StepKind.END, 5)]
    packet = step_packet(Opcode.STEPS, news, node=2, step=9, credit=0xABCD, source=1)
    header = parse_header(packet[0])
    assert header == (Opcode.STEPS, 1, 2, 9, 0, 0xABCD, 3)
    assert packet.shape == (2, 16)
    assert packet[1].tolist() == [0xFFFFFFFF, 3 | 1 << 2, 0, 2, 5, 0] + [0] * 10
    assert parse_steps(packet, 3) == news


def test_written_counts_modulo_2_to_32():
    packet = written_packet((1 << 32) + 7, node=0, step=1)
    assert parse_header(packet[0]).opcode == Opcode.WRITTEN
    assert parse_steps(packet, 1) == [StepNews(0, 7, 0)]


def test_states():
    landings = np.arange(20) + 65516
    states = np.random.default_rng(0).standard_normal(20).astype(np.float32)
    packets = state_packets(Opcode.STATES, landings, states, node=0, step=3, payload_beats=2)
    assert [parse_header(p[0]).count for p in packets] == [16, 4]
    assert packets[0][1, :2].tolist() == [int(states[:1].view(np.uint32)[0]), 65516]
    read = [parse_states(p, parse_header(p[0]).count) for p in packets]
    assert np.concatenate([r[0] for r in read]).tolist() == landings.tolist()
    assert np.concatenate([r[1] for r in read]).tobytes() == states.tobytes()


def test_headers_give_what_was_acknowledged():
    beat = header_beat(Opcode.CREDIT, node=3, step=7, count=0, acknowledge=0x12BEEF, credit=0xCAFE,
                       sequence=0xFFFFFF)
    assert parse_header(beat[0]) == (Opcode.CREDIT, 3, 3, 7, 0xBEEF, 0xCAFE, 0)

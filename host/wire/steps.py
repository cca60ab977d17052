"""Packets of step records and of optimizer states.

STEPS, STEP_REPORTS and WRITTEN carry :data:`rtl.formats.StepRecord`, STATES and STATE_UPDATES
:data:`rtl.formats.StateRecord`; STATE_REQUESTS carry lookup records, which
:func:`host.wire.packets.parse_records` reads.
"""

from typing import NamedTuple

import numpy as np

from host.wire.packets import header_beat, pack_records, parse_records, records_to_beats
from rtl.formats import RECORDS_PER_BEAT, Opcode, StateRecord, StepKind, StepRecord

__all__ = ["StepNews", "parse_states", "parse_steps", "state_packets", "step_packet",
           "written_packet"]


class StepNews(NamedTuple):
    """Content of a step record; the step itself is in the header."""

    kind: int
    count: int = 0
    level: int = 0


def step_packet(opcode: Opcode, news: list[StepNews], *, node: int, step: int,
                **fields: int) -> np.ndarray:
    """Return a STEPS or STEP_REPORTS packet; ``fields`` are further header fields."""
    records = pack_records(StepRecord, kind=np.array([item.kind for item in news]),
                           level=np.array([item.level for item in news]))
    # ``count`` is also a parameter of ``pack_records``; the lowest field is therefore set here.
    records |= np.array([item.count for item in news], np.uint64)
    return np.concatenate((
        header_beat(opcode, node=node, step=step, count=len(news), **fields),
        records_to_beats(records)))


def parse_steps(packet: np.ndarray, count: int) -> list[StepNews]:
    """Return the ``count`` records of a STEPS, STEP_REPORTS or WRITTEN packet."""
    fields = parse_records(StepRecord, packet[1:], count)
    return [StepNews(*item) for item in zip(
        fields["kind"].tolist(), fields["count"].tolist(), fields["level"].tolist(), strict=True)]


def written_packet(total: int, *, node: int, step: int) -> np.ndarray:
    """Return the WRITTEN packet for ``total`` written row beats and states, modulo 2^32."""
    return step_packet(Opcode.WRITTEN, [StepNews(StepKind.END, total & 0xFFFFFFFF)],
                       node=node, step=step)


def state_packets(opcode: Opcode, landings: np.ndarray, states: np.ndarray, *, node: int,
                  step: int, payload_beats: int) -> list[np.ndarray]:
    """Return STATES or STATE_UPDATES packets: ``states``, float32 ``[n]``, for ``landings``."""
    bits = np.ascontiguousarray(states, "<f4").view("<u4")
    records = pack_records(StateRecord, count=len(bits), state=bits, landing=landings)
    most = RECORDS_PER_BEAT * payload_beats
    return [np.concatenate((
        header_beat(opcode, node=node, step=step, count=len(records[first:first + most])),
        records_to_beats(records[first:first + most])))
        for first in range(0, len(records), most)]


def parse_states(packet: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return landings (uint64) and states (float32) of a STATES or STATE_UPDATES packet."""
    fields = parse_records(StateRecord, packet[1:], count)
    return fields["landing"], fields["state"].astype("<u4").view("<f4")


assert StepRecord["count"].offset == 0

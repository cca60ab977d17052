"""Packets that open, flush and complete a step."""

from typing import NamedTuple

import numpy as np

from host.wire.packets import pack_records, parse_records, payload_records
from host.wire.record_packets import address_of, addressed, record_packet
from rtl.formats import CompletionRecord, FlushRecord, Opcode, StepOpenRecord

__all__ = ["Completion", "completion_packet", "flush_packet", "flushed_packet",
           "parse_completion", "step_open_packet"]


class Completion(NamedTuple):
    """The word of a completed step, and its slot in the ring.

    Members
    -------
    status: 0, or the status of the step's first error.
    step: number of the step modulo 2^16.
    lap: number of times that the ring has reached the slot, modulo 256.
    slot: number of the slot.
    address: address of the slot in GPU memory.
    """

    status: int
    step: int
    lap: int
    slot: int
    address: int


def step_open_packet(step: int, samples: int, freed: int, *, node: int) -> np.ndarray:
    """Return the STEP_OPEN packet of a step with ``samples`` answers for this host.

    freed: slots of the ring that the host has returned so far.
    """
    record = pack_records(StepOpenRecord, samples=samples, step=step & 0xFFFF,
                          freed=freed & 0xFFFF)
    return record_packet(Opcode.STEP_OPEN, record, node=node, step=step)


def flush_packet(slot: int, tag: int, *, node: int, step: int, **fields: int) -> np.ndarray:
    """Return a FLUSH packet; ``fields`` are further header fields."""
    record = pack_records(FlushRecord, slot=slot, tag=tag)
    return record_packet(Opcode.FLUSH, record, node=node, step=step, **fields)


def flushed_packet(flush: np.ndarray, *, node: int, step: int) -> np.ndarray:
    """Return the FLUSHED packet that answers ``flush``, a FLUSH packet of ``step``."""
    return record_packet(Opcode.FLUSHED, payload_records(flush[1:], 1), node=node, step=step)


def completion_packet(word: Completion, *, node: int, **fields: int) -> np.ndarray:
    """Return a COMPLETION packet; ``fields`` are further header fields."""
    record = pack_records(CompletionRecord, status=word.status, step=word.step, lap=word.lap,
                          slot=word.slot)
    packet = record_packet(Opcode.COMPLETION, record, node=node, step=word.step, **fields)
    return addressed(packet, word.address)


def parse_completion(packet: np.ndarray) -> Completion:
    """Return the word in a COMPLETION packet."""
    fields = parse_records(CompletionRecord, packet[1:], 1)
    return Completion(*(int(fields[name][0]) for name in ("status", "step", "lap", "slot")),
                      address_of(packet))

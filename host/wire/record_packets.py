"""Packets of a single record, and the GPU memory address of a packet from a NIC."""

import numpy as np

from host.wire.layouts import pack, unpack
from host.wire.packets import header_beat, records_to_beats
from rtl.formats import HostHeaderBeat, Opcode

__all__ = ["address_of", "addressed", "record_packet"]


def record_packet(opcode: Opcode, record: np.ndarray, *, node: int, step: int = 0,
                  **fields: int) -> np.ndarray:
    """Return a packet of a single record; ``fields`` are further header fields."""
    head = header_beat(opcode, node=node, step=step, count=1, **fields)
    return np.concatenate((head, records_to_beats(record)))


def address_of(packet: np.ndarray) -> int:
    """Return the GPU memory address of a packet from a NIC; 0 for a queue."""
    return int(unpack(HostHeaderBeat, packet[:1], "address")[0])


def addressed(packet: np.ndarray, address: int) -> np.ndarray:
    """Return a packet with address 0 as a packet for ``address``."""
    return np.concatenate((packet[:1] | pack(HostHeaderBeat, address=address), packet[1:]))

"""Packets of one record, and the address in GPU memory that a packet from a NIC is for."""

import numpy as np

from host.wire.layouts import pack, unpack
from host.wire.packets import header_beat, records_to_beats
from rtl.formats import HostHeaderBeat, Opcode

__all__ = ["address_of", "addressed", "record_packet"]


def record_packet(opcode: Opcode, record: np.ndarray, *, node: int, step: int = 0,
                  **fields: int) -> np.ndarray:
    """Return a packet of one record; ``fields`` are others of the header."""
    head = header_beat(opcode, node=node, step=step, count=1, **fields)
    return np.concatenate((head, records_to_beats(record)))


def address_of(packet: np.ndarray) -> int:
    """Return the address in GPU memory that a packet from a NIC is for; 0 for a queue."""
    return int(unpack(HostHeaderBeat, packet[:1], "address")[0])


def addressed(packet: np.ndarray, address: int) -> np.ndarray:
    """Return a packet with address 0 as one for ``address``."""
    return np.concatenate((packet[:1] | pack(HostHeaderBeat, address=address), packet[1:]))

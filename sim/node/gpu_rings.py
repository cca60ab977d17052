"""The rings of request lists and vectors of one NIC in GPU memory."""

import numpy as np

from host.timing.gpu import GpuLookups
from host.wire.gpu_rings import parse_read, parse_ring_index, read_data_packet
from host.wire.packets import Header, payload_records, vectors_that_fit
from host.wire.record_packets import address_of
from host.wire.rows import Answer
from rtl.config import NicConfig
from rtl.formats import Opcode
from sim.job.rings import rings_of
from sim.node.errors import COUNT, ProtocolError
from sim.node.resident_kernel import RequestList, ResidentKernel

__all__ = ["GpuRings"]

_COUNTED = 1 << 16


class GpuRings:
    """Two rings in GPU memory, of request lists and of vectors, and the checks of the NIC's
    accesses.

    The NIC writes list n to slot n of the first ring, and then the number of lists. The ``kernel``
    reads the lists and writes the vectors of list n to slot n of the second ring. The NIC reads the
    slot and then writes the number of slots that it has read; they may be filled again. Numbers
    start at 0; packets and registers contain them modulo 2^16.

    Parameters
    ----------
    node: its number.
    config: of its NIC.
    dimension: of a vector.
    kernel: reads lists and fills slots.
    answer: function from a list to its packets.

    Every member function raises :class:`ProtocolError` for an invalid access of the NIC.

    ``sim/host_cpp/gpu_rings.h`` does the same in C++.
    """

    opcodes = frozenset((Opcode.LOOKUP_REQUESTS, Opcode.INDEX, Opcode.READ))
    """Opcodes of packets that write to the rings or read from them."""

    def __init__(self, node: int, config: NicConfig, dimension: int, kernel: ResidentKernel,
                 answer: Answer):
        self._node, self._kernel, self._answer = node, kernel, answer
        self._lists, self._vectors = rings_of(config)
        self._most = vectors_that_fit(dimension, config.host_payload_beats)
        kernel.fill, kernel.slots = self._fill, self._vectors.slots
        self._written: list[RequestList] = []
        self._told = 0
        self._slots: dict[int, np.ndarray] = {}
        self._asked = 0

    @property
    def gathers(self) -> GpuLookups:
        """The kernel's gathers, for their counts."""
        return self._kernel.gathers

    def take(self, packet: np.ndarray, head: Header, now: float) -> np.ndarray | None:
        """Take a packet that reaches GPU memory at ``now``; return the answer to READ."""
        if head.opcode == Opcode.LOOKUP_REQUESTS:
            self._take_list(packet, head)
            return None
        if head.count != 1 or len(packet) != 2:
            raise self._wrong(COUNT.format(head.opcode))
        if head.opcode == Opcode.READ:
            return self._read(packet)
        self._take_index(packet, now)
        return None

    def _take_list(self, packet: np.ndarray, head: Header) -> None:
        records = payload_records(packet[1:], head.count)
        if len(records) != head.count or not 0 < head.count <= self._most:
            raise self._wrong(COUNT.format(head.opcode))
        number = self._told + len(self._written)
        address, expected = address_of(packet), self._lists.address(number)
        if address != expected:
            raise self._wrong(f"wrote request list {number} to {address:#x}, not to {expected:#x}")
        if number - self._kernel.consumed == self._lists.slots:
            raise self._wrong(f"wrote request list {number} over one that was not read yet")
        self._written.append(RequestList(head.step, records))

    def _take_index(self, packet: np.ndarray, now: float) -> None:
        address, index = address_of(packet), parse_ring_index(packet)
        if address == self._lists.index:
            ahead = (index - self._told) % _COUNTED
            if not 0 < ahead <= len(self._written):
                raise self._wrong(f"counted {index} request lists after {self._told % _COUNTED}, "
                                  f"of which {len(self._written)} more are written")
            self._told += ahead
            lists, self._written = self._written[:ahead], self._written[ahead:]
            self._kernel.take(lists, now)
        elif address == self._vectors.index:
            emptied = self._kernel.emptied
            ahead = (index - emptied) % _COUNTED
            if not 0 < ahead <= self._asked - emptied:
                raise self._wrong(f"counted {index} slots of vectors after {emptied % _COUNTED}, "
                                  f"of which {self._asked - emptied} more were read")
            for number in range(emptied, emptied + ahead):
                del self._slots[number]
            self._kernel.empty(ahead, now)
        else:
            raise self._wrong(f"wrote a count to {address:#x}, the address of no count")

    def _fill(self, number: int, filled: RequestList) -> None:
        [packet] = self._answer(filled.records, filled.step)
        self._slots[number] = packet[1:]

    def _read(self, packet: np.ndarray) -> np.ndarray:
        read, emptied = parse_read(packet), self._kernel.emptied
        number = emptied + (read.tag - emptied) % _COUNTED
        data = self._slots.get(number)
        if data is None:
            raise self._wrong(f"read slot {read.tag} of vectors, which is not filled")
        address = self._vectors.address(number)
        if (read.address, read.bytes) != (address, data.nbytes):
            raise self._wrong(f"read {read.bytes} bytes at {read.address:#x} for slot {read.tag} "
                              f"of vectors, which has {data.nbytes} at {address:#x}")
        self._asked = max(self._asked, number + 1)
        return read_data_packet(data, read.tag, node=self._node)

    def _wrong(self, what: str) -> ProtocolError:
        return ProtocolError(f"node {self._node} {what}")

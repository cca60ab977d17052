"""Hostile frames: random frames, and recorded honest frames with changes.

A frame here is its whole beats as bytes. A peer's frame has the addresses of the node that it
names, and correct sums and lengths. Any other frame is a *stranger's*.
"""

import random
import struct
from collections.abc import Sequence
from typing import NamedTuple

import google_crc32c
import numpy as np

from rtl.formats import EmberHeader, HeaderBeat, Opcode
from sim.nic.ports import BEAT_WORDS, DATA_WORDS, KEEP_WORDS, LAST_BIT

__all__ = ["KINDS", "Changed", "Frames", "beats_of", "is_peers", "sealed"]

MAC, IP, PORT = 0x02454D420000, 0x0A450000, 0x4853
"""Addresses of node 0, and port, of a run."""

BEAT = 64
_FULL = (1 << 64) - 1
_ADDRESSES = struct.Struct(">Q6xQ")
_FIELDS = [(HeaderBeat[name].offset, HeaderBeat[name].width)
           for name in HeaderBeat.members if name != "ember"] + [
    (HeaderBeat["ember"].offset + EmberHeader[name].offset, EmberHeader[name].width)
    for name in EmberHeader.members for _ in range(3)]
"""First bit and width of each field of a header; fields of the EmberNIC header three times."""

_EMBER = {name: (HeaderBeat["ember"].offset + EmberHeader[name].offset) // 8
          for name in EmberHeader.members}
_OPCODES = tuple(opcode for opcode in Opcode if opcode < Opcode.QUERIES)
_LAST_WORD, _LAST_BIT = divmod(LAST_BIT, 32)

KINDS = {"bits": 200, "field": 310, "payload": 100, "length": 80, "copy": 60, "bytes": 90,
         "link": 80, "framing": 77, "oversized": 3}
"""Kinds of changes, and their frequency per 1,000 frames."""

_SHORT = 3
"""Beats of frames that are chosen more often, which raises the number of frames per cycle."""


class Changed(NamedTuple):
    """A hostile frame. ``data``: its beats; ``keep``: of its last beat; ``err``: the MAC's verdict;
    ``kind`` of :data:`KINDS`."""

    data: bytes
    keep: int
    err: int
    kind: str


def _crc(data: bytes | bytearray) -> int:
    return google_crc32c.value(bytes(26) + bytes(data[26:34]) + bytes(8) + bytes(data[42:60])
                               + bytes(4) + bytes(data[BEAT:]))


def _sum(data: bytes | bytearray) -> int:
    total = sum(struct.unpack_from(">10H", data, 14))
    total = (total & 0xFFFF) + (total >> 16)
    return (total & 0xFFFF) + (total >> 16)


def sealed(data: bytearray) -> bytearray:
    """Correct the sums of a frame."""
    data[24:26] = bytes(2)
    struct.pack_into(">H", data, 24, ~_sum(data) & 0xFFFF)
    struct.pack_into("<I", data, 60, _crc(data))
    return data


def _fitted(data: bytearray) -> bytearray:
    """Correct the lengths of a frame."""
    size = len(data) - BEAT + 50
    struct.pack_into(">H", data, 16, size & 0xFFFF)
    struct.pack_into(">H", data, 38, size - 20 & 0xFFFF)
    return data


def is_peers(data: bytes | bytearray, node: int, nodes: int) -> bool:
    """Whether node ``node`` may take a frame for a frame of another node of its cluster."""
    source = data[_EMBER["source"]]
    if not (source < nodes and source != node and data[_EMBER["destination"]] == node):
        return False
    if (data[0:6] != (MAC + node).to_bytes(6, "big")
            or data[6:12] != (MAC + source).to_bytes(6, "big")
            or data[26:30] != (IP + source).to_bytes(4, "big")
            or data[30:34] != (IP + node).to_bytes(4, "big")
            or data[12:15] != b"\x08\x00\x45" or data[23] != 17
            or data[34:38] != struct.pack(">HH", PORT, PORT)):
        return False
    size = len(data) - BEAT + 50
    return (struct.unpack_from(">H", data, 16)[0] == size
            and struct.unpack_from(">H", data, 38)[0] == size - 20
            and _sum(data) == 0xFFFF and struct.unpack_from("<I", data, 60)[0] == _crc(data))


def beats_of(frames: Sequence[Changed]) -> np.ndarray:
    """Return frames as beats of an input of a NIC: uint32 ``[n, BEAT_WORDS]``."""
    data = np.frombuffer(b"".join(frame.data for frame in frames), "<u4").reshape(-1, DATA_WORDS)
    beats = np.zeros((len(data), BEAT_WORDS), np.uint32)
    beats[:, :DATA_WORDS] = data
    beats[:, KEEP_WORDS.start:KEEP_WORDS.stop] = 0xFFFFFFFF
    ends = np.cumsum([len(frame.data) // BEAT for frame in frames]) - 1
    beats[ends, _LAST_WORD] |= np.array(
        [(1 | frame.err << 1) << _LAST_BIT for frame in frames], np.uint32)
    keeps = np.array([frame.keep for frame in frames], np.uint64)
    beats[ends, KEEP_WORDS.start] = (keeps & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    beats[ends, KEEP_WORDS.start + 1] = (keeps >> np.uint64(32)).astype(np.uint32)
    return beats


class Frames:
    """Makes hostile frames to a node.

    Parameters
    ----------
    honest: recorded frames between the nodes.
    node: destination.
    nodes: of the cluster.
    longest: payload beats of the longest frame.
    chance: random numbers.
    peer: the hostile node whose frames it makes; None for a stranger's frames.
    """

    def __init__(self, honest: Sequence[bytes], node: int, nodes: int, longest: int,
                 chance: random.Random, peer: int | None = None):
        self._honest = [bytearray(frame) for frame in honest]
        self._short = [frame for frame in self._honest if len(frame) <= _SHORT * BEAT]
        self._node, self._nodes, self._longest = node, nodes, longest
        self._chance, self._peer = chance, peer
        self._kinds, self._weights = list(KINDS), list(KINDS.values())
        self._drawn: list[str] = []

    def next(self) -> Changed:
        """Return another frame."""
        if not self._drawn:
            self._drawn = self._chance.choices(self._kinds, self._weights, k=1000)
        kind = self._drawn.pop()
        chance = self._chance
        honest = self._short if chance.random() < 0.7 else self._honest
        data = bytearray(honest[int(chance.random() * len(honest))])
        if self._peer is not None or chance.random() < 0.75:
            self._address(data, self._node)
        keep, err = _FULL, 0
        if kind == "framing":
            keep, err = self._framing()
        elif kind != "copy":
            data = getattr(self, f"_{kind}")(data)
        if self._peer is not None:
            self._as_peer(data)
        elif kind != "copy" and chance.random() < 0.5:
            if chance.random() < 0.7:
                _fitted(data)
            sealed(data)
        if self._peer is None and not err and keep == _FULL and is_peers(
                data, self._node, self._nodes):
            self._as_stranger(data)
        return Changed(bytes(data), keep, err, kind)

    def _address(self, data: bytearray, node: int) -> None:
        data[0:6] = (MAC + node).to_bytes(6, "big")
        data[30:34] = (IP + node).to_bytes(4, "big")
        data[_EMBER["destination"]] = node
        if data[_EMBER["source"]] == node:
            self._from(data, (node + 1) % self._nodes)

    def _from(self, data: bytearray, node: int) -> None:
        data[6:12] = (MAC + node).to_bytes(6, "big")
        data[26:30] = (IP + node).to_bytes(4, "big")
        data[34:36] = PORT.to_bytes(2, "big")
        data[_EMBER["source"]] = node

    def _as_peer(self, data: bytearray) -> None:
        """Make a frame a frame of the hostile node, except for changes behind its addresses."""
        assert self._peer is not None
        self._address(data, self._node)
        self._from(data, self._peer)
        data[12:15], data[20:22], data[23] = b"\x08\x00\x45", b"\x40\x00", 17
        data[36:38] = PORT.to_bytes(2, "big")
        sealed(_fitted(data))

    def _as_stranger(self, data: bytearray) -> None:
        """Make a frame with correct sums come from another address than its header names."""
        chance = self._chance
        kind = chance.randrange(5)
        if kind == 0:
            data[6:12] = chance.randbytes(6)
        elif kind == 1:
            data[26:30] = chance.randbytes(4)
        elif kind == 2:
            data[34:36] = (PORT + chance.randrange(1, 1 << 16) & 0xFFFF).to_bytes(2, "big")
        else:
            # Another node, or an unknown node, under its own addresses; or all of it.
            named = data[_EMBER["source"]]
            other = (named + chance.randrange(1, 256)) % 256
            if kind == 3:
                data[_EMBER["source"]] = other
            else:
                self._from(data, other)
                data[_EMBER["source"]] = named
        sealed(data)

    # Kinds

    def _bits(self, data: bytearray) -> bytearray:
        chance = self._chance
        most = 8 * (BEAT if chance.random() < 0.7 else len(data))
        for _ in range(chance.choice((1, 1, 2, 4))):
            bit = chance.randrange(most)
            data[bit >> 3] ^= 1 << (bit & 7)
        return data

    def _field(self, data: bytearray) -> bytearray:
        chance = self._chance
        for _ in range(chance.choice((1, 1, 2, 3))):
            bit, width = _FIELDS[int(chance.random() * len(_FIELDS))]
            first, size = bit // 8, width // 8
            kind = chance.randrange(4)
            if kind == 0:
                value = chance.randbytes(size)
            elif kind == 1:
                value = chance.choice((b"\0" * size, b"\xff" * size,
                                       (1).to_bytes(size, "little"), (1).to_bytes(size, "big")))
            elif kind == 2:
                number = int.from_bytes(data[first:first + size], "little")
                number += chance.choice((-1, 1, -2, 2, 8, -8, 256, 1 << width - 1))
                value = (number & (1 << width) - 1).to_bytes(size, "little")
            else:
                value = self._honest[int(chance.random() * len(self._honest))][first:first + size]
            data[first:first + size] = value
        if chance.random() < 0.2:
            data[_EMBER["opcode"]] = chance.choice(_OPCODES)
        return data

    def _payload(self, data: bytearray) -> bytearray:
        chance = self._chance
        if len(data) == BEAT:
            return data
        for _ in range(chance.choice((1, 2, 4))):
            at = BEAT + 8 * chance.randrange((len(data) - BEAT) // 8)
            data[at:at + 8] = chance.choice((chance.randbytes(8), bytes(8), b"\xff" * 8,
                                             data[BEAT:BEAT + 8]))
        return data

    def _length(self, data: bytearray) -> bytearray:
        chance = self._chance
        beats = chance.choice((0, 1, 1, 2, 3, chance.randrange(self._longest + 3)))
        if chance.random() < 0.5:
            data = data[:BEAT * (1 + beats)]
        else:
            more = min(beats, max(0, self._longest + 2 - len(data) // BEAT))
            data += chance.randbytes(BEAT * more)
        if chance.random() < 0.3:
            struct.pack_into("<H", data, _EMBER["count"], min(
                0xFFFF, 8 * (len(data) // BEAT - 1) * chance.choice((1, 1, 2, 4))))
        return data

    def _bytes(self, data: bytearray) -> bytearray:
        chance = self._chance
        made = bytearray(chance.randbytes(BEAT * chance.choice(
            (1, 1, 1, 2, 2, 3, chance.randrange(1, self._longest + 3)))))
        if chance.random() < 0.7:
            made[:42] = data[:42]
        if chance.random() < 0.7:
            made[42:48] = data[42:48]
        if chance.random() < 0.5:
            made[_EMBER["opcode"]] = chance.choice(_OPCODES)
        return made

    def _link(self, data: bytearray) -> bytearray:
        """Return a packet LINK, or another packet, with random acknowledgements."""
        chance = self._chance
        if chance.random() < 0.6:
            data = data[:BEAT] + bytearray(chance.choice(
                (chance.randbytes(BEAT), bytes(BEAT), b"\xff" * BEAT)))
            data[_EMBER["opcode"]] = Opcode.LINK
            struct.pack_into("<H", data, _EMBER["count"], chance.choice((8, 8, 8, 1, 0)))
        for name in ("sequence", "acknowledge"):
            if chance.random() < 0.7:
                at = _EMBER[name]
                value = int.from_bytes(data[at:at + 3], "little") + chance.choice(
                    (1, 2, -1, 512, 2048, -2048, 1 << 23, chance.randrange(1 << 24)))
                data[at:at + 3] = (value & 0xFFFFFF).to_bytes(3, "little")
        return _fitted(data)

    def _framing(self) -> tuple[int, int]:
        chance = self._chance
        if chance.random() < 0.5:
            return _FULL, 1
        return chance.choice((0, 1, _FULL >> 1, _FULL >> chance.randrange(1, 64),
                              chance.getrandbits(64) & ~1)), int(chance.random() < 0.2)

    def _oversized(self, data: bytearray) -> bytearray:
        more = self._chance.choice((self._longest + 1, self._longest + 2, 140, 200))
        return data[:BEAT] + self._chance.randbytes(BEAT * more)

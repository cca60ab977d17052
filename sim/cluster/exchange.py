"""Exchange of frames: carries the frames of a quantum from NIC to NIC over the network."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import chain, count, repeat
from math import inf
from operator import itemgetter

import numpy as np

from host.timing.network import Network
from host.wire.packets import destinations, parse_header
from rtl.formats import BEAT_BYTES
from sim.cluster.frame_faults import FrameFaults
from sim.engines import Engine
from sim.job.frame_faults import FrameRule, Injected
from sim.nic.ports import DATA_WORDS, Observer, Packets, PacketTap, arrivals, late

__all__ = ["Exchange"]


@dataclass
class _OpcodeCount:
    """Frames and bytes of one opcode, and the cycle in which the last frame of each step left."""

    frames: int = 0
    bytes: int = 0
    last: dict[int, int] = field(default_factory=dict)


class Exchange:
    """Takes frames from ``net_tx`` of every engine and delivers them to ``net_rx`` of others.

    Parameters
    ----------
    engines: the NICs, in the order of their numbers.
    network: the timing model of links and switch.

    Members
    -------
    frames, frame_bytes: frames taken, and their bytes.
    lost_frames: frames addressed to a node that does not exist.
    full_frames: frames that a full queue dropped.
    released: frames forwarded after faults were applied.

    :class:`sim.host_cpp.exchange.CompiledExchange` does the same in C++.
    """

    def __init__(self, engines: Sequence[Engine], network: Network):
        self.frames = 0
        self.frame_bytes = 0
        self.lost_frames = 0
        self.full_frames = 0
        self.released = 0
        self._faults: FrameFaults | None = None
        self._waiting: list[tuple[int, int, int, int, np.ndarray]] = []
        self._order = count()
        self._by_opcode: dict[int, _OpcodeCount] = {}
        self._engines = list(engines)
        self._network = network
        self._taps = [PacketTap(engine, "net_tx") for engine in engines]

    def step(self, now: int, observer: Observer | None = None) -> None:
        """Deliver the frames completed since the last call; every engine is at cycle ``now``.

        ``RuntimeError`` if a beat would reach a NIC in a past cycle.
        """
        found: list[tuple[int, int, int, np.ndarray]] = []
        for number in range(len(self._taps)):
            beats, begins, ends, cycles = self._taken(number)
            if begins:
                self.frames += len(begins)
                self.frame_bytes += ends[-1] * BEAT_BYTES
                found += zip(cycles, repeat(number), destinations(beats[begins]),
                             map(beats.__getitem__, map(slice, begins, ends)))
        found.sort(key=itemgetter(0, 1))
        if self._by_opcode:
            self._count(found)
        if observer is not None:
            observer([(cycle, source, frame[:, :DATA_WORDS]) for cycle, source, _, frame in found])
        inbox: list[list[np.ndarray]] = [[] for _ in self._engines]
        starts: list[list[float]] = [[] for _ in self._engines]
        for cycle, source, destination, frame in (
                found if self._faults is None else self._with_faults(now, found, self._faults)):
            if destination >= len(self._engines):
                self.lost_frames += 1
                continue
            start = self._network.deliver(cycle, source, destination, len(frame) * BEAT_BYTES)
            if start == inf:
                self.full_frames += 1
                continue
            inbox[destination].append(frame)
            starts[destination].append(start)
        frames = list(chain.from_iterable(inbox))
        if not frames:
            return
        beats = np.concatenate(frames)
        cycles = arrivals(list(chain.from_iterable(starts)), list(map(len, frames)),
                          BEAT_BYTES * self._network.cycles_per_byte)
        first = 0
        for number, mine in enumerate(inbox):
            last = first + sum(map(len, mine))
            if mine:
                if int(cycles[first]) < now:
                    raise late("net_rx", number, int(cycles[first]), now)
                self._engines[number].push("net_rx", beats[first:last], cycles[first:last])
            first = last

    @property
    def next_event(self) -> float:
        """The cycle in which the next late frame is forwarded; infinite if no frame waits."""
        return self._waiting[0][0] if self._waiting else inf

    @property
    def injected(self) -> Injected:
        """The number of frames by kind of fault, source, destination and opcode."""
        return {} if self._faults is None else self._faults.injected

    def replace(self, number: int, engine: Engine) -> None:
        """Put ``engine``, at the same cycle, in place of the NIC of node ``number``. The frame that
        the former NIC was sending is lost; late frames reach the new NIC."""
        self._engines[number], self._taps[number] = engine, PacketTap(engine, "net_tx")

    def inject(self, rules: Sequence[FrameRule], seed: int) -> None:
        """Apply ``rules`` to all further frames, drawn with ``seed``."""
        self._faults = FrameFaults(rules, seed) if rules else None

    def _with_faults(self, now: int, found: Sequence[tuple[int, int, int, np.ndarray]],
                     faults: FrameFaults) -> Iterator[tuple[int, int, int, np.ndarray]]:
        """Apply faults to the frames that left, and yield the frames forwarded before ``now``, in
        the order of time, sender, and departure."""
        for cycle, source, destination, frame in found:
            if destination >= len(self._engines):
                self.lost_frames += 1
                continue
            opcode = parse_header(frame[0, :DATA_WORDS]).opcode
            for due, copy in faults.apply(cycle, source, destination, opcode, frame):
                heappush(self._waiting, (due, source, next(self._order), destination, copy))
        while self._waiting and self._waiting[0][0] < now:
            due, source, _, destination, frame = heappop(self._waiting)
            self.released += 1
            yield due, source, destination, frame

    def count_opcodes(self, opcodes: Sequence[int]) -> None:
        """Count the further frames of each of ``opcodes`` separately, too."""
        self._by_opcode |= {opcode: _OpcodeCount() for opcode in opcodes}

    def opcode_counts(self, opcode: int, steps: int) -> tuple[int, int, list[int]]:
        """Return the frames and bytes of ``opcode``, and for each of the first ``steps`` steps the
        cycle in which its last frame left, 0 without frames."""
        kind = self._by_opcode[opcode]
        return kind.frames, kind.bytes, [kind.last.get(step, 0) for step in range(steps)]

    def _count(self, found: Sequence[tuple[int, int, int, np.ndarray]]) -> None:
        for cycle, _, _, frame in found:
            head = parse_header(frame[0, :DATA_WORDS])
            if (kind := self._by_opcode.get(head.opcode)) is not None:
                kind.frames += 1
                kind.bytes += len(frame) * BEAT_BYTES
                kind.last[head.step] = cycle

    def _taken(self, number: int) -> Packets:
        """Return the frames that node ``number`` has completed."""
        return self._taps[number].take()

"""The compiled exchange of frames between NICs. Reference: :mod:`sim.cluster.exchange`.

Gain: a run of 128 modelled NICs is 1.7 times as fast as with the reference (``python -m sim bench
--only twins``).
"""

from collections.abc import Sequence
from ctypes import POINTER, c_int, c_uint32, c_uint64, c_void_p
from itertools import chain
from math import inf
from pathlib import Path

import numpy as np

from host.timing.network import Network
from sim.engines.compiled import CompiledEngine
from sim.engines.library import library
from sim.host_cpp.formats import header_text
from sim.host_cpp.structures import EnginePort, Exchanged, FrameRule, Link
from sim.job import frame_faults
from sim.job.frame_faults import FOREVER, Injected
from sim.nic.ports import BEAT_WORDS, DATA_WORDS, Observer, late

__all__ = ["CompiledExchange"]


_FUNCTIONS = {
    "ember_exchange_new": (c_void_p, [POINTER(Link)]),
    "ember_exchange_free": (None, [c_void_p]),
    "ember_exchange_add": (None, [c_void_p, POINTER(EnginePort)]),
    "ember_exchange_replace": (None, [c_void_p, c_uint64, POINTER(EnginePort)]),
    "ember_exchange_step": (c_int, [c_void_p, c_uint64, POINTER(Exchanged)]),
    "ember_exchange_faults": (None, [c_void_p, c_uint64, POINTER(FrameRule), c_uint64]),
    "ember_exchange_injected": (c_uint64, [c_void_p, c_void_p]),
    "ember_exchange_frames": (c_uint64, [c_void_p, POINTER(c_uint64)]),
    "ember_exchange_look": (None, [c_void_p, c_void_p, c_void_p]),
    "ember_exchange_count": (None, [c_void_p, c_uint32]),
    "ember_exchange_counts": (None, [c_void_p, c_uint64, c_uint64, c_void_p]),
}


class CompiledExchange:
    """The exchange in C++. Reference: :class:`sim.cluster.exchange.Exchange`.

    ``BuildError`` if the C++ compiler fails. The first instance compiles unless the cache has the
    library.
    """

    def __init__(self, engines: Sequence[CompiledEngine], network: Network):
        self._lib = library(Path(__file__).with_suffix(".cpp"), _FUNCTIONS,
                            generated={"formats.h": header_text()})
        # The C++ object uses both: they must live as long as it does.
        self._engines, self._free = list(engines), network.free
        self._counts = Exchanged(next=FOREVER)
        self._counted: list[int] = []
        self._exchange = self._lib.ember_exchange_new(Link(
            overhead=network.overhead_bytes, switched=network.switched,
            lookahead=network.lookahead, cycles_per_byte=network.cycles_per_byte,
            queue=network.queue_cycles, free=self._free.ctypes.data))
        for engine in engines:
            self._lib.ember_exchange_add(
                self._exchange, EnginePort(*engine.native("net_tx", "net_rx")))

    def __del__(self):
        if getattr(self, "_exchange", None) is not None:
            self._lib.ember_exchange_free(self._exchange)

    @property
    def frames(self) -> int:
        return self._counts.frames

    @property
    def frame_bytes(self) -> int:
        return self._counts.bytes

    @property
    def lost_frames(self) -> int:
        return self._counts.lost

    @property
    def full_frames(self) -> int:
        return self._counts.full

    @property
    def released(self) -> int:
        return self._counts.released

    @property
    def next_event(self) -> float:
        return inf if self._counts.next == FOREVER else self._counts.next

    @property
    def injected(self) -> Injected:
        """The number of frames by kind of fault, source, destination and opcode."""
        rows = np.empty((self._lib.ember_exchange_injected(self._exchange, None), 5), np.uint64)
        self._lib.ember_exchange_injected(self._exchange, rows.ctypes.data)
        return {(kind, source, destination, opcode): frames
                for kind, source, destination, opcode, frames in rows.tolist()}

    def replace(self, number: int, engine: CompiledEngine) -> None:
        """See :meth:`sim.cluster.exchange.Exchange.replace`."""
        self._engines[number] = engine
        self._lib.ember_exchange_replace(
            self._exchange, number, EnginePort(*engine.native("net_tx", "net_rx")))

    def inject(self, rules: Sequence[frame_faults.FrameRule], seed: int) -> None:
        """Apply ``rules`` to all further frames, drawn with ``seed``."""
        # The C++ object uses the spans: they must live as long as it does.
        self._spans = [np.array(list(chain(*rule.frames)), np.uint64) for rule in rules]
        given = (FrameRule * len(rules))(*(
            FrameRule(*rule[:-1], len(rule.frames), spans.ctypes.data)
            for rule, spans in zip(rules, self._spans)))
        self._lib.ember_exchange_faults(self._exchange, seed, given, len(rules))

    def step(self, now: int, observer: Observer | None = None) -> None:
        """See :meth:`sim.cluster.exchange.Exchange.step`."""
        counts = self._counts
        good = self._lib.ember_exchange_step(self._exchange, now, counts)
        if observer is not None:
            observer(self._look())
        if not good:
            raise late("net_rx", counts.late_node, counts.late_cycle, now)

    def count_opcodes(self, opcodes: Sequence[int]) -> None:
        """Count the further frames of each of ``opcodes`` separately, too."""
        self._counted = list(opcodes)
        for opcode in self._counted:
            self._lib.ember_exchange_count(self._exchange, opcode)

    def opcode_counts(self, opcode: int, steps: int) -> tuple[int, int, list[int]]:
        """Return the frames and bytes of ``opcode``, and for each of the first ``steps`` steps the
        cycle in which its last frame left, 0 without frames."""
        values = np.empty(2 + steps, np.uint64)
        self._lib.ember_exchange_counts(self._exchange, self._counted.index(opcode), steps,
                                        values.ctypes.data)
        frames, size, *last = values.tolist()
        return frames, size, last

    def _look(self) -> list[tuple[int, int, np.ndarray]]:
        """Return the frames of the last step in the form for an observer."""
        size = c_uint64()
        count = self._lib.ember_exchange_frames(self._exchange, size)
        places = np.empty((count, 3), np.uint64)
        beats = np.empty((size.value, BEAT_WORDS), np.uint32)
        self._lib.ember_exchange_look(self._exchange, places.ctypes.data, beats.ctypes.data)
        cycles, sources, lengths = places.T.tolist() if count else ([], [], [])
        frames = np.split(beats[:, :DATA_WORDS], np.cumsum(lengths[:-1], dtype=np.int64))
        return list(zip(cycles, sources, frames)) if count else []

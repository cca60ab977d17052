"""A modelled NIC with its host and GPU, all of it compiled."""

import ctypes
from ctypes import c_double, c_uint64
from dataclasses import dataclass
from math import inf
from time import thread_time

import numpy as np

from host.gpu import GpuProfile
from host.packets import vectors_that_fit
from host.pcie import Pcie, PcieProfile
from host.timing import cycles_of_us
from rtl.config import NicConfig
from rtl.formats import BEAT_BYTES
from sim.errors import ProtocolError
from sim.faults import Windows
from sim.model.engine import ModelEngine
from sim.ports import LAST_BIT
from sim.results import Step

__all__ = ["ModelNode"]

_TIMED = 8
"""One of so many quanta is timed: the clock of a thread is slow."""
_WRONG = (1 << 64) - 1


class _Gpu(ctypes.Structure):
    _fields_ = (*((name, c_double) for name in (
        "launch", "cycles_per_row", "mlp_launch", "cycles_per_sample", "call")),
        ("streams", c_uint64))


class _Config(ctypes.Structure):
    _fields_ = (*((name, c_uint64) for name in (
        "node", "dimension", "payload_beats", "buffer_beats", "in_flight", "vectors_fit", "parts",
        "latency", "interaction")), ("cycles_per_byte", c_double), ("gpu", _Gpu))


_COUNTS = ("to_nic", "from_nic", "launches", "rows", "dense_launches", "dense_rows",
           "unanswered", "queries_waiting", "late")
_SHARE = np.dtype([("step", np.uint64), ("started", np.float64), ("finished", np.float64)])


@dataclass(frozen=True)
class _Gathers:
    """What a GPU has done: gathers launched, and vectors that they read."""

    launches: int
    rows: int

    @property
    def sent(self) -> int:
        return self.rows


class ModelNode:
    """What :class:`sim.node.Node` is for a NIC that runs, to the bit, Python out of its loop.

    It answers with vectors without values, does not train, and bears no faults.

    Parameters
    ----------
    number, config, dimension, pcie, gpu, in_flight, bottom: as of a :class:`sim.node.Node`.
    engine: the modelled NIC.
    parts: of the answer to a sample, bags or beats of its result.
    """

    def __init__(self, number: int, engine: ModelEngine, config: NicConfig, dimension: int,
                 pcie: PcieProfile, gpu: GpuProfile, in_flight: int, parts: int,
                 bottom: int | None = None):
        self.number, self.engine = number, engine
        self.pcie = Pcie(pcie)
        self.training = None
        self.silent_host = self.silent_gpu = Windows()
        self.errors: list[tuple[int, int]] = []
        self.seconds = {"nics": 0.0, "hosts": 0.0}
        """CPU time of NIC and host together, under ``nics``, from a sample of quanta."""
        self.finished: list[Step] = []
        self._quanta, self._steps = 0, {}
        self._interacts = bottom is not None
        launch = cycles_of_us(gpu.latency_us)
        times = _Gpu(launch, gpu.cycles_per_row(4 * dimension), launch,
                     gpu.cycles_of_products(bottom or 0), cycles_of_us(gpu.call_us), gpu.streams)
        self._config = _Config(
            number, dimension, config.host_payload_beats, config.query_beats, in_flight,
            vectors_that_fit(dimension, config.host_payload_beats), parts, self.pcie.latency,
            self._interacts, self.pcie.to_nic.cycles_per_byte, times)
        self._lib, nic = engine.functions
        self._host = self._lib.ember_host_new(nic, ctypes.addressof(self._config))
        self._counted = (c_uint64 * len(_COUNTS))()
        engine.set_rate("host_tx", cycles_per_beat=BEAT_BYTES * self.pcie.from_nic.cycles_per_byte,
                        last_bit=LAST_BIT, burst=64)

    def __del__(self):
        if getattr(self, "_host", None) is not None:
            self._lib.ember_host_free(self._host)

    def _counts(self) -> dict[str, int]:
        self._lib.ember_host_counts(self._host, ctypes.addressof(self._counted))
        return dict(zip(_COUNTS, self._counted))

    @property
    def actions(self) -> int:
        """Things that this host has done: while none of them does anything, nothing gets on."""
        return self._lib.ember_host_actions(self._host)

    @property
    def gpu(self) -> _Gathers:
        """The GPU's gathers of rows, for their counts."""
        counts = self._counts()
        return _Gathers(counts["launches"], counts["rows"])

    @property
    def dense(self) -> _Gathers | None:
        """Its gathers of dense vectors; None where the interaction is not on the NIC."""
        counts = self._counts()
        return _Gathers(counts["dense_launches"], counts["dense_rows"]) if self._interacts else None

    @property
    def host_bytes(self) -> dict[str, int]:
        """Bytes over PCIe."""
        counts = self._counts()
        return {name: counts[name] for name in ("to_nic", "from_nic")}

    @property
    def unanswered(self) -> int:
        """Samples of this node's shares that are under way or wait to be."""
        return self._counts()["unanswered"]

    @property
    def queries_waiting(self) -> int:
        """Query packets that the host holds back for lack of credit."""
        return self._counts()["queries_waiting"]

    @property
    def next_events(self) -> tuple[float, float]:
        """The cycles before which neither NIC nor host does anything by itself."""
        nic = self.engine.next_event
        return inf if nic is None else nic, self._lib.ember_host_next_event(self._host)

    @property
    def quiet(self) -> bool:
        """Nothing moves in the NIC or the host until something arrives from outside."""
        return (self._lib.ember_host_next_event(self._host) == inf
                and not self.engine.waiting("host_rx") and not self.engine.waiting("net_rx")
                and bool(self.engine.get_signal("idle")))

    def submit(self, step: Step, time: float) -> None:
        """Give this host its share of ``step``, to be started in its turn, not before ``time``."""
        share = step.left[self.number]
        if not share:
            return
        self._steps[step.number] = step
        records = np.ascontiguousarray(step.queries(self.number), np.uint64)
        self._lib.ember_host_submit(
            self._host, step.number, step.first & 0xFFFFFFFF, len(step.samples),
            step.shares[self.number], share, records.ctypes.data, len(records), time)

    def advance(self, end: int) -> None:
        """Run NIC and host up to cycle ``end``."""
        self._quanta += 1
        if self._quanta % _TIMED:
            self._take(self._lib.ember_host_advance(self._host, end))
            return
        began = thread_time()
        self._take(self._lib.ember_host_advance(self._host, end))
        self.seconds["nics"] += (thread_time() - began) * _TIMED

    def host_quantum(self, end: int) -> None:
        """Let the host act on what the NIC, which is at cycle ``end``, has sent it."""
        self._take(self._lib.ember_host_quantum(self._host, end))

    def _take(self, count: int) -> None:
        """Take note of ``count`` shares that are answered."""
        if not count:
            return
        if count == _WRONG:
            raise ProtocolError(f"node {self.number} " + (
                "was sent something too late" if self._counts()["late"] else
                "answered what it was not asked"))
        shares = np.empty(count, _SHARE)
        self._lib.ember_host_finished(self._host, shares.ctypes.data)
        for number, started, finished in shares.tolist():
            step = self._steps.pop(number)
            step.starts[self.number], step.ends[self.number] = started, finished
            step.left[self.number] = 0
            self.finished.append(step)

"""Nodes whose host and GPU are compiled. Reference: :mod:`sim.node.node`.

Gain: a run of 4 modelled NICs is 3.0 times as fast as with the reference (``python -m sim bench
--only twins``); a run of 4 NICs in RTL, 1.3 times; lookups of a PyTorch program, in RTL, 1.2
times.
"""

from collections.abc import Callable, Sequence
from ctypes import POINTER, c_bool, c_double, c_uint64, c_void_p
from dataclasses import astuple, dataclass, replace
from math import inf
from types import SimpleNamespace
from typing import Any

import numpy as np

from host.timing.clock import cycles_of_us
from host.timing.gpu import GpuProfile
from host.timing.pcie import Pcie, PcieProfile
from host.timing.row_reads import RowReadTimes
from host.wire.packets import vectors_that_fit
from rtl.config import NicConfig
from rtl.formats import BEAT_BYTES
from sim.engines.compiled import CompiledEngine
from sim.host_cpp.structures import (
    Asked,
    GpuTimes,
    HostConfig,
    HostCounts,
    RingPlace,
    RowReadsAt,
    Share,
)
from sim.job.faults import Windows
from sim.job.rings import rings_of
from sim.job.row_places import ROWS_BASE, RowPlaces
from sim.job.settings import COMPLETION_BASE
from sim.nic.ports import LAST_BIT
from sim.nic.timed import TIMED
from sim.node.delivery import Delivery
from sim.node.errors import COUNT, OPCODE, ProtocolError
from sim.node.step import Step, lacking

__all__ = ["HOST_FUNCTIONS", "HOST_LONG", "BagsPooled", "Gathers", "NativeNode"]

_FAULT = (1 << 64) - 1


HOST_FUNCTIONS: dict[str, tuple[Any, list]] = {
    "ember_host_free": (None, [c_void_p]),
    "ember_host_submit": (None, [c_void_p, POINTER(Asked)]),
    "ember_host_advance": (c_uint64, [c_void_p, c_uint64, c_bool]),
    "ember_host_quantum": (c_uint64, [c_void_p, c_uint64]),
    "ember_host_finished": (None, [c_void_p, c_void_p]),
    "ember_host_refusals": (c_uint64, [c_void_p, c_uint64, c_void_p]),
    "ember_host_next_event": (c_double, [c_void_p]),
    "ember_host_actions": (c_uint64, [c_void_p]),
    "ember_host_counts": (None, [c_void_p, POINTER(HostCounts)]),
}
"""Functions of a shared library with a host, see ``host_calls.h``."""
HOST_LONG = ("ember_host_advance",)
"""Functions that run longer than releasing and reacquiring Python's lock takes."""

_SHARE = np.dtype(Share)
_FAULTS = (
    "", "answered sample {}, or a part of it, out of turn",
    OPCODE, COUNT,
    "requested row {}, which its table does not have",
    "requested the dense vector of sample {}, which is not in its share",
    "was given a beat for cycle {}, which had passed",
    "sent vectors of step {}, or their end, out of order",
    "sent indices of sample {}, or with it, out of order",
    "completed step {}, which is not open",
    "completed step {} in a wrong slot or lap",
    "completed step {} without an error, before all of its answers",
    "wrote request list {} to a wrong slot, or over an unread list",
    "counted {} request lists, some of which are not written or already counted",
    "counted {} slots of vectors, some of which were not read or already counted",
    "wrote a count to {:#x}, the address of no count",
    "read slot {} of vectors, which is not filled or has another size",
    "read address {:#x} of GPU memory, which is not a row of this length",
    "sent its host a list of bags of step {} with a bag that is not whole, or not this node's")
"""Messages, in the order of the C++ ``Fault``."""


@dataclass(frozen=True)
class Gathers:
    """Counts of a GPU: gathers launched, and vectors that they read."""

    launches: int
    rows: int


@dataclass(frozen=True)
class DenseSent:
    """Count of dense vectors sent."""

    rows: int


@dataclass(frozen=True)
class BagsPooled:
    """Bags of owner-pooled tables, as :class:`sim.node.bags.Bags` counts them."""

    foreign: int
    own: int
    keys: int
    lists: int
    launches: int


class NativeNode:
    """A node with its host and GPU in C++. Reference, bit for bit: :class:`sim.node.node.Node`.

    It supports neither training nor faults of the host and GPU, and vectors with values in float32
    only.

    Parameters
    ----------
    number, engine, config, dimension, pcie, gpu, in_flight, bottom: as in
        :class:`sim.node.node.Node`.
    library: a shared library with `HOST_FUNCTIONS`.
    make: function that makes a host with the library.
    rows: address of the C++ ``Rows`` in GPU memory; None if vectors have no values.
    delivery: as in :class:`sim.node.node.Node`.
    """

    training = None
    packets_unsent = 0
    """Always 0: this host is never silent."""

    def __init__(self, number: int, engine: CompiledEngine, config: NicConfig, dimension: int,
                 pcie: PcieProfile, gpu: GpuProfile, in_flight: int, bottom: int | None,
                 library: SimpleNamespace, make: Callable[[HostConfig], int],
                 rows: int | None = None, delivery: Delivery | None = None):
        delivery = delivery or Delivery()
        self.number, self.engine = number, engine
        self.pcie = Pcie(pcie)
        self.silent_host = self.silent_gpu = Windows()
        self.finished: list[Step] = []
        """Steps whose share at this node is fully answered, in time order."""
        self._quanta, self._steps, self._arrays = 0, {}, {}
        self._rings = delivery.gpu_rings
        self._interacts, self._values = bottom is not None, rows is not None
        self._errors: list[tuple[int, int]] = []
        other_launch = launch = cycles_of_us(gpu.latency_us)
        rings = [RingPlace(), RingPlace()]
        if delivery.gpu_rings:
            # The host launches the kernel only once.
            launch = cycles_of_us(replace(gpu, call_us=0.0).latency_us)
            rings = [RingPlace(*astuple(ring)) for ring in rings_of(config)]
        lanes, row_bytes = delivery.wire.lanes_for(dimension), 4 * dimension
        plan = delivery.plan
        times = GpuTimes(launch, cycles_of_us(gpu.kernel_us), gpu.cycles_per_row(row_bytes),
                         other_launch, gpu.cycles_of_products(bottom or 0),
                         cycles_of_us(gpu.apart_us), gpu.stream_bytes_per_cycle, gpu.streams,
                         row_bytes)
        # Rows of each table whose bags this node pools.
        self._held = None if plan is None else np.where(
            plan.own_pooled(number), plan.owner_pooled, 0)
        self._beats = None if plan is None else plan.beats
        self._lib = library
        self._host = make(HostConfig(
            number, lanes, dimension, vectors_that_fit(dimension, config.host_payload_beats),
            config.host_payload_beats, config.query_beats, in_flight,
            vectors_that_fit(lanes, config.host_payload_beats), self.pcie.latency,
            self._interacts, delivery.pooling is not None, delivery.pooling == "mean",
            delivery.completion_slots, COMPLETION_BASE,
            0 if self._held is None else len(self._held), config.owner_bags,
            delivery.own_pooling == "mean", delivery.own_timed,
            self.pcie.to_nic.cycles_per_byte, rows,
            None if self._held is None else self._held.ctypes.data,
            None if self._beats is None else self._beats.ctypes.data, times, *rings,
            self._row_reads(delivery.rows, pcie)))
        engine.set_rate("host_tx", cycles_per_beat=BEAT_BYTES * self.pcie.from_nic.cycles_per_byte,
                        last_bit=LAST_BIT, burst=64)

    def _row_reads(self, places: RowPlaces | None, pcie: PcieProfile) -> RowReadsAt:
        """Return the locations of the rows that the NIC reads. Arrays that the result refers to
        live as long as the node."""
        if places is None:
            return RowReadsAt()
        times = RowReadTimes(pcie, self.pcie, places.row_bytes)
        self._tables = [np.array(values, np.uint64) for values in (
            places.tables, [places.bases[table] for table in places.tables])]
        return RowReadsAt(*(array.ctypes.data for array in self._tables), len(places.tables),
                          ROWS_BASE, places.end, places.row_bytes, times.reads,
                          times.request_bytes, times.answer_bytes, pcie.read_tags)

    def __del__(self):
        if getattr(self, "_host", None) is not None:
            self._lib.ember_host_free(self._host)

    def _counts(self) -> HostCounts:
        counts = HostCounts()
        self._lib.ember_host_counts(self._host, counts)
        return counts

    @property
    def actions(self) -> int:
        """Actions performed; the watchdog reports a hang if the sum stops growing."""
        return self._lib.ember_host_actions(self._host)

    @property
    def progress(self) -> float:
        """Time of the last progress of a result; see :class:`sim.node.protocol.ClusterNode`."""
        return self._counts().progress

    @property
    def lacking(self) -> Sequence[int]:
        """Numbers of the samples in flight, or waiting, that lack their answers."""
        return lacking(self._steps.values(), self.number)

    @property
    def gpu(self) -> Gathers:
        """The GPU's gathers of rows, for their counts."""
        counts = self._counts()
        return Gathers(counts.launches, counts.rows)

    @property
    def bags(self) -> BagsPooled | None:
        """The bags that the GPU has pooled; None without tables that pool at their owner."""
        if self._held is None:
            return None
        counts = self._counts()
        return BagsPooled(counts.foreign_bags, counts.own_bags, counts.bag_keys, counts.bag_lists,
                          counts.bag_launches)

    @property
    def dense(self) -> DenseSent | None:
        """The dense vectors sent; None unless the NIC computes the interaction."""
        return DenseSent(self._counts().dense_rows) if self._interacts else None

    @property
    def errors(self) -> list[tuple[int, int]]:
        """Sample and status of each refusal."""
        found = np.empty((self._lib.ember_host_refusals(self._host, 0, None), 2), np.uint64)
        if len(found):
            self._lib.ember_host_refusals(self._host, len(found), found.ctypes.data)
            self._errors += [(sample, status) for sample, status in found.tolist()]
        return self._errors

    @property
    def seconds(self) -> dict[str, float]:
        """CPU time of NIC and host, extrapolated from a sample of quanta."""
        counts = self._counts()
        return {"nics": counts.nic_ns * TIMED / 1e9, "hosts": counts.host_ns * TIMED / 1e9}

    @property
    def host_bytes(self) -> dict[str, int]:
        """Bytes over PCIe."""
        counts = self._counts()
        return {"to_nic": counts.to_nic, "from_nic": counts.from_nic}

    @property
    def unanswered(self) -> int:
        """Unanswered samples of this node's shares, in flight or waiting."""
        return self._counts().unanswered

    @property
    def queries_waiting(self) -> int:
        """Query packets held back for lack of credit."""
        return self._counts().queries_waiting

    @property
    def next_events(self) -> tuple[float, float]:
        """The next cycles at which the NIC and the host act without new input."""
        nic = self.engine.next_event
        return inf if nic is None else nic, self._lib.ember_host_next_event(self._host)

    @property
    def quiet(self) -> bool:
        """Whether NIC and host stay idle until something arrives from outside."""
        return (self._lib.ember_host_next_event(self._host) == inf
                and not self.engine.waiting("host_rx") and not self.engine.waiting("net_rx")
                and not (self._rings and self.engine.registers_pending)
                and self.engine.at_rest)

    def submit(self, step: Step, time: float) -> None:
        """Queue this host's share of ``step``, to start in its turn, not before ``time``."""
        node, share = self.number, int(step.left[self.number])
        if not share:
            return
        self._steps[step.number] = step
        records = np.ascontiguousarray(
            step.queries(node) if step.sends(node) else (), np.uint64)
        dense = step.dense if self._values else None
        assert not self._values or (dense is not None) == self._interacts
        arrays = step.answers, step.filled, step.status, step.left[node:], dense
        for array, kind in zip(arrays, (np.float32, np.int64, np.int64, np.int64, np.float32)):
            assert array is None or (array.dtype == kind and array.flags.c_contiguous)
        parts, values = step.answers.shape[1:]
        sent, counts, own = self._own(step)
        self._lib.ember_host_submit(self._host, Asked(
            step.number, len(records), records.ctypes.data, time, step.first & 0xFFFFFFFF,
            len(step.samples), step.shares[node], share, parts, values if self._values else 0,
            parts if sent is None else len(sent), *counts,
            *(None if array is None else array.ctypes.data for array in (*arrays, sent, *own))))

    def _own(self, step: Step) -> tuple[
            np.ndarray | None, tuple[int, int, int], tuple[np.ndarray | None, ...]]:
        """Return the parts of an answer that the NIC sends (None if it sends all parts), and the
        bags that the GPU pools itself: the parts of each answer, the bags and their keys; table,
        keys and place of each bag, and the rows, if vectors have values. The arrays live as long as
        the step."""
        if step.pools is None or self._interacts:
            return None, (0, 0, 0), (None,) * 4
        node, own = self.number, step.pools.own[self.number]
        lengths = step.samples.bag_lengths[slice(*step.shares[node:node + 2])][:, own]
        sent, counts = np.flatnonzero(~own), (
            int(own.sum()), int((lengths > 0).sum()), int(lengths.sum()))
        if not self._values:
            arrays: tuple[np.ndarray, ...] = ()
        else:
            bags = step.own_bags(node)
            arrays = tuple(np.ascontiguousarray(each, np.int64) for each in (
                bags.tables, bags.lengths, bags.rows, step.own_places(node)))
        self._arrays[step.number] = sent, *arrays
        return sent, counts, arrays or (None,) * 4

    def advance(self, end: int) -> None:
        """Run NIC and host up to cycle ``end``."""
        self._quanta += 1
        if count := self._lib.ember_host_advance(self._host, end, self._quanta % TIMED == 0):
            self._take(count)

    def host_quantum(self, end: int) -> None:
        """Let the host handle the packets of the NIC, which is at cycle ``end``."""
        if count := self._lib.ember_host_quantum(self._host, end):
            self._take(count)

    def _take(self, count: int) -> None:
        """Record ``count`` answered shares. ``ProtocolError`` for 2^64 - 1: the NIC violated its
        protocol."""
        if count == _FAULT:
            counts = self._counts()
            raise ProtocolError(f"node {self.number} "
                                + _FAULTS[counts.fault].format(counts.value))
        shares = np.empty(count, _SHARE)
        self._lib.ember_host_finished(self._host, shares.ctypes.data)
        for number, started, finished in shares.tolist():
            step = self._steps.pop(number)
            self._arrays.pop(number, None)
            step.starts[self.number], step.ends[self.number] = started, finished
            self.finished.append(step)

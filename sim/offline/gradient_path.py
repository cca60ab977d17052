"""Gradient path of NICs: the time of a training step from gradients to written rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf

import numpy as np

from host.placement.reduction import Pass, Reduction
from host.systems import Devices, OwnerUpdates, Workload
from host.systems.tables import row_updates, vector_bytes
from host.timing.clock import CYCLE_NS, Link, cycles_of_us
from host.timing.gpu import Gather, GpuLookups, GpuProfile, LaunchThread
from host.timing.pcie import PcieProfile
from rtl.bags import BagGradients, BagPackager, BagReceiver, GradientLists
from rtl.config import LANES, NicConfig
from rtl.formats import BEAT_BYTES, RECORD_BITS
from rtl.gradient.checker import GradientCheck
from rtl.gradient.expander import GradientExpander
from rtl.gradient.key_walk import KeyWalk
from rtl.gradient.partial_receiver import PartialReceiver
from rtl.gradient.reducer import GradientReducer
from rtl.gradient.sender import GradientSender
from rtl.gradient.unpacker import GradientUnpacker
from rtl.gradient.updater import RowUpdater
from rtl.network.assembler import FrameAssembler
from rtl.network.frame_check import FrameCheck
from rtl.network.parser import PacketParser
from rtl.network.partial_packager import PartialPackager
from rtl.network.receiver import FrameReceiver
from sim.node.events import EventQueue
from sim.offline.bag_gradients import BagTraffic

__all__ = ["GradientPath", "RowWrites"]

_GROUPS = 32
"""Most groups of a pass: more groups would share the same GPU launches."""


class RowWrites:
    """Rows of an owner that pass the optimizer on their way to GPU memory, in groups.

    A group contains the rows of ``timeout`` cycles, more in a long pass. One list requests the
    rows that the local cache misses. Groups leave in order when complete, one packet each. Lists
    and packets share a launch if they wait (:class:`host.timing.gpu.GpuLookups`). Rows occupy the
    NIC's PCIe link in both directions, lists the direction from the NIC.

    Parameters
    ----------
    gpu: GPU profile. beats: beats of a row. per_beat: cycles of a beat in the optimizer.
    ring: most rows in flight. timeout: cycles. pcie: profile of the NIC's link.

    Members: ``launches``, gathers and scatters that the GPU has started.
    """

    def __init__(self, gpu: GpuProfile, beats: int, per_beat: int, ring: int, timeout: int,
                 pcie: PcieProfile):
        self._beats, self._per_row, self._ring = beats, per_beat * beats, ring
        self._timeout, self._pcie = timeout, cycles_of_us(pcie.one_way_us)
        self._to_nic, self._from_nic = (Link(pcie.bandwidth_gb_s) for _ in range(2))
        self._row_bytes = BEAT_BYTES * beats + _RECORD
        self._events = EventQueue()
        thread = LaunchThread(gpu, self._events.at)
        self._gathers, self._scatters = (GpuLookups[int](gpu, BEAT_BYTES, thread)
                                         for _ in range(2))
        thread.join(lambda now: self._gathered(self._gathers.start(now)))
        thread.join(lambda now: self._scattered(self._scatters.start(now)))
        self._come: list[float] = []
        self._rows: list[int] = []
        self._missed: list[int] = []
        self._ready: list[bool] = []
        self._entered = self._left = self._under_way = 0
        self._free = self._written = 0.0

    def add(self, start: float, cycles: float, rows: float, missed: float) -> None:
        """Add ``rows``, spread evenly over ``cycles`` from ``start``; ``missed``: cache misses."""
        count = max(1, min(_GROUPS, ceil(cycles / self._timeout)))
        self._come += [start + part * cycles / count for part in range(count)]
        for groups, whole in ((self._rows, rows), (self._missed, missed)):
            ends = [round(whole * part / count) for part in range(count + 1)]
            groups += [after - before for before, after in pairwise(ends)]

    @property
    def launches(self) -> int:
        return self._gathers.launches + self._scatters.launches

    def end(self) -> float:
        """Return the cycle in which the GPU has written the last row; 0 without rows."""
        self._ready = [False] * len(self._come)
        self._enter(0.0)
        for time, action in self._events.until(inf):
            action(time)
        return self._written

    def _enter(self, now: float) -> None:
        """Let groups enter while the ring has space."""
        while self._entered < len(self._come) and (
                not self._under_way
                or self._under_way + self._rows[self._entered] <= self._ring):
            group = self._entered
            self._entered += 1
            self._under_way += self._rows[group]
            self._events.at(max(now, self._come[group]), lambda time, group=group: self._look_up(
                group, time))

    def _look_up(self, group: int, now: float) -> None:
        missed = self._missed[group]
        if missed:
            self._events.at(now + self._timeout, lambda time: self._events.at(
                self._from_nic.send(time, missed * _RECORD)[1] + self._pcie, lambda time:
                self._gathered(self._gathers.arrive(time, group, missed * self._beats))))
        else:
            self._found(group, now)

    def _gathered(self, gather: Gather[int] | None) -> None:
        """Schedule the end of a gather, if there is one, and the next gather."""
        if gather is None:
            return

        def ended(now: float) -> None:
            for group in gather.lists:
                there = self._to_nic.send(now, self._missed[group] * self._row_bytes)[1]
                self._events.at(there + self._pcie, lambda time, group=group: self._found(
                    group, time))
            self._gathered(self._gathers.finish(now))

        self._events.at(gather.end, ended)

    def _found(self, group: int, now: float) -> None:
        """Let groups leave in order while their rows are complete."""
        self._ready[group] = True
        while self._left < len(self._ready) and self._ready[self._left]:
            rows = self._rows[self._left]
            self._free = max(self._free, now) + rows * self._per_row
            if rows:
                self._events.at(self._free + self._timeout, lambda time, rows=rows: self._events.at(
                    self._from_nic.send(time, rows * self._row_bytes)[1] + self._pcie, lambda time:
                    self._scattered(self._scatters.arrive(time, rows, rows * self._beats))))
            self._under_way -= rows
            self._left += 1
        self._enter(now)

    def _scattered(self, scatter: Gather[int] | None) -> None:
        """Schedule the end of a scatter, if there is one, and the next scatter."""
        if scatter is None:
            return

        def ended(now: float) -> None:
            self._written = max(self._written, now)
            self._scattered(self._scatters.finish(now))

        self._events.at(scatter.end, ended)


_PER_BEAT = 2
"""Cycles per beat of sums: lanes per unit of the rounder bank and of the optimizer."""
_RECORD, _BEAT = RECORD_BITS // 8, BEAT_BYTES

_TO_NETWORK = (FrameReceiver, PacketParser, GradientUnpacker, GradientCheck, GradientExpander,
               GradientReducer, KeyWalk, GradientSender, PartialPackager, FrameAssembler)
_TO_TABLE = (FrameCheck, FrameReceiver, PacketParser, PartialReceiver, GradientReducer, KeyWalk)
_TO_HOST = (RowUpdater, PartialPackager)
"""Blocks that a gradient, its partial sum and its row pass in sequence."""


_BAGS = (FrameReceiver, PacketParser, BagGradients, BagPackager, FrameAssembler, FrameCheck,
         FrameReceiver, PacketParser, BagReceiver, GradientLists, BagPackager)
"""Blocks that a bag with its gradient passes at both nodes."""


@dataclass(frozen=True)
class GradientPath:
    """Timing model of the gradient path of a cluster, see :mod:`rtl.gradient`.

    Gradients cross PCIe and are summed per key in the requester's table. A gradient without a
    table entry goes to its owner at once, the sums follow behind the last gradient. The owner sums
    all partials and reads its table out. Gradients that find the owner's table full go to the
    host and return for another pass. :class:`RowWrites` updates the rows. Then the owner notifies
    every node. ``tests/sim/experiments/test_gradient_path.py`` compares the model with RTL.

    Bags of tables whose rows GPUs update cross PCIe first, with their gradients, and leave for the
    GPUs of their owners.

    Members
    -------
    config: NIC. devices: devices of a node. gpu: GPU profile as the NICs see it.
    timeout: cycles after which a partly filled packet leaves.
    """

    config: NicConfig
    devices: Devices
    gpu: GpuProfile
    timeout: int = 64

    def us(self, w: Workload, sums: Reduction, missed: Sequence[int]) -> float:
        """Return the microseconds from gradients in GPU memory to the last host's notification."""
        return self.us_and_launches(w, sums, missed)[0]

    def of_gpus(self, w: Workload, bags: BagTraffic) -> OwnerUpdates:
        """Return the updates by GPUs of the tables that ``w`` counts."""
        d, moved = self.devices, self._moved(bags)
        one_way = d.pcie.one_way_us
        network = d.network.one_way_us * (w.nodes > 1)
        timeout = self.timeout * CYCLE_NS / 1e3
        held = float(moved.max()) * CYCLE_NS / 1e3
        # A bag reaches its owner's GPU; the count of bags follows it.
        way = (2 * one_way + network + _latency(_BAGS) * CYCLE_NS / 1e3 + 2 * timeout)
        return OwnerUpdates(
            held, held + (way if w.nodes > 1 else 2 * one_way), self._told(w) * CYCLE_NS / 1e3,
            float(bags.to_nic.max()), float(bags.lists.max()), float(
                d.nic_links.link_us(bags.wire_bytes(d.network)).max()) if w.nodes > 1 else 0.0,
            row_updates(w, d.gpu, fused=True))

    def _moved(self, bags: BagTraffic) -> np.ndarray:
        """Return the cycles in which the bags occupy each node's NIC and links."""
        link = bags.wire_bytes(self.devices.network)
        per_cycle = self.devices.network.bandwidth_gbit_s / 8 * CYCLE_NS
        return np.max([
            self._crossing(bags.to_nic), self._crossing(bags.lists), bags.segments.sum(axis=1),
            bags.segments.sum(axis=0), link.sum(axis=1) / per_cycle, link.sum(axis=0) / per_cycle,
        ], axis=0)

    def _told(self, w: Workload) -> float:
        """Return the cycles from a written row to the last host's notification: acknowledgement to
        the NIC, message to the other NICs, message to their hosts."""
        pcie, network = (cycles_of_us(x.one_way_us) for x in (
            self.devices.pcie, self.devices.network))
        return 2 * pcie + network * (w.nodes > 1) + self.timeout

    def us_and_launches(self, w: Workload, sums: Reduction, missed: Sequence[int],
                        others: BagTraffic | None = None) -> tuple[float, int]:
        """Return the microseconds of :meth:`us`, and the kernels on the busiest GPU.

        ``sums``: reduction of the same mini-batch. ``missed``: updated rows that miss the local
        cache, ``[owner]``. ``others``: bags with gradients that precede.
        """
        d = self.devices
        pcie, network = (cycles_of_us(x.one_way_us) for x in (d.pcie, d.network))
        beats, size = max(1, w.model.width // LANES), vector_bytes(w)
        bags, lookups = w.bags.sum(axis=1), w.lookups.sum(axis=1)
        ahead = np.zeros(w.nodes) if others is None else self._moved(others)
        begun = pcie + _latency(_TO_NETWORK) + ahead
        intake = np.maximum(self._crossing(size * bags + _RECORD * lookups), beats * lookups)
        out = begun + intake + self._walk(self.config.local_gradient_keys, sums.sums, beats)
        if w.nodes > 1:
            link = cycles_of_us(float(d.nic_links.link_us(
                (size + beats * _RECORD) * sums.partials).max()))
            out = np.maximum(out, begun + link) + self.timeout + network
        begun = float(begun.max()) + network * (w.nodes > 1)
        ends = [self._written(begun, float(out.max()), sums.passes[owner], missed[owner], beats)
                for owner in range(w.nodes)]
        return float(max(end for end, _ in ends) + self._told(w)) * CYCLE_NS / 1000, max(
            launches for _, launches in ends)

    def _written(self, begun: float, there: float, passes: Sequence[Pass], missed: int,
                 beats: int) -> tuple[float, int]:
        """Return the cycle in which the GPU acknowledges the last row of an owner, and its kernels.

        ``begun``, ``there``: cycles of the first and the last partial of the first pass.
        """
        if not passes:
            return there, 0
        pcie = cycles_of_us(self.devices.pcie.one_way_us)
        writes = RowWrites(self.gpu, beats, _PER_BEAT, self.config.update_rows, self.timeout,
                           self.devices.pcie)
        keys, now = sum(each.rows for each in passes), 0.0
        for number, (rows, partials) in enumerate(passes):
            spilled = beats * (passes[number + 1].partials if number + 1 < len(passes) else 0)
            # Spilled beats leave for the host while others arrive; later passes arrive from there.
            moving = max(beats * partials, self._crossing((_BEAT + _RECORD) * spilled))
            if number:
                now += 2 * pcie + self.timeout + max(
                    moving, self._crossing((_BEAT + _RECORD) * beats * partials))
            else:
                now = max(there, begun + moving) + _latency(_TO_TABLE)
            walk = self._walk(self.config.global_gradient_keys, rows, beats)
            writes.add(now, walk, rows, missed * rows / keys)
            now += walk
        return writes.end() + _latency(_TO_HOST), writes.launches

    def _walk(self, keys: int, held, beats: int):
        """Return the cycles to read ``held`` vectors from a table of ``keys`` entries: the cycles
        of the vectors, and one cycle for each empty set (expected value)."""
        sets = keys // self.config.gradient_ways
        return sets * np.exp(-held / sets) + _PER_BEAT * beats * held

    def _crossing(self, size):
        """Return the cycles of ``size`` bytes over PCIe."""
        return size / (self.devices.pcie.bandwidth_gb_s * CYCLE_NS)


def _latency(blocks: Sequence[type]) -> int:
    """Return the sum of the blocks' first documented latencies, in cycles."""
    return sum(next(iter(block.LATENCY.values())) for block in blocks)

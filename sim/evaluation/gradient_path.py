"""The gradient path of the NICs: how long it takes for a step, from what happens in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf

import numpy as np

from host.systems import Devices, Workload
from host.systems.tables import vector_bytes
from host.timing.clock import CYCLE_NS, cycles_of_us
from host.timing.gpu import Gather, GpuLookups, GpuProfile, LaunchThread
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
from sim.evaluation.reductions import Pass, Reduction
from sim.node.events import EventQueue

__all__ = ["GradientPath", "RowWrites"]

_GROUPS = 32
"""Groups of a pass at most: more of them share the launches of the GPU all the same."""


class RowWrites:
    """Rows of an owner on their way through the optimizer to GPU memory, in groups.

    A group is what ``timeout`` cycles bring, or more in a long pass. Those of its rows that the
    local cache does not hold are asked for in one list; groups leave in order, when their last row
    is there, at most ``ring`` rows are under way at once, and a packet brings each to the GPU.
    Lists and packets that come while all streams of the GPU, or the thread that launches, are busy
    share the next launch (:class:`host.timing.gpu.GpuLookups`).

    Parameters
    ----------
    gpu: its profile. beats: of a row, each of ``per_beat`` cycles in the optimizer.
    ring: rows. timeout: cycles. pcie: cycles of one way over PCIe.
    """

    def __init__(self, gpu: GpuProfile, beats: int, per_beat: int, ring: int, timeout: int,
                 pcie: float):
        self._beats, self._per_row, self._ring = beats, per_beat * beats, ring
        self._timeout, self._pcie = timeout, pcie
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
        """Add ``rows`` that come evenly in the ``cycles`` from ``start`` on, ``missed`` of them no
        local cache holds."""
        count = max(1, min(_GROUPS, ceil(cycles / self._timeout)))
        self._come += [start + part * cycles / count for part in range(count)]
        for groups, whole in ((self._rows, rows), (self._missed, missed)):
            ends = [round(whole * part / count) for part in range(count + 1)]
            groups += [after - before for before, after in pairwise(ends)]

    def end(self) -> float:
        """Return when the GPU has written the last row; 0 if there is none."""
        self._ready = [False] * len(self._come)
        self._enter(0.0)
        for time, action in self._events.until(inf):
            action(time)
        return self._written

    def _enter(self, now: float) -> None:
        """Let groups in, as far as the ring has room."""
        while self._entered < len(self._come) and (
                not self._under_way
                or self._under_way + self._rows[self._entered] <= self._ring):
            group = self._entered
            self._entered += 1
            self._under_way += self._rows[group]
            self._events.at(max(now, self._come[group]), lambda time, group=group: self._look_up(
                group, time))

    def _look_up(self, group: int, now: float) -> None:
        if self._missed[group]:
            self._events.at(now + self._timeout + self._pcie, lambda time: self._gathered(
                self._gathers.arrive(time, group, self._missed[group] * self._beats)))
        else:
            self._found(group, now)

    def _gathered(self, gather: Gather[int] | None) -> None:
        """Follow a gather, if one starts, and those behind it."""
        if gather is None:
            return

        def ended(now: float) -> None:
            for group in gather.lists:
                self._events.at(now + self._pcie, lambda time, group=group: self._found(
                    group, time))
            self._gathered(self._gathers.finish(now))

        self._events.at(gather.end, ended)

    def _found(self, group: int, now: float) -> None:
        """Let groups leave, as far as their rows are there."""
        self._ready[group] = True
        while self._left < len(self._ready) and self._ready[self._left]:
            rows = self._rows[self._left]
            self._free = max(self._free, now) + rows * self._per_row
            if rows:
                self._events.at(
                    self._free + self._timeout + self._pcie, lambda time, rows=rows:
                    self._scattered(self._scatters.arrive(time, rows, rows * self._beats)))
            self._under_way -= rows
            self._left += 1
        self._enter(now)

    def _scattered(self, scatter: Gather[int] | None) -> None:
        """Follow a scatter, if one starts, and those behind it."""
        if scatter is None:
            return

        def ended(now: float) -> None:
            self._written = max(self._written, now)
            self._scattered(self._scatters.finish(now))

        self._events.at(scatter.end, ended)


_PER_BEAT = 2
"""Cycles of a beat of sums: lanes over units of the rounder bank, and of the optimizer."""
_RECORD, _BEAT = RECORD_BITS // 8, BEAT_BYTES

_TO_NETWORK = (FrameReceiver, PacketParser, GradientUnpacker, GradientCheck, GradientExpander,
               GradientReducer, KeyWalk, GradientSender, PartialPackager, FrameAssembler)
_TO_TABLE = (FrameCheck, FrameReceiver, PacketParser, PartialReceiver, GradientReducer, KeyWalk)
_TO_HOST = (RowUpdater, PartialPackager)
"""Blocks that a gradient, its partial sum and its row pass one after the other."""


@dataclass(frozen=True)
class GradientPath:
    """The gradient path of a cluster, as :mod:`rtl.gradient` and ``sim train`` have it.

    Each node's gradients cross PCIe, are expanded and summed. Those of keys that the local table
    has no entry for go to their owners as they are, the sums of the others when the node's last
    gradient is in. An owner sums what comes; when everybody's partials are there it reads its table
    out. Gradients of keys that found no entry there have gone to the host, and come back for
    another pass. For rows that the local cache does not hold, gathers on the GPU are launched; rows
    leave in order, and launched kernels write them (:class:`RowWrites`). When the GPU has told that
    all are written, the owner tells every node, and these their hosts. Packets that are not full
    leave after their time-out. ``tests/sim/experiments/test_gradient_path.py`` compares with RTL.

    Members
    -------
    config: of the NICs. devices: of a node. gpu: serves the NICs' lookups, as they see it.
    timeout: cycles after which a packet leaves that is not full.
    """

    config: NicConfig
    devices: Devices
    gpu: GpuProfile
    timeout: int = 64

    def us(self, w: Workload, sums: Reduction, missed: Sequence[int]) -> float:
        """Return the microseconds from the gradients of bags in GPU memory to the last host's
        knowledge that all rows are written.

        ``sums``: of the same mini-batch. ``missed``: rows to be updated that no local cache holds,
        of each owner.
        """
        d = self.devices
        pcie, network = (cycles_of_us(x.one_way_us) for x in (d.pcie, d.network))
        beats, size = max(1, w.model.dimension // LANES), vector_bytes(w)
        bags, lookups = w.bags.sum(axis=1), w.lookups.sum(axis=1)
        begun = pcie + _latency(_TO_NETWORK)
        intake = np.maximum(self._crossing((size + _RECORD) * bags), beats * lookups)
        out = begun + intake + self._walk(self.config.local_gradient_keys, sums.sums, beats)
        if w.nodes > 1:
            link = cycles_of_us(float(d.host_mpi.topology.link_us(
                (size + beats * _RECORD) * sums.partials).max()))
            out = np.maximum(out, begun + link) + self.timeout + network
        begun += network * (w.nodes > 1)
        ends = [self._written(begun, float(out.max()), sums.passes[owner], missed[owner], beats)
                for owner in range(w.nodes)]
        # Written, to the NIC; done, to the others; and to their hosts.
        told = 2 * pcie + network * (w.nodes > 1) + self.timeout
        return float(max(ends) + told) * CYCLE_NS / 1000

    def _written(self, begun: float, there: float, passes: Sequence[Pass], missed: int,
                 beats: int) -> float:
        """Return when the GPU has told that it has written an owner's rows.

        Partials come to the owner from ``begun`` on, the last of the first pass is ``there``.
        """
        if not passes:
            return there
        pcie = cycles_of_us(self.devices.pcie.one_way_us)
        writes = RowWrites(self.gpu, beats, _PER_BEAT, self.config.update_rows, self.timeout, pcie)
        keys, now = sum(each.rows for each in passes), 0.0
        for number, (rows, partials) in enumerate(passes):
            spilled = beats * (passes[number + 1].partials if number + 1 < len(passes) else 0)
            # Spilled beats leave for the host while others come; in later passes all come from it.
            moving = max(beats * partials, self._crossing((_BEAT + _RECORD) * spilled))
            if number:
                now += 2 * pcie + self.timeout + max(
                    moving, self._crossing((_BEAT + _RECORD) * beats * partials))
            else:
                now = max(there, begun + moving) + _latency(_TO_TABLE)
            walk = self._walk(self.config.global_gradient_keys, rows, beats)
            writes.add(now, walk, rows, missed * rows / keys)
            now += walk
        return writes.end() + _latency(_TO_HOST)

    def _walk(self, keys: int, held, beats: int):
        """Return the cycles in which ``held`` vectors are read out of a table of ``keys``: theirs,
        and one for each set that is empty in the mean."""
        sets = keys // self.config.gradient_ways
        return sets * np.exp(-held / sets) + _PER_BEAT * beats * held

    def _crossing(self, size):
        """Return the cycles that ``size`` bytes take over PCIe."""
        return size / (self.devices.pcie.bandwidth_gb_s * CYCLE_NS)


def _latency(blocks: Sequence[type]) -> int:
    """Return the sum of the first latencies that blocks document, in cycles."""
    return sum(next(iter(block.LATENCY.values())) for block in blocks)

"""The gradient path of the NICs: how long it takes for a step, from what happens in it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from host.systems import Devices, Workload
from host.systems.tables import vector_bytes
from host.timing.clock import CYCLE_NS, cycles_of_us
from host.timing.gpu import GpuProfile
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
from sim.evaluation.row_writes import RowWrites

__all__ = ["GradientPath"]

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

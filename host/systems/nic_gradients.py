"""Analytical time of the SmartNICs' gradient path for a step, from its rates."""

from host.systems.devices import Devices
from host.systems.tables import vector_bytes
from host.systems.workload import Workload
from host.timing.clock import CYCLE_NS
from rtl.config import LANES
from rtl.formats import RECORD_BITS

__all__ = ["gradient_us"]

_OPTIMIZER = 2
"""Cycles of a beat in the optimizer, ``RATE`` of ``rtl.gradient.optimizer``."""


def gradient_us(w: Workload, d: Devices) -> float:
    """Return the time from gradients of bags in GPU memory to the last row written there.

    Three parts follow each other, since sums are complete only with a node's last gradient: bags go
    over PCIe and are expanded and summed, a beat per cycle (``RATE`` of the blocks of
    ``rtl.gradient``); sums of a requester's keys go to their owners, a beat per cycle, limited by
    the busiest link; sums of an owner's keys go through the optimizer, a beat in two cycles, and
    rows over PCIe to GPU memory. Each part takes the time of its slower half; every crossing adds
    its latency. The busiest node counts.
    """
    size, record = vector_bytes(w), RECORD_BITS // 8
    beats = max(1, w.model.dimension // LANES)
    pcie = d.pcie.bandwidth_gb_s * 1e3

    def cycles(vectors) -> float:
        return beats * float(vectors.max()) * CYCLE_NS / 1000

    def moved(vectors, extra: int) -> float:
        return (size + extra) * float(vectors.max()) / pcie

    bags, lookups, sums = w.bags.sum(axis=1), w.lookups.sum(axis=1), w.requested.sum(axis=1)
    local = max(moved(bags, record), cycles(lookups))
    link = float(d.host_mpi.topology.link_us((size + record) * w.requested).max())
    exchange = max(cycles(sums), cycles(w.requested.sum(axis=0)), link)
    rows = max(_OPTIMIZER * cycles(w.unique), moved(w.unique, record))
    crossings = 2 * d.pcie.one_way_us + (d.network.one_way_us if w.nodes > 1 else 0.0)
    return local + exchange + rows + crossings

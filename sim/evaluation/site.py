"""Site of a system: its point, the trace, and the work and devices that the search needs."""

from dataclasses import dataclass, replace

from host.batching.repeats import repeated_bags
from host.once import once
from host.systems import COPIED_ROWS, THREADS, Devices
from sim.evaluation.fields import Fields, devices_of
from sim.evaluation.forming import Forming, forming_of
from sim.evaluation.store import Store
from sim.evaluation.trace import Trace, plan_of, trace_of
from sim.evaluation.workloads import Workloads, workloads

__all__ = ["Site"]


@dataclass(frozen=True, eq=False)
class Site:
    """A point with all inputs of its system.

    point, trace: the point and its trace. work: work of each mini-batch. devices: devices of a
        node. runs: store of NIC runs, or None.
    """

    point: Fields
    trace: Trace
    work: Workloads
    devices: Devices
    runs: Store | None = None

    @classmethod
    def of(cls, point: Fields, runs: Store | None = None, trace: Trace | None = None) -> "Site":
        """Return the site of a point; ``trace``: replaces the point's own trace.

        The point gives the placement; :func:`sim.evaluation.placing.placed` searches it.
        If NICs run smaller mini-batches, the whole ones are in file order: forming a mini-batch of
        millions of keys takes minutes, and GPUs alone share its trace.
        """
        of = point.workload if point.system.sampled is None else replace(
            point.workload, batching="file", window=None)
        found = trace or trace_of(of)
        if of.training and found.model.weighted_tables:
            raise ValueError(f"weighted of table {found.model.weighted_tables[0]} must be false in "
                             f"training, not true: systems do not charge its gradients")
        return cls(point, found, workloads(found, plan_of(point, found)),
                   devices_of(point.cluster), runs)

    @property
    def training(self) -> bool:
        """Whether the point trains."""
        return self.point.workload.training

    @property
    def nic_trace(self) -> Trace:
        """The trace that NICs run: in mini-batches of the point's ``sampled``, if it has that."""
        sampled = self.point.system.sampled
        if sampled is None:
            return self.trace
        return trace_of(replace(self.point.workload, mini_batch=sampled))

    @property
    def forming(self) -> Forming:
        """The threads that form the mini-batches."""
        measured = self.trace.measured
        return forming_of(
            self.point.workload.batching,
            sum(len(batch.samples.rows) for batch in measured) / len(measured),
            self.devices.cpu.cpu, self.point.cluster.endpoints)

    @property
    def threads(self) -> int:
        """Most host threads, with the thread of the NIC's driver. Without graphs, calls come from
        Python, which runs one thread at a time."""
        return THREADS if self.devices.software.graphs else THREADS - 1

    @property
    def key_bytes(self) -> int:
        """Bytes of a key: 4 if all rows together have numbers of 32 bits."""
        return 4 if sum(self.trace.model.rows) < 1 << 32 else 8

    @property
    def repeats(self) -> bool:
        """Whether a bag equals the bag of its table in the preceding sample of a share."""
        return _repeats(self.trace, self.point.cluster.endpoints)

    @property
    def copied_rows(self) -> list[int]:
        """Limits on the rows of copied tables that copy different tables."""
        rows = self.trace.model.rows
        return list({sum(each <= limit for each in rows): limit
                     for limit in reversed(COPIED_ROWS)}.values())[::-1]


@once
def _repeats(trace: Trace, nodes: int) -> bool:
    return any(bool((repeated_bags(batch.samples, nodes) & (batch.samples.bag_lengths > 0)).any())
               for batch in trace.measured)

"""Times of a cluster of SmartNICs for one mini-batch, simulated or modelled."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from host.devices.operation import Operation
from host.systems.devices import Devices
from host.systems.workload import Workload

__all__ = ["NicTimes", "OwnerUpdates"]


@dataclass(frozen=True)
class OwnerUpdates:
    """Updates, by the GPUs of their owners, of the rows of tables that pool there.

    Members
    -------
    held_us: time in which bags with gradients occupy the busiest NIC.
    bags_us: time from gradients in GPU memory to the last bag in GPU memory of its owner.
    told_us: time from the last row written until all hosts are notified.
    read, written: bytes that the busiest NIC reads from its GPU, and writes to it.
    link_us: use of the busiest network link.
    kernels: the kernel of the slowest GPU that sums the gradients and updates the rows.
    """

    held_us: float
    bags_us: float
    told_us: float
    read: float
    written: float
    link_us: float
    kernels: tuple[Operation, ...]

    def alone_us(self, d: Devices) -> float:
        """Return the microseconds from gradients in GPU memory until all hosts are notified."""
        return self.bags_us + self.call_us(d) + d.gpu.gpu.launch_us + self.told_us + sum(
            each.operators * d.gpu.kernels(each).us for each in self.kernels)

    def call_us(self, d: Devices) -> float:
        """Return the time of the driver's thread: a call for a graph, or for each operator."""
        calls = 1 if d.software.graphs else sum(each.operators for each in self.kernels)
        return calls * d.software.launch_call_us


@dataclass(frozen=True)
class NicTimes:
    """Times of one mini-batch on the NICs, including the GPUs that answer lookups, in microseconds.

    Members
    -------
    phases: time from the first query to the last answer in host memory, of a single mini-batch, by
        phase in chronological order.
    interval_us: time between mini-batches with several in flight.
    launches: kernels that the NIC's driver launches on the busiest GPU: gathers, and kernels that
        pool bags.
    gathers: all gathers on that GPU.
    gathered: rows that these gathers read.
    pooled_launches: kernels that pool bags of other nodes on the busiest GPU, each launched by the
        driver.
    pooled_rows, pooled_bags: rows that these kernels read, and their bags.
    own_rows, own_bags: rows and bags of the busiest node's own samples in tables that pool at this
        node. NICs do not see them: the GPU pools them.
    pooled_values, own_values: values of these rows; 0 if all rows have the width of the NICs.
    own_weights, pooled_weights: weights of own rows, and of rows of other nodes' bags, at the node
        with the most.
    sent_bytes: bytes that a NIC sends to other nodes, mean over nodes.
    delivered_bytes: bytes that a NIC writes to its host and GPU, maximum over nodes: request lists,
        results and notifications, with packet headers.
    interaction_us: with the interaction on the NIC, time from dense vectors in GPU memory to the
        last answer if all lookups are done.
    update_us: in training, time from the last node's gradients to the last row written.
    update_launches: kernels of this time that read and write rows on the busiest GPU.
    updated, missed: rows of the busiest owner that these kernels write, and read.
    reduced: mini-batch of the tables whose gradients NICs sum; None for all tables.
    owner_updates: updates of the other tables, by GPUs; None if there are none.
    """

    phases: Mapping[str, float] = field(default_factory=dict)
    interval_us: float = 0.0
    launches: float = 0.0
    gathers: float = 0.0
    gathered: float = 0.0
    pooled_launches: float = 0.0
    pooled_rows: float = 0.0
    pooled_bags: float = 0.0
    own_rows: float = 0.0
    own_bags: float = 0.0
    own_weights: float = 0.0
    pooled_weights: float = 0.0
    pooled_values: float = 0.0
    own_values: float = 0.0
    sent_bytes: float = 0.0
    delivered_bytes: float = 0.0
    update_us: float = 0.0
    update_launches: float = 0.0
    updated: float = 0.0
    missed: float = 0.0
    interaction_us: float = 0.0
    reduced: Workload | None = None
    owner_updates: OwnerUpdates | None = None

    @property
    def service_us(self) -> float:
        """Microseconds of all phases."""
        return sum(self.phases.values())

    def times_as_many(self, by: float) -> "NicTimes":
        """Return the times of a mini-batch of ``by`` times as many samples.

        NICs do not tell samples of a mini-batch from samples of the next one, so that the larger
        mini-batch takes the time of the first smaller one alone, and an interval for each further
        one. Each phase grows by the same factor, at most ``by``.
        """
        alone = self.service_us
        longer = min(by, 1 + (by - 1) * self.interval_us / alone) if alone else by

        def multiplied(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {phase: longer * us for phase, us in value.items()}
            return None if value is None else by * value

        return NicTimes(**{name: multiplied(value) for name, value in vars(self).items()})

"""The interface of a node to its cluster."""

from collections.abc import Sequence
from typing import Protocol

from host.timing.pcie import Pcie
from sim.engines import Engine
from sim.job.faults import Windows
from sim.node.step import Step

__all__ = ["BagCounts", "ClusterNode", "DenseCounts", "GatherCounts"]


class GatherCounts(Protocol):
    """Counts of one kind of gather on a node's GPU: ``launches``, and ``rows`` read."""

    @property
    def launches(self) -> int: ...
    @property
    def rows(self) -> int: ...


class BagCounts(Protocol):
    """Counts of bags pooled by a node's GPU: bags of other nodes (``foreign``) in ``lists``,
    ``own`` bags, ``keys`` of both, and kernel ``launches``."""

    @property
    def foreign(self) -> int: ...
    @property
    def own(self) -> int: ...
    @property
    def keys(self) -> int: ...
    @property
    def lists(self) -> int: ...
    @property
    def launches(self) -> int: ...


class DenseCounts(Protocol):
    """Count of dense vectors: ``rows`` sent."""

    @property
    def rows(self) -> int: ...


class ClusterNode(Protocol):
    """One NIC with its host and GPU.

    Members
    -------
    number: of the node.
    engine: its NIC.
    pcie: connection between NIC and host.
    finished: steps whose share at this node is fully answered, in time order.
    silent_host, silent_gpu: times in which the host sends nothing, and in which no gather
        completes.
    actions: actions performed; the watchdog reports a hang if the sum stops growing.
    progress: host cycle of the last progress of a result, known before the NIC reaches the cycle: a
        part of an answer or a rejection was placed; the NIC took queries, gradients or updated
        rows; a pass or a step of training ended; or work that is handed out later begins.
    lacking: numbers of the samples, in flight or waiting, without answers.
    next_events: the next cycles at which the NIC and the host act without new input.
    quiet: whether NIC and host stay idle until an input arrives from outside.
    errors: sample and status of each rejected sample.
    seconds: CPU time of NIC and host.
    host_bytes: bytes over PCIe in each direction.
    gpu: gathers of rows.
    bags: bags pooled, None without owner-pooled tables.
    dense: dense vectors sent, None unless the NIC computes the interaction.
    unanswered: number of samples in flight or waiting.
    queries_waiting: query packets held back for lack of credit.
    packets_unsent: packets for the NIC that a silent host has not sent yet.
    """

    number: int
    finished: list[Step]
    silent_host: Windows
    silent_gpu: Windows

    @property
    def engine(self) -> Engine: ...
    @property
    def pcie(self) -> Pcie: ...
    @property
    def actions(self) -> int: ...
    @property
    def progress(self) -> float: ...
    @property
    def lacking(self) -> Sequence[int]: ...
    @property
    def next_events(self) -> tuple[float, float]: ...
    @property
    def quiet(self) -> bool: ...
    @property
    def errors(self) -> list[tuple[int, int]]: ...
    @property
    def seconds(self) -> dict[str, float]: ...
    @property
    def host_bytes(self) -> dict[str, int]: ...
    @property
    def gpu(self) -> GatherCounts: ...
    @property
    def bags(self) -> BagCounts | None: ...
    @property
    def dense(self) -> DenseCounts | None: ...
    @property
    def unanswered(self) -> int: ...
    @property
    def queries_waiting(self) -> int: ...
    @property
    def packets_unsent(self) -> int: ...

    def submit(self, step: Step, time: float) -> None:
        """Queue this host's share of ``step``, to start in its turn, not before ``time``."""
        ...

    def advance(self, end: int) -> None:
        """Run NIC and host up to cycle ``end``."""
        ...

    def host_quantum(self, end: int) -> None:
        """Let the host handle the packets of the NIC, which is at cycle ``end``."""
        ...

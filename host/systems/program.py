"""GPU part of a mini-batch: calls of the host thread, and the stages that they start."""

from collections.abc import Iterable, Sequence

import numpy as np

from host.devices.cost import Cost
from host.devices.operation import Operation
from host.systems.charge import charge
from host.systems.devices import Devices
from host.systems.schedule import COLLECTIVE
from host.systems.stage import Part, Step

__all__ = ["After", "Program", "Work"]

After = Sequence[int]
"""Stages that end before an action starts."""

Work = tuple[str, str, Sequence[Operation]]
"""Name, phase and operators of a part of the GPU's work."""


_SIZE = 8
"""Bytes of a message's size."""


class Program:
    """A mini-batch under construction.

    A host thread calls operators, copies and collectives in the order of the method calls, without
    waiting. The resource ``cpu`` has as many threads as ``devices`` has. An action starts when its
    call has reached the GPU and its predecessors have ended. :meth:`wait` blocks the thread. If the
    software profile has ``graphs``, all GPU work between two waits is one graph with one call.
    ``calls`` of the step lists the calls that several mini-batches can share: a graph launch (each
    mini-batch adds ``graph_us``), a wait, a store to a NIC register, messages with sizes and, with
    ``one_collective``, an NCCL call.

    A kernel holds the multiprocessors that it fills and its share of the memory bandwidth; kernels
    of other mini-batches may run beside it. A copy holds a direction of PCIe. An NCCL collective
    holds its communicator ``nccl``, which runs collectives of all mini-batches in order, and both
    directions of PCIe while bytes move. Concurrent communicators require NCCL 2.26 and the same
    launch order on all GPUs (NCCL user guide, "Using multiple NCCL communicators concurrently").

    With ``relaunched``, a resident kernel launches the graphs. The thread stores a word to GPU
    memory, which the kernel polls. The part behind a flag is a separate graph.

    Parameters: ``devices`` of a node; ``relaunched``. Members: ``step``.
    """

    def __init__(self, devices: Devices, relaunched: bool = False):
        self.step = Step()
        self._d = devices
        self._software = devices.software
        self._thread: tuple[int, ...] = ()
        self._graph: tuple[int, ...] | None = None
        self._gpu = devices.gpu.gpu
        self._cpu = Part("cpu", 1 / devices.threads)
        share = self._d.nccl.nccl.channels / self._gpu.multiprocessors
        self._channels = Part("gpu", min(1.0, share))
        self._links = ("link", Part("pcie_in", devices.link_share),
                       Part("pcie_out", devices.link_share))
        self._relaunched = relaunched
        if relaunched and not devices.software.graphs:
            raise ValueError("relaunch requires software with graphs")

    def kernels(self, parts: Iterable[Work], after: After) -> tuple[int, ...]:
        """Run operators in sequence and return their last stage."""
        at = tuple(after)
        for name, phase, operations in parts:
            for operation in operations:
                each = self._d.gpu.kernels(operation)
                for _ in range(operation.operators):
                    called = self._called(name, self._d.gpu.call_us(operation))
                    at = (self.step.add(name, phase, each.us, Part("gpu", each.share),
                                        Part("gpu_memory", each.memory_share),
                                        after=[*at, *called]),)
        return at

    def copy(self, name: str, size: float, after: After, calls: int = 1,
             to_gpu: bool = True) -> tuple[int, ...]:
        """Copy ``size`` bytes between host and GPU memory in ``calls`` calls; return the last
        stage.
        """
        called: tuple[int, ...] = ()
        for _ in range(calls):
            called = self._called(name, self._d.copies.call_us, 0.0)
        begun = self.step.add(name, "overhead", self._d.copies.latency_us(to_gpu),
                              after=[*called, *after])
        return (self.step.add(name, "overhead", self._d.copies.moving_us(size),
                              "pcie_in" if to_gpu else "pcie_out", after=(begun,)),)

    def wait(self, after: After, name: str = "wait for the GPU") -> tuple[int, ...]:
        """Let the thread wait for the GPU; return the stage at which the thread continues.

        While waiting, the thread may call for other mini-batches. Only the wake-up costs its time.
        """
        at = (self.step.add(name, "overhead", self._software.synchronize_us, self._cpu,
                            after=after),)
        self._thread = (*self._thread, *at)
        self._graph = None
        self.step.calls[at[0]] = 0.0
        return at

    def wait_for_flag(self, after: After, name: str = "wait for the NIC") -> tuple[int, ...]:
        """Let the GPU wait for a flag in its memory, without the host; return the stage after the
        wait.

        The wait is a graph node or an operator that holds no multiprocessor. Seeing the flag takes
        ``word_us``.
        """
        called = self._called(name, self._software.operator_us)
        us = self._gpu.word_us + (self._gpu.launch_us if self._relaunched else 0.0)
        return (self.step.add(name, "overhead", us, after=[*after, *called]),)

    def tell_from_gpu(self, after: After, name: str) -> tuple[int, ...]:
        """Let the last kernel of ``after`` store to a NIC register; return the stage of its
        arrival.

        Store and fence take as long as the same store by the host thread, which is not involved.
        """
        us = self._software.doorbell_us + self._d.pcie.one_way_us
        return (self.step.add(name, "overhead", us, after=after),)

    def exchange(self, name: str, phase: str, traffic: np.ndarray, after: After,
                 library: str, grouped: bool = False) -> tuple[int, ...]:
        """Exchange ``traffic``, bytes ``[from, to]``, between the nodes; return the last stage.

        library: ``nccl``, ``mpi`` and ``gpu`` exchange between GPU memories; ``gpu`` by stores of
        kernels. ``host`` is MPI between host memories.
        grouped: with NCCL, share a call with the exchange of another mini-batch. Only the bytes are
        then charged here.
        """
        if len(traffic) == 1:
            return tuple(after)
        if library == "nccl":
            more = (self._d.nccl.further_us(traffic) if self._d.one_collective and not grouped
                    else None)
            return self._nccl(name, phase, self._d.nccl.all_to_all(traffic), after, grouped, more)
        if library == "gpu":
            return self._puts(name, phase, traffic, after)
        cost = self._d.host_mpi.all_to_all(traffic)
        if library == "host":
            return self._mpi(name, phase, cost, after)
        return self._through_hosts(name, phase, cost, float(traffic.sum(axis=1).max()),
                                   float(traffic.sum(axis=0).max()), after)

    def all_reduce(self, name: str, size: float, after: After,
                   nccl: bool = False) -> tuple[int, ...]:
        """Sum ``size`` bytes over the nodes, by ``nccl`` or the library of the software profile."""
        if nccl or self._software.collective == "nccl":
            return self._nccl(name, "all_reduce", self._d.nccl.all_reduce(size), after)
        return self._through_hosts(name, "all_reduce", self._d.host_mpi.all_reduce(size), size,
                                   size, after)

    def _nccl(self, name: str, phase: str, cost: Cost, after: After, grouped: bool = False,
              more: float | None = None) -> tuple[int, ...]:
        """Add a collective that is a GPU kernel.

        more: microseconds that a further mini-batch adds to the call; None for separate calls.
        """
        if not cost.us:
            return tuple(after)
        called = () if grouped else self._called(name, self._software.operator_us)
        held = (self._channels,
                Part(COLLECTIVE, 1 / self._d.communicators))
        begun = self.step.add(name, phase, cost.overhead_us, *(() if grouped else held),
                              after=[*after, *called])
        if more is not None:
            self.step.calls[begun] = more
        return (self.step.add(name, phase, cost.work_us, *held, *self._links, after=(begun,)),)

    def _puts(self, name: str, phase: str, traffic: np.ndarray, after: After) -> tuple[int, ...]:
        """Add an exchange in which a kernel stores to the NIC, and a graph node or an operator,
        which holds no multiprocessor, waits for the data of the other nodes."""
        cost = self._d.nccl.puts(traffic)
        if not cost.us:
            return tuple(after)
        called = self._called(name, self._software.operator_us)
        at = self.step.add(name, phase, self._gpu.kernel_us, self._channels,
                           after=[*after, *called])
        at = self.step.add(name, phase, cost.overhead_us, after=(at,))
        return self.wait_for_flag((self.step.add(name, phase, cost.work_us, *self._links,
                                                 after=(at,)),), name)

    def _through_hosts(self, name: str, phase: str, cost: Cost, out: float, back: float,
                       after: After) -> tuple[int, ...]:
        """Add a collective between host memories, with copies from the GPU and to it."""
        if not cost.us:
            return tuple(after)
        at = self.wait(self.copy(name, out, after, to_gpu=False))
        return self.copy(name, back, self._mpi(name, phase, cost, at))

    def _mpi(self, name: str, phase: str, cost: Cost, after: After) -> tuple[int, ...]:
        """Add a collective that the thread waits for.

        The framework's call is overhead; messages and latency belong to ``phase``.
        """
        if not cost.us:
            return tuple(after)
        own = Cost(cost.us, min(self._d.host_mpi.call_us, cost.us), cost.busy)
        self._thread = (charge(self.step, name, phase, own, [*after, *self._thread],
                               {"cpu": self._cpu.share}),)
        return self._thread

    def sizes(self, traffic: np.ndarray, after: After) -> tuple[int, ...]:
        """Let the hosts tell each other the sizes of ``traffic``, for which the thread waits.

        Mini-batches of a graph share the messages.
        """
        cost = self._d.host_mpi.all_to_all(_SIZE * (traffic > 0))
        if not cost.us:
            return tuple(after)
        calls = cost.busy["cpu"]
        sent = self.step.add("sizes", "overhead", calls, self._cpu,
                             after=[*self._thread, *after])
        self.step.calls[sent] = 0.0
        self._thread = (self.step.add("sizes", "input_all_to_all", cost.us - calls, after=(sent,)),)
        self._graph = None
        return self._thread

    def tell_nic(self, after: After = (), name: str = "doorbell") -> tuple[int, ...]:
        """Store to a NIC register from the thread; return the stage of its arrival.

        Without graphs, the framework calls an operator for the store.
        """
        us = self._software.doorbell_us + (0.0 if self._software.graphs else
                                           self._software.operator_us)
        rung = self.step.add(name, "overhead", us, self._cpu, after=[*self._thread, *after])
        self._thread = (rung,)
        self.step.calls[rung] = 0.0
        return (self.step.add(name, "overhead", self._d.pcie.one_way_us, after=(rung,)),)

    def _called(self, name: str, us: float, latency: float | None = None) -> tuple[int, ...]:
        """Call an action; return the stage at which the call has reached the GPU.

        latency: microseconds from the call to the GPU; the default is the latency of a launch.
        """
        if self._software.graphs:
            if self._graph is None and self._relaunched:
                self._graph = self._call(
                    "word for the resident kernel", self._software.doorbell_us,
                    self._d.pcie.one_way_us + self._gpu.poll_us + self._gpu.launch_us)
            elif self._graph is None:
                self._graph = self._call("graph", self._software.graph_us, self._gpu.launch_us)
                self.step.calls[self._thread[0]] = self._software.graph_us
            return self._graph
        return self._call(name, us, self._gpu.launch_us if latency is None else latency)

    def _call(self, name: str, us: float, latency: float) -> tuple[int, ...]:
        self._thread = (self.step.add(name, "overhead", us, self._cpu, after=self._thread),)
        return (self.step.add(name, "overhead", latency, after=self._thread),) if latency else (
            self._thread)

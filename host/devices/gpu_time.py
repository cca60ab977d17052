"""Timing model of GPU kernels: duration, and occupancy of the GPU."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import Any

from host.devices.cost import Cost
from host.devices.operation import Operation
from host.devices.software import SoftwareProfile
from host.once import once
from host.timing.gpu import GpuProfile

__all__ = ["GpuTime", "Kernels"]


@dataclass(frozen=True)
class Kernels:
    """The kernels of an operator.

    Members
    -------
    us: duration on an idle GPU.
    share: share of the GPU that they take from kernels beside them, on average over the duration;
        at least one multiprocessor.
    memory_share: share of the memory bandwidth that they occupy, on average.
    """

    us: float
    share: float
    memory_share: float


class GpuTime:
    """A GPU under a software profile; see :class:`host.timing.gpu.GpuProfile` for its constants.

    The duration of an operator's kernels is ``kernel_us`` per kernel and the longest of three
    times: its bytes at the memory bandwidth, its arithmetic at the rate of the multiprocessors that
    it fills (Williams, Waterman and Patterson, "Roofline", Commun. ACM 52(4), 2009), and its reads
    in sequence at ``read_us`` each. The profile's fractions reduce these rates. A multiprocessor
    computes whole tiles of a product, in as many waves as necessary; any other kernel fills a
    multiprocessor per ``block_bytes``. ``kernel_us`` and reads in sequence are latencies, not a use
    of the GPU. ``kernel_us`` was measured with kernels without work, and measured rates exclude it.

    Kernels of other mini-batches may use the rest of the GPU, but disturb each other: a kernel
    beside others takes its multiprocessors for its time over ``beside_fraction``, and the whole GPU
    for ``beside_us``.

    Parameters: ``gpu``; ``software``.
    """

    def __init__(self, gpu: GpuProfile, software: SoftwareProfile):
        self.gpu = gpu
        self.software = software
        self.found: dict[Hashable, Any] = {}

    @cached_property
    def beside_resident(self) -> "GpuTime":
        """The part of the GPU that a resident kernel leaves free.

        The resident kernel permanently occupies its multiprocessors, and the same share of the
        memory bandwidth. Raises ``ValueError`` if no multiprocessor is left.
        """
        gpu = self.gpu
        left = gpu.multiprocessors - gpu.resident_multiprocessors
        if left < 1:
            raise ValueError(f"resident_multiprocessors must be below the {gpu.multiprocessors} of "
                             f"the GPU, not {gpu.resident_multiprocessors!r}")
        share = left / gpu.multiprocessors
        return GpuTime(replace(gpu, multiprocessors=left, float32_tflops=gpu.float32_tflops * share,
                               memory_bandwidth_gb_s=gpu.memory_bandwidth_gb_s * share),
                       self.software)

    def memory_us(self, operation: Operation) -> float:
        """Return the microseconds of memory bandwidth that ``operation`` needs."""
        gpu = self.gpu
        return (operation.streamed_bytes / (gpu.memory_bandwidth_gb_s * 1e3 * gpu.stream_fraction)
                + operation.row_traffic(gpu.access_bytes)
                / (gpu.memory_bandwidth_gb_s * 1e3 * gpu.gather_fraction))

    def compute_us(self, operation: Operation) -> float:
        """Return the microseconds of arithmetic that ``operation`` needs."""
        fraction = self.gpu.gemm_fraction if operation.matrix else 1.0
        if operation.tiles:
            fraction *= self.share(operation)
        flops = operation.tiles * operation.tile_flops or operation.flops
        return flops / (self.gpu.float32_tflops * 1e6 * fraction)

    def share(self, operation: Operation) -> float:
        """Return the share of the GPU's multiprocessors that each kernel of an operator fills."""
        if operation.tiles:
            # In waves: the last wave leaves multiprocessors idle.
            each = max(1.0, operation.tiles / operation.operators) / self.gpu.multiprocessors
            return each / ceil(each)
        moved = operation.streamed_bytes + operation.row_traffic(self.gpu.access_bytes)
        blocks = ceil(moved / self.gpu.block_bytes / operation.operators)
        return min(1.0, max(1, blocks) / self.gpu.multiprocessors)

    def work_us(self, operation: Operation) -> float:
        """Return the microseconds of ``operation``, without launches."""
        return operation.kernels * self.gpu.kernel_us + max(
            self.busy_us(operation), operation.operators * operation.reads * self.gpu.read_us)

    def busy_us(self, operation: Operation) -> float:
        """Return the microseconds in which ``operation`` uses the GPU."""
        return max(self.memory_us(operation), self.compute_us(operation))

    @once
    def kernels(self, operation: Operation) -> Kernels:
        """Return duration and shares of each call of the operator; equal ones are computed once."""
        us = self.work_us(operation)
        least = 1 / self.gpu.multiprocessors
        if not us:
            return Kernels(0.0, least, 0.0)
        held = max(least * us, self.share(operation) * self.busy_us(operation))
        taken = held / self.gpu.beside_fraction + operation.kernels * self.gpu.beside_us
        return Kernels(us / operation.operators, min(1.0, taken / us),
                       self.memory_us(operation) / us)

    def call_us(self, operation: Operation) -> float:
        """Return the host time of a framework call of ``operation``."""
        return (self.software.fused_embedding_us if operation.fused_embedding
                else self.software.operator_us)

    def run(self, *operations: Operation) -> Cost:
        """Return the cost of consecutive ``operations`` on an idle GPU.

        The host calls operators in sequence without waiting for the GPU. On the GPU, an operator
        starts ``launch_us`` after its call, but not before the previous operator has ended. With
        ``graphs``, there is a single call for all operators. Inputs and outputs are in GPU memory;
        :meth:`synchronize` makes the host wait for the outputs.

        Overhead is the time in which the GPU waits for the host. ``gpu`` and ``gpu_memory`` are
        busy with the kernels' shares, ``cpu`` with the calls.
        """
        software = self.software
        called = software.graph_us if software.graphs and operations else 0.0
        done = work = gpu = memory = 0.0
        for operation in operations:
            each = self.kernels(operation)
            for _ in range(operation.operators):
                if not software.graphs:
                    called += self.call_us(operation)
                done = max(done, called + self.gpu.launch_us) + each.us
                work += each.us
                gpu += each.share * each.us
                memory += each.memory_share * each.us
        return Cost(done, max(0.0, done - work),
                    {"gpu": gpu, "gpu_memory": memory, "cpu": called} if operations else {})

    def synchronize(self) -> Cost:
        """Return the host's cost of waiting for the GPU, in addition to the GPU's time."""
        us = self.software.synchronize_us
        return Cost(us, us, {"cpu": us})

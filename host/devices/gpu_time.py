"""Timing model of kernels on a GPU: how long each runs, and how much of the GPU it occupies."""

from dataclasses import dataclass
from math import ceil

from host.devices.cost import Cost
from host.devices.operation import Operation
from host.devices.software import SoftwareProfile
from host.timing.gpu import GpuProfile

__all__ = ["GpuTime", "Kernels"]


@dataclass(frozen=True)
class Kernels:
    """The kernels of one operator.

    Members
    -------
    us: from their start on a free GPU until their results are in its memory.
    share: of the GPU's multiprocessors that they occupy meanwhile.
    memory_share: of the rate of the GPU's memory.
    """

    us: float
    share: float
    memory_share: float


class GpuTime:
    """A GPU under a software profile; see :class:`host.timing.gpu.GpuProfile` for its constants.

    An operator's kernels take the longest of: the time for its bytes at the memory's rate, the time
    for its arithmetic at the rate of the multiprocessors that it fills, and ``kernel_us`` per
    kernel (Williams, Waterman and Patterson, "Roofline", Commun. ACM 52(4), 2009). The profile's
    fractions say how much of a rate a kernel reaches. A product fills a multiprocessor for each of
    its tiles, in as many waves as it takes; any other kernel one for each ``block_bytes`` that it
    moves. What it does not fill,
    kernels of other mini-batches may use: ``kernel_us`` is a latency, not a use of the GPU.

    Parameters: ``gpu``; ``software``, which calls it.
    """

    def __init__(self, gpu: GpuProfile, software: SoftwareProfile):
        self.gpu = gpu
        self.software = software

    def memory_us(self, operation: Operation) -> float:
        """Return the microseconds that the GPU's memory needs for the bytes of ``operation``."""
        gpu = self.gpu
        return (operation.streamed_bytes / (gpu.memory_bandwidth_gb_s * 1e3 * gpu.stream_fraction)
                + operation.row_traffic(gpu.access_bytes)
                / (gpu.memory_bandwidth_gb_s * 1e3 * gpu.gather_fraction))

    def compute_us(self, operation: Operation) -> float:
        """Return the microseconds that the GPU needs for the arithmetic of ``operation``."""
        fraction = self.gpu.gemm_fraction if operation.matrix else 1.0
        if operation.tiles:
            fraction *= self.share(operation)
        return operation.flops / (self.gpu.float32_tflops * 1e6 * fraction)

    def share(self, operation: Operation) -> float:
        """Return the share of the GPU's multiprocessors that each kernel of an operator fills."""
        if operation.tiles:
            # In waves: the last one leaves multiprocessors idle.
            each = max(1.0, operation.tiles / operation.operators) / self.gpu.multiprocessors
            return each / ceil(each)
        moved = operation.streamed_bytes + operation.row_traffic(self.gpu.access_bytes)
        blocks = ceil(moved / self.gpu.block_bytes / operation.operators)
        return min(1.0, max(1, blocks) / self.gpu.multiprocessors)

    def work_us(self, operation: Operation) -> float:
        """Return the microseconds that the GPU works on ``operation``, without launches."""
        return max(operation.kernels * self.gpu.kernel_us, self.memory_us(operation),
                   self.compute_us(operation))

    def kernels(self, operation: Operation) -> Kernels:
        """Return what each of the operator's calls is for the GPU."""
        us = self.work_us(operation)
        memory = min(1.0, self.memory_us(operation) / us) if us else 0.0
        return Kernels(us / operation.operators, self.share(operation), memory)

    def call_us(self, operation: Operation) -> float:
        """Return the host's time of a call of ``operation``, by the framework."""
        return (self.software.fused_embedding_us if operation.fused_embedding
                else self.software.operator_us)

    def run(self, *operations: Operation) -> Cost:
        """Return the cost of consecutive ``operations`` on an idle GPU.

        The host calls one operator after the other without waiting for the GPU. On the GPU, an
        operator starts ``launch_us`` after its call, but not before the previous one has ended.
        With ``graphs`` there is one call for all of them. Inputs and outputs are in GPU memory;
        :meth:`synchronize` makes the host wait for the outputs.

        Overhead is the time in which the GPU waits for the host. ``gpu`` and ``gpu_memory`` are
        busy with the kernels' shares of them, ``cpu`` with the calls.
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

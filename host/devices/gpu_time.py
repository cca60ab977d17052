"""Timing model of operations on a GPU: a roofline for each, plus launch costs."""

from host.devices.cost import Cost
from host.devices.operation import Operation
from host.devices.software import SoftwareProfile
from host.timing.gpu import GpuProfile

__all__ = ["GpuTime"]


class GpuTime:
    """A GPU under a software profile; see :class:`host.timing.gpu.GpuProfile` for its constants.

    An operator's kernels take the longest of: the time for its bytes at the memory's rate, the time
    for its arithmetic at the GPU's rate, and ``kernel_us`` per kernel (Williams, Waterman and
    Patterson, "Roofline", Commun. ACM 52(4), 2009). The profile's fractions say how much of either
    rate a kernel reaches.

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
        return operation.flops / (self.gpu.float32_tflops * 1e6 * fraction)

    def work_us(self, operation: Operation) -> float:
        """Return the microseconds that the GPU works on ``operation``, without launches."""
        return max(operation.kernels * self.gpu.kernel_us, self.memory_us(operation),
                   self.compute_us(operation))

    def run(self, *operations: Operation) -> Cost:
        """Return the cost of consecutive ``operations`` on an idle GPU.

        The host calls one operator after the other without waiting for the GPU. On the GPU, an
        operator starts ``launch_us`` after its call, but not before the previous one has ended.
        With ``graphs`` there is one call for all of them. Inputs and outputs are in GPU memory;
        :meth:`synchronize` makes the host wait for the outputs.

        Overhead is the time in which the GPU waits for the host. ``gpu`` is busy while a kernel
        runs, ``gpu_memory`` for its bytes, and ``cpu`` for the calls.
        """
        software = self.software
        called = software.graph_us if software.graphs and operations else 0.0
        done = work = memory = 0.0
        for operation in operations:
            part = self.work_us(operation) / operation.operators
            for _ in range(operation.operators):
                if not software.graphs:
                    called += (software.fused_embedding_us if operation.fused_embedding
                               else software.operator_us)
                done = max(done, called + self.gpu.launch_us) + part
                work += part
            memory += self.memory_us(operation)
        return Cost(done, max(0.0, done - work),
                    {"gpu": work, "gpu_memory": memory, "cpu": called} if operations else {})

    def synchronize(self) -> Cost:
        """Return the host's cost of waiting for the GPU, in addition to the GPU's time."""
        return Cost(self.software.synchronize_us, self.software.synchronize_us)

"""A CPU: its profile, and the time of operations on it."""

from dataclasses import dataclass, field

from host.devices.cost import Cost
from host.devices.operation import Operation
from host.toml.provenance import check_source

__all__ = ["CpuProfile", "CpuTime"]


@dataclass(frozen=True)
class CpuProfile:
    """Constants of a CPU, all its cores together.

    Members
    -------
    name: of the profile.
    cores: that compute.
    memory_bandwidth_gb_s: of reads and writes in order.
    random_bandwidth_gb_s: of whole accesses anywhere in memory, as many under way as the cores can
        have, at most ``memory_bandwidth_gb_s``.
    access_bytes: bytes that an access moves at least, a cache line.
    float32_tflops: 10^12 float32 operations in a second, in matrix products that are large.
    operator_us: of the framework, for one call of an operator.
    source: of each number, see :mod:`host.toml.provenance`.

    Raises ``ValueError`` for a constant that cannot be.
    """

    name: str
    cores: int
    memory_bandwidth_gb_s: float
    random_bandwidth_gb_s: float
    access_bytes: int
    float32_tflops: float
    operator_us: float
    source: dict[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for name in ("cores", "memory_bandwidth_gb_s", "random_bandwidth_gb_s", "access_bytes",
                     "float32_tflops", "operator_us"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, not {getattr(self, name)!r}")
        check_source(self)


class CpuTime:
    """A CPU that runs operations one after the other on all its cores.

    A roofline for each, as in :class:`host.devices.gpu_time.GpuTime`, behind the framework's call;
    nothing overlaps the call, since the cores that make it are those that work. Parameter: ``cpu``.
    """

    def __init__(self, cpu: CpuProfile):
        self.cpu = cpu

    def memory_us(self, operation: Operation) -> float:
        """Return the microseconds that the memory needs for the bytes of ``operation``."""
        # A sweep may have scaled one of the rates alone.
        random = min(self.cpu.random_bandwidth_gb_s, self.cpu.memory_bandwidth_gb_s)
        return (operation.streamed_bytes / (self.cpu.memory_bandwidth_gb_s * 1e3)
                + operation.row_traffic(self.cpu.access_bytes) / (random * 1e3))

    def work_us(self, operation: Operation) -> float:
        """Return the microseconds that the CPU is at ``operation``, calls left out."""
        return max(self.memory_us(operation), operation.flops / (self.cpu.float32_tflops * 1e6))

    def run(self, *operations: Operation) -> Cost:
        """Return the cost of ``operations`` one after the other.

        Overhead are the calls of the framework. Busy are ``cpu``, and ``cpu_memory`` for its bytes.
        """
        work = sum(self.work_us(operation) for operation in operations)
        overhead = self.cpu.operator_us * sum(operation.operators for operation in operations)
        memory = sum(self.memory_us(operation) for operation in operations)
        return Cost(work + overhead, overhead,
                    {"cpu": work + overhead, "cpu_memory": memory} if operations else {})

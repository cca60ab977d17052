"""A CPU: its profile, and its timing model."""

from dataclasses import dataclass, field

from host.devices.cost import Cost
from host.devices.operation import Operation
from host.toml.provenance import check_source

__all__ = ["CpuProfile", "CpuTime"]


@dataclass(frozen=True)
class CpuProfile:
    """Constants of a CPU, for all its cores together.

    Members
    -------
    name: name of the profile.
    cores: number of cores that compute.
    memory_bandwidth_gb_s: rate of sequential reads and writes.
    random_bandwidth_gb_s: rate of random accesses with the maximum number in flight, at most
        ``memory_bandwidth_gb_s``.
    access_bytes: minimum bytes of an access, a cache line.
    float32_tflops: 10^12 float32 operations per second in large matrix products.
    operator_us: framework time of an operator call.
    graph_key_ns: time of a core for each key of a mini-batch that the graph algorithm forms; the
        default is the time on Kaggle's shape on one core of an AMD EPYC.
    source: source of each number, see :mod:`host.toml.provenance`.

    Raises ``ValueError`` for a constant out of range.
    """

    name: str
    cores: int
    memory_bandwidth_gb_s: float
    random_bandwidth_gb_s: float
    access_bytes: int
    float32_tflops: float
    operator_us: float
    graph_key_ns: float = 188.0
    source: dict[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for name in ("cores", "memory_bandwidth_gb_s", "random_bandwidth_gb_s", "access_bytes",
                     "float32_tflops", "operator_us", "graph_key_ns"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, not {getattr(self, name)!r}")
        check_source(self)


class CpuTime:
    """A CPU that runs operations in sequence on all its cores.

    An operation is a roofline, as in :class:`host.devices.gpu_time.GpuTime`, after the framework's
    call. Calls and work do not overlap, because they use the same cores.

    Parameter: ``cpu``.
    """

    def __init__(self, cpu: CpuProfile):
        self.cpu = cpu

    def memory_us(self, operation: Operation) -> float:
        """Return the microseconds that the memory needs for the bytes of ``operation``."""
        # A sweep may scale only a single rate.
        random = min(self.cpu.random_bandwidth_gb_s, self.cpu.memory_bandwidth_gb_s)
        return (operation.streamed_bytes / (self.cpu.memory_bandwidth_gb_s * 1e3)
                + operation.row_traffic(self.cpu.access_bytes) / (random * 1e3))

    def work_us(self, operation: Operation) -> float:
        """Return the microseconds of work of ``operation``, without calls."""
        return max(self.memory_us(operation), operation.flops / (self.cpu.float32_tflops * 1e6))

    def run(self, *operations: Operation) -> Cost:
        """Return the cost of consecutive ``operations``.

        The framework's calls are overhead. ``cpu`` is busy, and ``cpu_memory`` for the bytes.
        """
        work = sum(self.work_us(operation) for operation in operations)
        overhead = self.cpu.operator_us * sum(operation.operators for operation in operations)
        memory = sum(self.memory_us(operation) for operation in operations)
        return Cost(work + overhead, overhead,
                    {"cpu": work + overhead, "cpu_memory": memory} if operations else {})

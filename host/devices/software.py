"""Software profiles: the host's cost of each GPU call, copy and launch."""

from dataclasses import dataclass, field

from host.devices.dense_work import LEVELS
from host.toml.provenance import check_source

__all__ = ["COLLECTIVES", "SoftwareProfile"]

COLLECTIVES = ("mpi", "nccl")
"""Libraries that exchange data between nodes."""


@dataclass(frozen=True)
class SoftwareProfile:
    """Costs of software around a GPU: ``eager`` or ``tuned``.

    Baselines and systems with SmartNICs use the same profile for each action. Do not compare
    results under different profiles.

    Members
    -------
    name: name of the profile.
    operator_us: host time of an operator call, including the launches of its kernels.
    fused_embedding_us: host time of a call of a batched embedding operator.
    launch_call_us: host time of a launch by a program that calls the driver directly, such as a
        NIC's driver.
    doorbell_us: host time of a store to a register of the NIC.
    copy_us: host time of the call of each copy between host and GPU memory.
    synchronize_us: time from the end of the GPU's last action until the host thread continues;
        tuned software on a measured GPU polls a word that the last kernel stores.
    graphs: whether all GPU work between two waits of the host is launched as one CUDA graph,
        including copies and GPU collectives.
    graph_us: host time of launching a graph, for each mini-batch in the graph.
    fused_embedding: whether a batched operator looks up all tables of a node.
    packed_inputs: whether the inputs of a mini-batch are a single copy instead of a copy per
        tensor.
    kernels: kernel fusion, one of :data:`host.devices.dense_work.LEVELS`.
    collective: library between nodes, one of `COLLECTIVES`.
    source: source of each number, see :mod:`host.toml.provenance`.

    Raises ``ValueError`` for a negative time or an unknown library.
    """

    name: str
    operator_us: float
    fused_embedding_us: float
    launch_call_us: float
    doorbell_us: float
    copy_us: float
    synchronize_us: float
    graphs: bool
    graph_us: float
    fused_embedding: bool
    packed_inputs: bool
    kernels: int
    collective: str
    source: dict[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for name in ("operator_us", "fused_embedding_us", "launch_call_us", "doorbell_us",
                     "copy_us", "synchronize_us", "graph_us"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0, not {getattr(self, name)!r}")
        if self.kernels not in LEVELS:
            raise ValueError(f"kernels must be one of {', '.join(map(str, LEVELS))}, "
                             f"not {self.kernels!r}")
        if self.collective not in COLLECTIVES:
            raise ValueError(f"collective must be {' or '.join(COLLECTIVES)}, "
                             f"not {self.collective!r}")
        check_source(self)

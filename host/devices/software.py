"""Software profiles: the host's cost of each GPU call, copy and launch."""

from dataclasses import dataclass, field

from host.toml.provenance import check_source

__all__ = ["COLLECTIVES", "SoftwareProfile"]

COLLECTIVES = ("mpi", "nccl")
"""Libraries that exchange data between nodes."""


@dataclass(frozen=True)
class SoftwareProfile:
    """Costs of software around a GPU: ``eager`` or ``tuned``.

    Baselines and systems with SmartNICs are charged by the same profile, action by action; a ratio
    of results under two profiles says nothing about a system.

    Members
    -------
    name: of the profile.
    operator_us: host time of one operator call, including the launches of its kernels.
    fused_embedding_us: host time of one call of a batched embedding operator.
    copy_us: fixed time of each copy between host and GPU memory, without its bytes.
    synchronize_us: from the end of the GPU's last action until the host's thread continues.
    graphs: whether a sequence of operators is launched as one CUDA graph.
    graph_us: host time of a graph launch.
    fused_embedding: whether one batched operator looks up all tables of a node.
    collective: one of `COLLECTIVES`, the library between nodes.
    source: of each number, see :mod:`host.toml.provenance`.

    Raises ``ValueError`` for a negative time or an unknown library.
    """

    name: str
    operator_us: float
    fused_embedding_us: float
    copy_us: float
    synchronize_us: float
    graphs: bool
    graph_us: float
    fused_embedding: bool
    collective: str
    source: dict[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for name in ("operator_us", "fused_embedding_us", "copy_us", "synchronize_us", "graph_us"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0, not {getattr(self, name)!r}")
        if self.collective not in COLLECTIVES:
            raise ValueError(f"collective must be {' or '.join(COLLECTIVES)}, "
                             f"not {self.collective!r}")
        check_source(self)

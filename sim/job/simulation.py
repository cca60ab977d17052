"""How a cluster is simulated: what stands for the NICs, and on how many threads."""

from dataclasses import dataclass

__all__ = ["FIDELITIES", "PATIENCE", "Simulation"]

PATIENCE = 500_000
"""Cycles (2 ms) without a beat after which a run is given up: far longer than any answer takes."""

FIDELITIES = ("rtl", "model")
"""How a NIC is simulated: its RTL runs, or a model of it."""


@dataclass(frozen=True)
class Simulation:
    """How a workload is simulated.

    Members
    -------
    engine: what runs the RTL, ``verilator``, ``cxxrtl`` or ``pysim``; all give the same results.
    fidelity: ``rtl``, or ``model``: NICs are counted and timed without RTL (:mod:`sim.model`), and
        may have more nodes and larger caches than RTL.
    threads: nodes that run at once. With several threads, mini-batches are formed and results are
        checked on threads of their own.
    skip: whether cycles in which nothing moves are skipped; results stay the same.
    clock_gating: whether idle training blocks stand still in a model compiled by Verilator, see
        docs/engines.md; results stay the same.
    mlp: how the MLPs are computed, ``fixed`` (the same bits everywhere) or ``blas``.
    patience: cycles without a beat anywhere after which the run is given up.
    """

    engine: str = "verilator"
    fidelity: str = "rtl"
    threads: int = 2
    skip: bool = True
    clock_gating: bool = True
    mlp: str = "fixed"
    patience: int = PATIENCE

    def __post_init__(self) -> None:
        for name in ("threads", "patience"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)!r}")
        if self.fidelity not in FIDELITIES:
            raise ValueError(f"fidelity must be one of {', '.join(FIDELITIES)}, "
                             f"not {self.fidelity!r}")

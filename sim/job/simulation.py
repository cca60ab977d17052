"""Simulation options: the engine or model of the NICs, and the number of threads."""

from dataclasses import dataclass

__all__ = ["FIDELITIES", "PATIENCE", "Simulation"]

PATIENCE = 500_000
"""Cycles (2 ms) without a beat after which a run is aborted: far longer than any answer takes."""

FIDELITIES = ("rtl", "model")
"""What stands for a NIC: its RTL, or a model of it."""


@dataclass(frozen=True)
class Simulation:
    """How a workload is simulated.

    Members
    -------
    engine: what runs the RTL, ``verilator``, ``cxxrtl`` or ``pysim``; all give the same results.
    fidelity: ``rtl``, or ``model``: NICs are counted and timed without RTL (:mod:`sim.model`), and
        clusters may have more nodes and larger caches than with RTL.
    threads: number of nodes that run at once. With several threads, mini-batches are formed and
        results are checked on background threads.
    skip: whether cycles in which nothing moves are skipped; results are the same.
    clock_gating: whether the clocks of idle blocks stop in a model compiled by Verilator,
        see docs/engines.md; results are the same.
    mlp: how the MLPs are computed, ``fixed`` (the same bits everywhere) or ``blas``.
    patience: cycles without a beat anywhere after which the run is aborted; and without a result,
        besides those that :func:`sim.run.patience.honest_waits` allows for.
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

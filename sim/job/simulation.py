"""Simulation options: the engine or model of the NICs, and the number of threads."""

from dataclasses import dataclass

from gen.base.option import option
from sim.engines import ENGINES
from sim.job.arguments import check_bounds

__all__ = ["FAST", "FIDELITIES", "PATIENCE", "Simulation"]

PATIENCE = 500_000
"""Cycles (2 ms) without a beat after which a run is aborted: far longer than any answer takes."""

FIDELITIES = ("rtl", "model")
"""Implementation of a NIC: its RTL, or a model."""

FAST = {"model": "fast"}
"""Users' names of fidelities that have another name in code and reports."""


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """Simulation of a workload. ``fidelity`` ``model`` (:mod:`sim.nic_cpp`) allows more nodes and
    larger caches than ``rtl``.

    With several ``threads``, background threads form mini-batches and check results.
    """

    engine: str = option(
        "verilator", "RTL simulator: verilator, cxxrtl or pysim. All give the same results, at "
        "different speeds.", among=ENGINES)
    fidelity: str = option(
        "rtl", "rtl: run the RTL of the NICs; fast: count and time with a model of them, which "
        "computes no values.", among=FIDELITIES, old=FAST)
    threads: int = option(2, "Nodes to simulate at once.", least=1)
    mlp: str = option(
        "fixed", "How the MLPs are computed. fixed: the same bits on every machine; blas: faster.")
    patience: int = option(
        PATIENCE, "End the run after this many cycles without a moving beat. The bound without a "
        "result is longer, by the longest wait of the configuration.", least=1)
    skip: bool = option(True, "Skip idle cycles; results stay the same.")
    clock_gating: bool = option(
        True, "Stop the clocks of idle blocks in the compiled model; results stay the same.")

    def __post_init__(self) -> None:
        check_bounds(self)

"""Loads a component for the engine with a given name."""

from functools import partial

from amaranth.lib import wiring

from sim.engines.cxxrtl import load_cxxrtl
from sim.engines.engine import Model
from sim.engines.pysim import PysimModel
from sim.engines.verilator import load_verilator

__all__ = ["ENGINES", "TRACED", "load"]

ENGINES = {"verilator": load_verilator, "cxxrtl": load_cxxrtl, "pysim": PysimModel.load}
"""Function that loads a component, by engine."""


TRACED = {"verilator": partial(load_verilator, traced=True),
          "pysim": partial(PysimModel.load, traced=True)}
"""Function that loads a component to be traced, by engine that can write waveforms."""


def load(component: wiring.Component, name: str, engine: str = "verilator",
         recipe: str | None = None, *, traced: bool = False, clock_gating: bool = True) -> Model:
    """Return ``component`` ready to be instantiated on ``engine``.

    Its ports may be streams, plain signals and an AXI4-Lite port ``csr``. With ports ``idle`` and
    ``time``, the engine skips cycles in which the component cannot change. Compiled models are
    cached (in ``EMBERNIC_CACHE``, by default in the user's cache folder). The Verilog is cached too
    if a ``recipe``, with the sources of ``rtl``, determines the component.

    traced: make a separate, slower build whose instances can write waveforms.
    clock_gating: do not evaluate idle blocks, in untraced models of Verilator (docs/fidelity.md);
        results are the same.

    ``ValueError`` for an unknown engine, or an engine without traces; ``BuildError`` if a tool
    fails.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}")
    if traced and engine not in TRACED:
        raise ValueError(f"engine must be one of {', '.join(TRACED)} for waves, not {engine!r}")
    loader = (TRACED if traced else ENGINES)[engine]
    if engine == "verilator":
        loader = partial(loader, clock_gating=clock_gating)
    return loader(component, name, recipe)

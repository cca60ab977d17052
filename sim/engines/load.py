"""Loader of components for the engine with a given name."""

from functools import partial

from amaranth.lib import wiring

from sim.engines.cxxrtl import load_cxxrtl
from sim.engines.engine import Model
from sim.engines.pysim import PysimModel
from sim.engines.verilator import load_verilator

__all__ = ["ENGINES", "TRACED", "load"]

ENGINES = {"verilator": load_verilator, "cxxrtl": load_cxxrtl, "pysim": PysimModel.load}
"""How each engine loads a component."""


TRACED = {"verilator": partial(load_verilator, traced=True),
          "pysim": partial(PysimModel.load, traced=True)}
"""How each engine that can write waveforms loads a component to be traced."""


def load(component: wiring.Component, name: str, engine: str = "verilator",
         recipe: str | None = None, *, traced: bool = False, clock_gating: bool = True) -> Model:
    """Return ``component`` ready to be instantiated on ``engine``.

    Its ports may be streams, plain signals and an AXI4-Lite port ``csr``; ``idle`` and ``time``
    let the engine skip cycles in which nothing moves. A compiled model is kept in a cache
    (``EMBERNIC_CACHE``, else the user's cache folder), and so is its Verilog if a ``recipe``, with
    the sources of ``rtl``, determines the component. Instances of a ``traced`` model can write
    waveforms; it needs a separate build and is slower. With ``clock_gating``, an untraced model of
    Verilator does not evaluate idle blocks (docs/fidelity.md); results do not depend on it.
    ``ValueError`` for an unknown engine, or one without traces; ``BuildError`` when a tool fails.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}")
    if traced and engine not in TRACED:
        raise ValueError(f"engine must be one of {', '.join(TRACED)} for waves, not {engine!r}")
    loader = (TRACED if traced else ENGINES)[engine]
    if engine == "verilator":
        loader = partial(loader, clock_gating=clock_gating)
    return loader(component, name, recipe)

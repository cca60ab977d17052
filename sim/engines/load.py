"""Make a component ready to run on the engine of a name."""

from amaranth.lib import wiring

from sim.engines.engine import Model
from sim.engines.pysim import PysimModel
from sim.engines.verilator import load_verilator

__all__ = ["ENGINES", "load"]

ENGINES = {"verilator": load_verilator, "pysim": PysimModel.load}
"""How each engine loads a component."""


def load(component: wiring.Component, name: str, engine: str = "verilator",
         recipe: str | None = None) -> Model:
    """Return ``component`` ready to be instantiated on ``engine``.

    Its ports may be streams, plain signals and an AXI4-Lite port ``csr``; ``idle`` and ``time``
    let the engine skip cycles in which nothing moves. A compiled model is kept in a cache
    (``EMBERNIC_CACHE``, else the user's cache folder), and so is its Verilog where a ``recipe``
    says what the component follows from, besides the sources of ``rtl``. ``ValueError`` for an
    unknown engine, ``BuildError`` when a tool fails.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}")
    return ENGINES[engine](component, name, recipe)

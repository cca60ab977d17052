"""Engines that run a design cycle by cycle: Verilator, CXXRTL, or Amaranth's simulator."""

from gen.base.tools import BuildError
from sim.engines.engine import Engine, Model, RegisterAccess, RegisterError
from sim.engines.load import ENGINES, load
from sim.engines.pysim import RandomMemories

__all__ = [
    "ENGINES", "BuildError", "Engine", "Model", "RandomMemories", "RegisterAccess",
    "RegisterError", "load",
]

"""Engines that run a design cycle by cycle: compiled by Verilator, or Amaranth's simulator."""

from sim.engines.engine import Engine, Model, RegisterAccess, RegisterError
from sim.engines.load import ENGINES, load
from sim.engines.toolchain import BuildError

__all__ = ["ENGINES", "BuildError", "Engine", "Model", "RegisterAccess", "RegisterError", "load"]

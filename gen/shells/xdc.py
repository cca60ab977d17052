"""Timing constraints of a shell wrapper's clock crossings."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gen.shells.held_crossing import HELD, TAKEN
from gen.verilog.convert import Verilog
from gen.verilog.rtlil import Module

__all__ = ["crossings_xdc"]

_SYNCHRONIZED, _RELEASED = "crossed0", ("released0", "released1")


class _Block(NamedTuple):
    """A module at a path of the design, with the module around it."""

    path: tuple[str, ...]
    module: Module
    around: Module

    def cells(self, names: Sequence[str]) -> str:
        """Return ``get_cells`` of registers of the block."""
        return _cells(self.path, self.module, names)

    def sources(self, prefix: str = "") -> str:
        """Return ``get_cells`` of the registers around the block that drive its ports."""
        inputs = [port.name for port in self.module.ports
                  if port.direction == "input" and port.name.startswith(prefix)
                  and self.around.flip_flops.get(port.name) == port.name]
        if not inputs:
            raise ValueError(f"{'/'.join(self.path)} must be driven by registers of the block "
                             f"around it")
        return _cells(self.path[:-1], self.around, inputs)


def crossings_xdc(verilog: Verilog, period_ns: float,
                  between: Sequence[tuple[str, str, float]] = ()) -> str:
    """Return XDC for all crossings of ``verilog``, to be read scoped to its top (``-ref``).

    - Single-bit synchronizers have the register ``crossed0``: paths to it are false paths.
    - Data that are stable while a toggle crosses go to registers ``taken_*``
      (:class:`gen.shells.held_crossing.HeldCrossing`). These paths may take ``period_ns``, the
      shorter of both clocks' periods, because the toggle takes at least that long.
    - Resets begin asynchronously in the registers that release them (``released0``,
      ``released1``): paths to their presets are false paths.
    - Counters in Gray code cross between the clocks of ``between``, pairs of clock ports of the top
      with the shorter of their periods. A path, and the skew of a counter, may take that period.
      The same bound applies to every other path between these clocks: data from memories of FIFOs.

    Raises ``ValueError`` for an unconstrained crossing.
    """
    lines = []
    for block in sorted(_blocks(verilog), key=lambda block: block.path):
        lines += _constraints(block, period_ns, between)
    for pair in between:
        for source, target in (pair[:2], pair[1::-1]):
            lines.append(
                f"set_max_delay -datapath_only "
                f"-from [get_clocks -of_objects [get_ports {source}]] "
                f"-to [get_clocks -of_objects [get_ports {target}]] {pair[2]:.3f}")
    return "\n".join([
        f"# Clock crossings of {verilog.name}. Read with: read_xdc -ref {verilog.name} FILE",
        *lines]) + "\n"


def _constraints(block: _Block, period_ns: float, between) -> Iterator[str]:
    registers = block.module.flip_flops
    path = "/".join(block.path)
    if _SYNCHRONIZED in registers:
        target = block.cells([_SYNCHRONIZED])
        if block.module.widths[_SYNCHRONIZED] == 1:
            yield f"set_false_path -to {target}"
        elif between:
            shortest = min(period for _, _, period in between)
            ends = f"-from {block.sources()} -to {target} {shortest:.3f}"
            yield f"set_max_delay -datapath_only {ends}"
            yield f"set_bus_skew {ends}"
        else:
            raise ValueError(f"{path} must cross between clocks whose paths are bounded")
    if _RELEASED[0] in registers:
        pins = " ".join(f"{path}/{name}_reg/PRE" for name in _RELEASED)
        yield f"set_false_path -to [get_pins {{{pins}}}]"
    if taken := [name for name in registers if name.startswith(TAKEN)]:
        yield (f"set_max_delay -datapath_only -from {block.sources(HELD)} "
               f"-to {block.cells(taken)} {period_ns:.3f}")


def _cells(path: tuple[str, ...], module: Module, names: Sequence[str]) -> str:
    for name in names:
        if module.flip_flops.get(name) != name:
            raise ValueError(f"{'/'.join(path)} must have a register {name}")
    found = " ".join("/".join((*path, f"{name}_reg{'[*]' * (module.widths[name] > 1)}"))
                     for name in names)
    return f"[get_cells {{{found}}}]"


def _blocks(verilog: Verilog) -> Iterator[_Block]:
    around = {(): verilog.modules[verilog.name]}
    for path, name in verilog.instances():
        around[path] = module = verilog.modules[name]
        yield _Block(path, module, around[path[:-1]])

"""Constraints of a shell from the timing report of its NIC.

The constraints bound the fan-out of critical registers and select dies. There are no multi-cycle
paths: any register of the NIC may change in one cycle and be read in the next.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gen.netlist.fit import SLR
from gen.verilog.convert import Verilog
from gen.verilog.rtlil import Module

__all__ = ["constraints_readme", "dies_xdc", "fan_out_xdc", "named_as_in"]

_NIC = "nic"
"""Name of the NIC's instance in a shell's top."""
_DIE = "SLR1"
_SHARE = 0.8
"""Maximum share of a die's resources for a design on one die, to leave room for placement."""


def named_as_in(verilog: Verilog, bare: Verilog, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``report`` with the names of the NIC's registers and blocks in the shell.

    Amaranth numbers equal names in a module, and the numbers depend on the design around it.

    Parameters
    ----------
    verilog: the shell's top with the NIC.
    bare: the NIC alone.
    report: timing report of ``bare``.
    """
    nic = next(cell.module for cell in verilog.modules[verilog.name].cells if cell.name == _NIC)
    names = {"": "", **dict(_pairs(bare, bare.name, verilog, nic, ("", "")))}
    costly = report["costly_nets"]
    nets = [{**net, "register": names[net["register"]]} for net in costly["nets"]]
    return {**report, "costly_nets": {**costly, "nets": nets},
            "area": [{**block, "instance": names[block["instance"]]} for block in report["area"]]}


def _pairs(one: Verilog, inner: str, other: Verilog, outer: str,
           at: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the names of each register and instance in two conversions of the same block."""
    modules = one.modules[inner], other.modules[outer]
    for pair in zip(*map(_flip_flops, modules), strict=True):
        yield at[0] + pair[0], at[1] + pair[1]
    for cells in zip(*(module.cells for module in modules), strict=True):
        names = at[0] + cells[0].name, at[1] + cells[1].name
        yield names
        if cells[0].module in one.modules:
            yield from _pairs(one, cells[0].module, other, cells[1].module,
                              (f"{names[0]}.", f"{names[1]}."))


def _flip_flops(module: Module) -> list[str]:
    """Return the registers of ``module`` in the order of their statements."""
    return [name for name, flip_flop in module.flip_flops.items() if name == flip_flop]


def fan_out_xdc(top: str, report: Mapping[str, Any]) -> str:
    """Return XDC that bounds the fan-out of registers. Read it before synthesis, scoped to ``top``.

    It contains the registers that drive more loads than the report's bound on a path that misses
    250 MHz in the pessimistic case. Copies of other registers would only add control sets. Other
    drivers, mostly logic, have no name before synthesis: comments list their nets.
    """
    bound, nets = report["costly_nets"]["bound"], report["costly_nets"]["nets"]
    registers: dict[str, int] = {}
    for net in nets:
        if net["register"]:
            registers[net["register"]] = max(net["loads"], registers.get(net["register"], 0))
    lines = [
        f"# Registers of {top} with more than {bound} loads on paths that miss 250 MHz with",
        "# pessimistic nets, estimated without placement. Synthesis replicates them (UG901).",
        f"# Read before synthesis with: read_xdc -ref {top} FILE"]
    for register, loads in registers.items():
        lines += [f"# {loads:,} loads",
                  f"set_property MAX_FANOUT {bound} [get_cells {{{_path(register)}_reg*}}]"]
    lines += [f"# driver without a name before synthesis: {net['net']}, {net['loads']:,} loads"
              for net in nets if not net["register"]]
    return "\n".join(lines) + "\n"


def dies_xdc(top: str, report: Mapping[str, Any]) -> str:
    """Return XDC that keeps the NIC in ``top`` on one die of a U280 if it fits, or else each block.

    Read it scoped to ``top``. A wire between dies takes a large part of a period, and the NIC has
    registers for it only at its edges (:class:`gen.shells.RegisterStages`). If the NIC does not
    fit, the placer chooses a die for each block. The property is a preference, not a pblock: the
    placer may ignore it to find a placement (UG912).
    """
    area = report["area"]
    lines = [f"# Dies for {top}. Read with: read_xdc -ref {top} FILE"]
    if _fits(area):
        lines += [f"# The NIC uses less than {100 * _SHARE:.0f}% of a die.",
                  f"set_property USER_SLR_ASSIGNMENT {_DIE} [get_cells {{{_NIC}}}]"]
        return "\n".join(lines) + "\n"
    lines.append(f"# The NIC uses more than {100 * _SHARE:.0f}% of a die: no block is split.")
    for block in area:
        name = block["instance"]
        if name and _fits([block]):
            lines.append(f"set_property USER_SLR_ASSIGNMENT {_NIC}_{name} "
                         f"[get_cells {{{_path(name)}}}]")
        elif name:
            lines.append(f"# {name} alone uses more.")
    return "\n".join(lines) + "\n"


def constraints_readme(files: Iterable[str]) -> str:
    """Return the README's paragraph about constraint ``files``, in Markdown."""
    named = " and ".join(f"`{name}`" for name in files)
    return f"""
## Constraints from an estimate

{named} contain constraints from the estimated timing of the bare NIC, without placement: registers
to replicate, and in `.slr.xdc` the die. The scripts in this folder read the files. Change them if
the placed design needs other constraints.
"""


def _fits(parts: Sequence[Mapping[str, Any]]) -> bool:
    return all(sum(part[kind] for part in parts) <= _SHARE * there for kind, there in SLR.items())


def _path(name: str) -> str:
    """Return the path in the shell's top of ``name`` in the NIC."""
    return "/".join((_NIC, *name.split(".")))

"""Read what Amaranth's RTLIL says about modules: their ports and what they instantiate."""

import re
from dataclasses import dataclass, field

__all__ = ["Cell", "Module", "Port", "parse_modules", "rename_modules"]

_MODULE = re.compile(r"^module \\(\S+)$")
_PORT = re.compile(r"^  wire width (\d+) (input|output) \d+  ?(?:signed )?\\(\S+)$")
_CELL = re.compile(r"^  cell \\(\S+) \\?(\S+)$")
_PARAMETER = re.compile(r"^    parameter (?:signed )?\\(\S+) (.+)$")
_MODULE_USE = re.compile(r"^((?:module|  cell) \\)(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Port:
    """A port of a module: flat ``name``, ``width`` in bits, ``direction`` ``input``/``output``."""

    name: str
    width: int
    direction: str


@dataclass
class Cell:
    """An instance ``name`` of module ``module`` with its parameters."""

    name: str
    module: str
    parameters: dict[str, int | str] = field(default_factory=dict)


@dataclass
class Module:
    """A module: ports in order and the instances in it (primitive operators left out)."""

    name: str
    ports: list[Port] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)


def parse_modules(text: str) -> list[Module]:
    """Return the modules of RTLIL ``text`` in order."""
    modules: list[Module] = []
    cell = None
    for line in text.splitlines():
        if match := _MODULE.match(line):
            modules.append(Module(match[1]))
            cell = None
        elif match := _PORT.match(line):
            modules[-1].ports.append(Port(match[3], int(match[1]), match[2]))
        elif match := _CELL.match(line):
            cell = Cell(match[2], match[1])
            modules[-1].cells.append(cell)
        elif line == "  end" or line.startswith("  cell $"):
            cell = None
        elif cell is not None and (match := _PARAMETER.match(line)):
            cell.parameters[match[1]] = _parameter(match[2])
    return modules


def _parameter(text: str) -> int | str:
    if text.startswith('"'):
        return text[1:-1]
    if "'" in text:
        return int(text.split("'")[1], 2)
    return int(text)


def rename_modules(text: str) -> str:
    """Turn the dots in module names into ``__``, so that no name has to be escaped in Verilog."""
    return _MODULE_USE.sub(lambda match: match[1] + match[2].replace(".", "__"), text)

"""Reader of Amaranth's RTLIL: ports, registers and instances of each module."""

import re
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Cell", "Module", "Port", "flat_name", "in_repository", "parse_modules",
           "rename_modules", "without_sources"]

_MODULE = re.compile(r"^module \\(\S+)$")
_PORT = re.compile(r"^  wire width (\d+) (input|output) \d+  ?(?:signed )?\\(\S+)$")
_CELL = re.compile(r"^  cell \\(\S+) \\?(\S+)$")
_PARAMETER = re.compile(r"^    parameter (?:signed )?\\(\S+) (.+)$")
_WIRE = re.compile(r"^  wire width (\d+) (?:(?:input|output) \d+  ?)?(?:signed )?\\(\S+)$")
_OUTPUT = re.compile(r"^    connect \\Q (?:\\)?(\S+)$")
_ALIAS = re.compile(r"^connect \\(\S+) \\(\S+)(?: \[[\d:]+\])?$")
_SOURCE = re.compile(r'^ *attribute \\src "(.*)"\n', re.MULTILINE)
_INIT = "  attribute \\init "
_MODULE_USE = re.compile(r"^((?:module|  cell) \\)(\S+)", re.MULTILINE)
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Port:
    """A port of a module: flat ``name``, ``width`` in bits, ``direction`` ``input``/``output``."""

    name: str
    width: int
    direction: str


@dataclass
class Cell:
    """An instance ``name`` of module ``module``, with its parameters."""

    name: str
    module: str
    parameters: dict[str, int | str] = field(default_factory=dict)


@dataclass
class Module:
    """A module: ports in order, and its instances without primitive operators.

    Members
    -------
    registers: place of each register's declaration, such as ``rtl/block.py:12``; "" if unknown or
        outside this repository. It contains all names of the same bits.
    flip_flops: for each name of ``registers``, the name of the ``reg`` in the Verilog. Amaranth
        declares all names; a single name has the flip-flops.
    widths: bits of each of ``registers``.
    source: place of the module.
    """

    name: str
    ports: list[Port] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)
    flip_flops: dict[str, str] = field(default_factory=dict)
    widths: dict[str, int] = field(default_factory=dict)
    source: str = ""


def parse_modules(text: str) -> list[Module]:
    """Return the modules of RTLIL ``text`` in order."""
    modules: list[Module] = []
    cell = None
    source, stored = "", False
    for line in text.splitlines():
        if line.lstrip().startswith("attribute "):
            stored |= line.startswith(_INIT)
            if match := _SOURCE.match(line + "\n"):
                source = in_repository(match[1])
            continue
        # Only registers have an initial value in Amaranth's RTLIL.
        if stored and (match := _WIRE.match(line)):
            modules[-1].registers[match[2]] = source
            modules[-1].widths[match[2]] = int(match[1])
        if match := _MODULE.match(line):
            modules.append(Module(match[1], source=source))
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
        elif match := _OUTPUT.match(line):
            modules[-1].flip_flops[match[1]] = match[1]
        elif (match := _ALIAS.match(line)) and match[2] in modules[-1].flip_flops:
            modules[-1].flip_flops[match[1]] = match[2]
        source, stored = "", False
    return modules


def _parameter(text: str) -> int | str:
    if text.startswith('"'):
        return text[1:-1]
    if "'" in text:
        return int(text.split("'")[1], 2)
    return int(text)


def rename_modules(text: str) -> str:
    """Replace the names of modules with those of :func:`flat_name`."""
    return _MODULE_USE.sub(lambda match: match[1] + flat_name(match[2]), text)


def flat_name(name: str) -> str:
    """Replace the dots in a module's name with ``__`` and ``$`` with ``_``, to avoid escaped names
    in Verilog. Amaranth calls an unnamed submodule ``U$0``."""
    return name.replace(".", "__").replace("$", "_")


def without_sources(text: str) -> str:
    """Return RTLIL ``text`` without the attributes of source locations."""
    return _SOURCE.sub("", text)


def in_repository(source: str) -> str:
    """Return ``source``, a file and a line, relative to the repository; "" if outside, or in an
    installed package, which may be inside the repository."""
    name, _, line = source.rpartition(":")
    path = Path(name)
    if "site-packages" in path.parts or not path.is_relative_to(_ROOT):
        return ""
    return f"{path.relative_to(_ROOT).as_posix()}:{line}"

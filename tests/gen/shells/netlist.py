"""A design in Yosys, with Vivado's names of registers, and its clock crossings."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from gen.base.yosys import run_yosys

__all__ = ["Crossing", "Netlist"]

_SCRIPT = """read_verilog -sv -nosynthesis read.v
hierarchy -check -top {top}
proc
memory_collect
rename -wire
flatten
write_json flat.json
"""
"""``rename`` names flip-flops after their ``reg``, before flattening merges names."""
_REGISTERS = ("$dff", "$adff")
_INPUTS = {"D": "D", "ARST": "PRE", "WR_DATA": "D", "WR_ADDR": "D", "WR_EN": "D"}
"""Ports of cells with state whose paths are timed, with Vivado's pin."""


class Crossing(NamedTuple):
    """A path between two clocks: its registers, and the pin at which it ends."""

    source: str
    target: str
    pin: str


class Netlist:
    """The flat netlist of module ``top`` of Verilog ``text``; ``folder`` is for files of Yosys.

    Registers and memories are called ``<instance>/<name>_reg``, as in Vivado, without the bit.

    Members
    -------
    ports: names of the ports of the top.
    registers: bits of each register by its name; 0 for a memory.
    clocks: clock port of each register.
    instances: paths of all instances.
    """

    def __init__(self, text: str, top: str, folder: Path):
        (folder / "read.v").write_text(text)
        run_yosys(_SCRIPT.format(top=top), cwd=folder)
        module = json.loads((folder / "flat.json").read_text())["modules"][top]
        self.ports = set(module["ports"])
        cells = module["cells"]
        self.instances = {_path(name) for name, cell in cells.items()
                          if cell["type"] == "$scopeinfo"}
        cells = {name: cell for name, cell in cells.items() if cell["type"] != "$scopeinfo"}
        of_port = {bit: name for name, port in module["ports"].items() for bit in port["bits"]}
        self._logic = [cell for cell in cells.values() if cell["type"] not in _REGISTERS]
        self._stored: dict[str, dict] = {}
        self.registers: dict[str, int] = {}
        self.clocks: dict[str, str] = {}
        for name, cell in cells.items():
            # Yosys adds registers without loads for the writes of a memory.
            if not name.startswith("$") and cell["type"] in (*_REGISTERS, "$mem_v2"):
                register = _path(name.removesuffix(cell["type"])) + "_reg"
                wires = cell["connections"]
                self._stored[register] = cell
                self.registers[register] = len(wires.get("Q", ()))
                self.clocks[register] = of_port[wires["CLK" if "CLK" in wires else "WR_CLK"][0]]

    def crossings(self) -> Iterator[Crossing]:
        """Yield each path between registers of different clocks."""
        for target, cell in self._stored.items():
            for port, pin in _INPUTS.items():
                bits = cell["connections"].get(port, ())
                foreign = set().union(*(self._reached[bit] for bit in bits)) - {
                    self.clocks[target]}
                for source in self._sources(bits, foreign):
                    yield Crossing(source, target, pin)

    @cached_property
    def _reached(self) -> defaultdict[int, set[str]]:
        """Clocks of the registers from which logic leads to each net."""
        users = defaultdict(list)
        for cell in self._logic:
            for bit in _bits(cell, "input"):
                users[bit].append(cell)
        reached = defaultdict(set)
        for register, cell in self._stored.items():
            clock, stack = self.clocks[register], [*_bits(cell, "output")]
            while stack:
                bit = stack.pop()
                if clock not in reached[bit]:
                    reached[bit].add(clock)
                    for user in users[bit]:
                        stack += _bits(user, "output")
        return reached

    @cached_property
    def _drivers(self) -> dict[int, tuple[str, dict]]:
        named = {id(cell): register for register, cell in self._stored.items()}
        return {bit: (named.get(id(cell), ""), cell)
                for cell in (*self._logic, *self._stored.values())
                for bit in _bits(cell, "output")}

    def _sources(self, bits: Iterable[int], clocks: set[str]) -> set[str]:
        """Return the registers of ``clocks`` from which logic leads to ``bits``."""
        found, seen, stack = set(), set(), list(bits)
        while stack:
            bit = stack.pop()
            if bit in seen or not clocks & self._reached[bit]:
                continue
            seen.add(bit)
            register, cell = self._drivers[bit]
            if register and self.clocks[register] in clocks:
                found.add(register)
            if cell["type"] not in _REGISTERS:
                stack += _bits(cell, "input")
        return found


def _path(name: str) -> str:
    return name.replace("\\", "").replace(".", "/")


def _bits(cell: dict, direction: str) -> Iterator[int]:
    """Yield the nets at the ports of ``cell`` through which logic passes. A memory passes the word
    at its read address; written data stay in it."""
    for port, bits in cell["connections"].items():
        if cell["port_directions"][port] == direction and not port.startswith("WR_"):
            yield from bits

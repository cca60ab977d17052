"""Longest paths through a mapped netlist, in LUTs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Timing", "analyse", "ram_timing"]

# Arrival of a signal: LUTs behind each source, an input port by name or any register ("").
Arrival = dict[str, int]
REGISTER = ""
_FREE = ("INV", "BUF", "BUFG", "MUXF7", "MUXF8", "MUXF9")
_CLOCKS = ("C", "CLK", "clk")


@dataclass
class Timing:
    """Depths of a module: what a user of it has to know to go on counting.

    Members
    -------
    inner: deepest path between two registers inside.
    launch: depth from a register to each output port that has one behind it.
    capture: depth from each input port to a register.
    through: depth from input port to output port, without a register.
    """

    inner: int = 0
    launch: dict[str, int] = field(default_factory=dict)
    capture: dict[str, int] = field(default_factory=dict)
    through: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """Deepest path of any kind."""
        return max(self.inner, *self.launch.values(), *self.capture.values(),
                   *self.through.values(), 0)


def ram_timing(latency: int, levels: int) -> Timing:
    """Return the timing of an owned memory: a register, or ``levels`` LUTs to read LUTRAM."""
    ports = ("write_en", "write_addr", "write_data", "read_en", "read_addr")
    if latency:
        return Timing(launch={"read_data": 0}, capture=dict.fromkeys(ports, 0))
    return Timing(launch={"read_data": levels}, capture=dict.fromkeys(ports[:3], 0),
                  through={("read_addr", "read_data"): levels})


def analyse(module: Mapping[str, Any], boxes: Mapping[str, Timing]) -> Timing:
    """Return the timing of ``module``, as Yosys writes it to JSON after mapping.

    ``boxes`` gives the timing of the cells that are modules of their own, by cell name. LUTs count
    1, a carry chain 1, multiplexers between LUTs nothing; registers, RAMs and DSPs end a path.
    """
    return _Netlist(module, boxes).timing()


class _Netlist:
    def __init__(self, module: Mapping[str, Any], boxes: Mapping[str, Timing]):
        self.ports = module["ports"]
        self.cells = module["cells"]
        self.boxes = boxes
        self.arrivals: dict[int, Arrival] = {}
        self.drivers: dict[int, tuple[str, str]] = {}
        for name, cell in self.cells.items():
            for port, direction in cell.get("port_directions", {}).items():
                if direction == "output":
                    for bit in cell["connections"][port]:
                        self.drivers[bit] = (name, port)
        for port, entry in self.ports.items():
            if entry["direction"] == "input":
                for bit in entry["bits"]:
                    self.arrivals[bit] = {} if port in _CLOCKS else {port: 0}

    def timing(self) -> Timing:
        result = Timing()
        for name, cell in self.cells.items():
            for port, cost in self._endpoints(name, cell):
                for bit in cell["connections"].get(port, ()):
                    for source, depth in self._arrival(bit).items():
                        if source == REGISTER:
                            result.inner = max(result.inner, depth + cost)
                        else:
                            _raise(result.capture, source, depth + cost)
        for port, entry in self.ports.items():
            if entry["direction"] != "output":
                continue
            for bit in entry["bits"]:
                for source, depth in self._arrival(bit).items():
                    if source == REGISTER:
                        _raise(result.launch, port, depth)
                    else:
                        _raise(result.through, (source, port), depth)
        return result

    def _endpoints(self, name: str, cell: Mapping[str, Any]) -> list[tuple[str, int]]:
        """Return the input ports of a cell at which paths end, and the depth behind them."""
        if name in self.boxes:
            return list(self.boxes[name].capture.items())
        if _is_combinational(cell["type"]):
            return []
        return [(port, 0) for port, direction in cell.get("port_directions", {}).items()
                if direction == "input" and port not in _CLOCKS]

    def _fan_in(self, bit: int) -> tuple[Arrival, list[tuple[int, int]]]:
        """Return what arrives at ``bit`` by itself, and the bits it depends on with their cost."""
        if bit not in self.drivers:
            return {}, []
        name, port = self.drivers[bit]
        cell = self.cells[name]
        connections = cell["connections"]
        if name in self.boxes:
            box = self.boxes[name]
            own = {REGISTER: box.launch[port]} if port in box.launch else {}
            return own, [(b, depth) for (source, target), depth in box.through.items()
                         if target == port for b in connections.get(source, ())]
        kind = cell["type"]
        if not _is_combinational(kind):
            return {REGISTER: 0}, []
        inputs = [(source, b) for source, direction in cell["port_directions"].items()
                  if direction == "input" for b in connections[source]]
        if kind.startswith("CARRY"):
            return {}, [(b, 0 if source == "CI" and self._from_carry(b) else 1)
                        for source, b in inputs]
        cost = 0 if kind in _FREE else 1
        return {}, [(b, cost) for _, b in inputs]

    def _from_carry(self, bit: int) -> bool:
        driver = self.drivers.get(bit)
        return driver is not None and self.cells[driver[0]]["type"].startswith("CARRY")

    def _arrival(self, bit: int) -> Arrival:
        waiting, under_way = [bit], set()
        while waiting:
            current = waiting[-1]
            if current in self.arrivals:
                waiting.pop()
                continue
            own, inputs = self._fan_in(current)
            # A bit that is under way already would close a loop: boxes are described port by
            # port, so that two bits of one port may seem to. It adds nothing.
            missing = [b for b, _ in inputs if b not in self.arrivals and b not in under_way]
            if missing:
                under_way.add(current)
                waiting += missing
                continue
            found = dict(own)
            for b, cost in inputs:
                for source, depth in self.arrivals.get(b, {}).items():
                    _raise(found, source, depth + cost)
            self.arrivals[current] = found
            waiting.pop()
        return self.arrivals[bit]


def _is_combinational(kind: str) -> bool:
    return (kind.startswith(("LUT", "CARRY")) or kind in _FREE)


def _raise(table: dict, key: object, depth: int) -> None:
    if table.get(key, -1) < depth:
        table[key] = depth

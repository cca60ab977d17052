"""Analysis of a mapped netlist: longest paths in LUTs, and the registers at their ends."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["Path", "Reach", "Timing", "analyse", "ram_timing"]

REGISTER = ""
"""Start of a path that does not begin at a port."""
_FREE = ("INV", "BUF", "BUFG", "MUXF7", "MUXF8", "MUXF9")
_CLOCKS = ("C", "CLK", "clk")


class Path(NamedTuple):
    """Path with ``depth`` LUTs from ``start`` to ``end``, names of registers, memories or ports."""

    depth: int = 0
    start: str = ""
    end: str = ""


class Reach(NamedTuple):
    """LUTs between a port and ``register``, the most distant register."""

    depth: int
    register: str = ""


# Arrival of a signal: LUTs after each source (an input port by name, or any register).
Arrival = dict[str, Reach]


@dataclass
class Timing:
    """Depths of a module, for the continuation of its paths outside.

    Members
    -------
    inner: deepest path between two registers inside.
    launch: path from a register to each output port that a register drives.
    capture: path from each input port to a register.
    through: depth from input port to output port, without a register.
    """

    inner: Path = field(default_factory=Path)
    launch: dict[str, Reach] = field(default_factory=dict)
    capture: dict[str, Reach] = field(default_factory=dict)
    through: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def deepest(self) -> Path:
        """Deepest path of any kind; in a tie, the path between registers."""
        return max((
            self.inner,
            *(Path(reach.depth, reach.register, port) for port, reach in self.launch.items()),
            *(Path(reach.depth, port, reach.register) for port, reach in self.capture.items()),
            *(Path(depth, *ports) for ports, depth in self.through.items())),
            key=lambda path: path.depth)


def ram_timing(latency: int, levels: int) -> Timing:
    """Return the timing of an owned memory: a register, or ``levels`` LUTs for a LUTRAM read."""
    ports = ("write_en", "write_addr", "write_data", "read_en", "read_addr")
    if latency:
        return Timing(launch={"read_data": Reach(0)}, capture=dict.fromkeys(ports, Reach(0)))
    return Timing(launch={"read_data": Reach(levels)},
                  capture=dict.fromkeys(ports[:3], Reach(0)),
                  through={("read_addr", "read_data"): levels})


def analyse(module: Mapping[str, Any], boxes: Mapping[str, Timing],
            registers: Container[str] = ()) -> Timing:
    """Return the timing of ``module``, as in Yosys's JSON after mapping.

    A LUT and a carry chain count 1, multiplexers between LUTs 0. Registers, RAMs and DSPs end a
    path. A register has the name of the net that it drives; if there are several names, the name in
    ``registers``.

    boxes: timing of black-box cells by cell name.
    """
    return _Netlist(module, boxes, registers).timing()


class _Netlist:
    def __init__(self, module: Mapping[str, Any], boxes: Mapping[str, Timing],
                 registers: Container[str]):
        self.ports = module["ports"]
        self.cells = module["cells"]
        self.boxes = boxes
        self.arrivals: dict[int, Arrival] = {}
        self.drivers: dict[int, tuple[str, str]] = {}
        self.names: dict[int, str] = {}
        nets = module.get("netnames", {})
        # If a bit has several names, the last name wins.
        for name in sorted(nets, key=lambda name: (name in registers, "$" not in name, name)):
            self.names.update(dict.fromkeys(nets[name]["bits"], name))
        for name, cell in self.cells.items():
            for port, direction in cell.get("port_directions", {}).items():
                if direction == "output":
                    for bit in cell["connections"][port]:
                        self.drivers[bit] = (name, port)
        for port, entry in self.ports.items():
            if entry["direction"] == "input":
                for bit in entry["bits"]:
                    self.arrivals[bit] = {} if port in _CLOCKS else {port: Reach(0)}

    def timing(self) -> Timing:
        result = Timing()
        for name, cell in self.cells.items():
            for port, behind in self._endpoints(name, cell):
                for bit in cell["connections"].get(port, ()):
                    for source, before in self._arrival(bit).items():
                        depth = before.depth + behind.depth
                        if source != REGISTER:
                            _raise(result.capture, source, Reach(depth, behind.register))
                        elif depth > result.inner.depth:
                            result.inner = Path(depth, before.register, behind.register)
        for port, entry in self.ports.items():
            if entry["direction"] != "output":
                continue
            for bit in entry["bits"]:
                for source, before in self._arrival(bit).items():
                    if source == REGISTER:
                        _raise(result.launch, port, before)
                    elif result.through.get((source, port), -1) < before.depth:
                        result.through[source, port] = before.depth
        return result

    def _endpoints(self, name: str, cell: Mapping[str, Any]) -> list[tuple[str, Reach]]:
        """Return the input ports of a cell at the end of paths, and their depth inside the cell."""
        if name in self.boxes:
            return [(port, _inside(name, reach))
                    for port, reach in self.boxes[name].capture.items()]
        if _is_combinational(cell["type"]):
            return []
        directions = cell.get("port_directions", {})
        end = Reach(0, self._register(name, cell))
        return [(port, end) for port, direction in directions.items()
                if direction == "input" and port not in _CLOCKS]

    def _register(self, name: str, cell: Mapping[str, Any]) -> str:
        """Return the name of a register or DSP: the name of the first signal that it drives, if
        any."""
        driven = (bit for port, direction in cell.get("port_directions", {}).items()
                  if direction == "output" for bit in cell["connections"][port])
        return next((self.names[bit] for bit in driven if bit in self.names), name)

    def _fan_in(self, bit: int) -> tuple[Arrival, list[tuple[int, int]]]:
        """Return the sources at ``bit`` itself, and the bits that it depends on, with their cost.
        """
        if bit not in self.drivers:
            return {}, []
        name, port = self.drivers[bit]
        cell = self.cells[name]
        connections = cell["connections"]
        if name in self.boxes:
            box = self.boxes[name]
            own = {REGISTER: _inside(name, box.launch[port])} if port in box.launch else {}
            return own, [(b, depth) for (source, target), depth in box.through.items()
                         if target == port for b in connections.get(source, ())]
        kind = cell["type"]
        if not _is_combinational(kind):
            return {REGISTER: Reach(0, self.names.get(bit, name))}, []
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
            # A bit in progress would close a loop. Boxes are described port by port, so two bits
            # of a port may seem to form a loop, which does not change the depth.
            missing = [b for b, _ in inputs if b not in self.arrivals and b not in under_way]
            if missing:
                under_way.add(current)
                waiting += missing
                continue
            found = dict(own)
            for b, cost in inputs:
                for source, before in self.arrivals.get(b, {}).items():
                    _raise(found, source, Reach(before.depth + cost, before.register))
            self.arrivals[current] = found
            waiting.pop()
        return self.arrivals[bit]


def _inside(instance: str, reach: Reach) -> Reach:
    return Reach(reach.depth, f"{instance}.{reach.register}" if reach.register else instance)


def _is_combinational(kind: str) -> bool:
    return (kind.startswith(("LUT", "CARRY")) or kind in _FREE)


def _raise(table: dict[str, Reach], key: str, reach: Reach) -> None:
    if key not in table or table[key].depth < reach.depth:
        table[key] = reach

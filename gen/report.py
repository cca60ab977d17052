"""Resource report: LUT, FF, RAM, DSP and logic depth of a design, block by block, by Yosys.

A block is an instance in the top, or a shared unit. Each distinct one is synthesised once, out of
context and without the shared units in it, so that Yosys needs little memory; its netlist is cached
by its source (:mod:`gen.cache`). Memories are not mapped cell by cell (a behavioural array of
megabits would take hours) but counted from their sizes and styles, see :mod:`gen.ram_cost`.
"""

import gzip
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gen.cache import cached, digest
from gen.depth import Path as DepthPath
from gen.depth import Timing, analyse, ram_timing
from gen.fit import SLR
from gen.platform import RAM_MODULES
from gen.ram_cost import RamCost, ram_cost
from gen.rtlil import Port
from gen.verilog import Verilog
from gen.yosys import run_yosys, yosys_id

__all__ = ["SLR", "report_resources"]

SCHEMA = "embernic/report/2"

_MODULE = re.compile(r"^module (\S+?)\(.*?^endmodule\n", re.MULTILINE | re.DOTALL)
_LATENCY = {module: latency for latency, module in RAM_MODULES.items()}
_RAM_PORTS = [
    Port("clk", 1, "input"), Port("write_en", 1, "input"),
    Port("write_addr", "ADDR_BITS", "input"), Port("write_data", "WIDTH", "input"),
    Port("read_en", 1, "input"), Port("read_addr", "ADDR_BITS", "input"),
    Port("read_data", "WIDTH", "output")]  # type: ignore[arg-type]


def report_resources(verilog: Verilog, progress: Callable[[str], None] = lambda _line: None, *,
                     whole: bool = False) -> dict[str, Any]:
    """Return the resources of each block of ``verilog`` and of the whole design.

    ``blocks`` lists each distinct block: its name (module), its number of instances, and for one of
    them ``lut``, ``ff``, ``bram36``, ``uram``, ``dsp`` and ``depth``, the longest path in LUTs
    between registers, RAMs, DSPs and its ports. ``total`` sums over the instances; its ``depth``
    follows paths across blocks.

    ``path`` has the ends of that longest path, ``from`` and ``to``: ``signal``, the register or
    port, prefixed with its instances; ``module``, which contains it; ``source``, the file and line
    of its declaration or else of its module, "" if ``verilog`` does not know.

    ``whole`` treats the top as one block, which is faster for a small design.
    """
    units = _units(verilog, whole)
    texts = {match[1]: match[0] for match in _MODULE.finditer(verilog.text)}
    sources = {unit: _source(unit, verilog, units, texts) for unit in units}
    distinct: dict[str, str] = {}
    for unit, source in sources.items():
        distinct.setdefault(_fingerprint(source, unit), unit)
    done: list[str] = []

    def one(unit: str) -> dict[str, Any]:
        netlist = _synthesise(unit, sources[unit])
        done.append(unit)
        progress(f"synthesised {unit} ({len(done)} of {len(distinct)})")
        return netlist

    # Each run has its own memory, up to a few GiB, so at most two run at once.
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        netlists = dict(zip(distinct, pool.map(one, distinct.values())))
    counts = verilog.counts()
    timings: dict[str, Timing] = {}
    blocks = []
    for unit in units:  # a unit comes after the units it contains
        netlist = netlists[_fingerprint(sources[unit], unit)]
        timings[unit] = _timing(netlist, timings, _registers(verilog, unit, units))
        blocks.append({"name": unit, "instances": counts[unit], **_resources(netlist),
                       **_deepest(verilog, unit, timings[unit].deepest)})
    total: dict[str, Any] = {
        key: sum(block["instances"] * block[key] for block in blocks)
        for key in ("lut", "ff", "bram36", "uram", "dsp")}
    paths = [(verilog.name, timings[verilog.name].deepest),
             *((unit, timing.inner) for unit, timing in timings.items())]
    total |= _deepest(verilog, *max(paths, key=lambda path: path[1].depth))
    return {"schema": SCHEMA, "name": verilog.name, "available": SLR, "blocks": blocks,
            "total": total}


def _units(verilog: Verilog, whole: bool) -> list[str]:
    """Return the modules that are synthesised separately, inner ones first."""
    # A submodule is named after its enclosing module, a shared unit is not.
    shared = {cell.module for module in verilog.modules.values() for cell in module.cells
              if cell.module in verilog.modules and not cell.module.startswith(f"{module.name}__")}
    # A module that only wraps a memory or a shared unit counts as part of its user.
    wrapped = shared | _LATENCY.keys()
    wrappers = {name for name, module in verilog.modules.items()
                if len(module.cells) == 1 and module.cells[0].module in wrapped}
    blocks = {cell.module for cell in verilog.modules[verilog.name].cells}
    own = shared | {verilog.name}
    if not whole:
        own |= (blocks & verilog.modules.keys()) - wrappers
    ordered: list[str] = []

    def visit(name: str) -> None:
        for cell in verilog.modules[name].cells:
            if cell.module in verilog.modules:
                visit(cell.module)
        if name in own and name not in ordered:
            ordered.append(name)

    visit(verilog.name)
    return ordered


def _source(unit: str, verilog: Verilog, units: list[str], texts: dict[str, str]) -> str:
    """Return the Verilog of ``unit`` with other units and the memories as black boxes."""
    parts: list[str] = []
    seen: set[str] = set()

    def visit(name: str) -> None:
        if name in seen:
            return
        seen.add(name)
        if name in _LATENCY:
            parts.append(_box(name, _RAM_PORTS if _LATENCY[name] else
                              [port for port in _RAM_PORTS if port.name != "read_en"],
                              "#(parameter WIDTH = 1, DEPTH = 2, ADDR_BITS = 1, STYLE = \"\") "))
        elif name != unit and name in units:
            parts.append(_box(name, list(verilog.modules[name].ports)))
        else:
            parts.append(texts[name])
            for cell in verilog.modules[name].cells:
                visit(cell.module)

    visit(unit)
    return "\n".join(parts)


def _box(name: str, ports: list[Port], parameters: str = "") -> str:
    declared = ", ".join(f"{port.direction} [{port.width}-1:0] \\{port.name} " for port in ports)
    return f"(* blackbox *) module {name} {parameters}({declared});\nendmodule\n"


def _fingerprint(source: str, unit: str) -> str:
    """Return a hash of ``source`` that is independent of its place in the design."""
    same = re.sub(rf"\b{re.escape(unit)}(?=__|\b)", "UNIT", source)
    return hashlib.sha256(same.encode()).hexdigest()


def _synthesise(unit: str, source: str) -> dict[str, Any]:
    script = "\n".join([
        "read_verilog -sv unit.v",
        f"synth_xilinx -family xcup -abc9 -noiopad -noclkbuf -flatten -top {unit}",
        f"select {unit}", "write_json -selected unit.json"])

    def build(folder: Path) -> None:
        (folder / "unit.v").write_text(source, encoding="utf-8")
        run_yosys(script, cwd=folder)
        written = folder / "unit.json"
        (folder / "unit.json.gz").write_bytes(gzip.compress(written.read_bytes(), 1, mtime=0))
        written.unlink()

    # The synthesis takes minutes, so it is cached: an interrupted report resumes.
    entry = cached(f"netlist-{digest([yosys_id(), script, source])}", build)
    modules = json.loads(gzip.decompress((entry / "unit.json.gz").read_bytes()))["modules"]
    netlist = modules[unit]
    # Escaped Verilog names keep a backslash inside.
    netlist["netnames"] = {
        name.replace("\\", ""): net for name, net in netlist["netnames"].items()}
    return netlist


def _ram(cell: dict[str, Any]) -> RamCost:
    parameters = cell["parameters"]
    width, depth = (int(parameters[name], 2) for name in ("WIDTH", "DEPTH"))
    return ram_cost(width, depth, parameters["STYLE"].strip())


def _resources(netlist: dict[str, Any]) -> dict[str, float]:
    kinds = Counter(cell["type"] for cell in netlist["cells"].values())
    rams = [_ram(cell) for cell in netlist["cells"].values() if cell["type"] in _LATENCY]

    def total(*prefixes: str) -> int:
        return sum(n for kind, n in kinds.items() if kind.startswith(prefixes))

    return {
        # Shift registers and inferred LUTRAM occupy LUTs too.
        "lut": (total("LUT", "SRL") + 8 * total("RAM32M", "RAM64M") + _route_throughs(netlist)
                + sum(r.lut for r in rams)),
        "ff": total("FD"),
        "bram36": total("RAMB36") + total("RAMB18") / 2 + sum(r.bram36 for r in rams),
        "uram": total("URAM") + sum(r.uram for r in rams),
        "dsp": total("DSP")}


def _route_throughs(netlist: dict[str, Any]) -> int:
    """Return the LUTs that only pass a signal on, because a carry chain is fed by LUTs."""
    from_lut = {bit for cell in netlist["cells"].values() if cell["type"].startswith("LUT")
                for bit in cell["connections"]["O"]}
    return sum(isinstance(bit, int) and bit not in from_lut
               for cell in netlist["cells"].values() if cell["type"].startswith("CARRY")
               for bit in cell["connections"]["S"])


def _timing(netlist: dict[str, Any], timings: dict[str, Timing], registers: set[str]) -> Timing:
    boxes = {}
    for name, cell in netlist["cells"].items():
        if cell["type"] in _LATENCY:
            boxes[name] = ram_timing(_LATENCY[cell["type"]], _ram(cell).levels)
        elif cell["type"] in timings:
            boxes[name] = timings[cell["type"]]
    return analyse(netlist, boxes, registers)


def _registers(verilog: Verilog, unit: str, units: list[str]) -> set[str]:
    """Return the names of the registers in ``unit`` after flattening."""
    found: set[str] = set()

    def visit(name: str, prefix: str) -> None:
        module = verilog.modules[name]
        found.update(prefix + register for register in module.registers)
        for cell in module.cells:
            if cell.module in verilog.modules and cell.module not in units:
                visit(cell.module, f"{prefix}{cell.name}.")

    visit(unit, "")
    return found


def _deepest(verilog: Verilog, unit: str, path: DepthPath) -> dict[str, Any]:
    return {"depth": path.depth, "path": {
        end: {"signal": signal, **_place(verilog, unit, signal)}
        for end, signal in (("from", path.start), ("to", path.end))}}


def _place(verilog: Verilog, unit: str, signal: str) -> dict[str, str]:
    """Return the module that contains ``signal`` of ``unit``, and the place of its declaration."""
    module, rest = verilog.modules[unit], signal
    while cell := next((cell for cell in module.cells if cell.module in verilog.modules
                        and rest.startswith(f"{cell.name}.")), None):
        module, rest = verilog.modules[cell.module], rest[len(cell.name) + 1:]
    return {"module": module.name, "source": module.registers.get(rest) or module.source}

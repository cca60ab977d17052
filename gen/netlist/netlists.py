"""Netlists of a design that Yosys maps for UltraScale+, one for each distinct unit.

A unit is an instance in the top, an instance in a large unit, a shared unit, or the top. Each
distinct unit is synthesised once, out of context and without its subunits, so Yosys needs little
memory. Its netlist is cached by its source (:mod:`gen.base.cache`). Memories of
:data:`gen.verilog.platform.RAM_MODULES` are black boxes, because mapping a behavioural array of
megabits cell by cell would take hours.
"""

import gzip
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from gen.base.cache import cached, digest
from gen.base.yosys import run_yosys, yosys_id
from gen.verilog.convert import Verilog
from gen.verilog.platform import RAM_MODULES
from gen.verilog.rtlil import Port

__all__ = ["LATENCIES", "Netlist", "map_units", "place", "registers", "synthesise", "units_of"]

LATENCIES = {module: latency for latency, module in RAM_MODULES.items()}
"""Read latency of each owned memory module, see :data:`gen.verilog.platform.RAM_MODULES`. For 2 and
more, parameter ``LATENCY`` of the module contains the latency."""

Netlist = dict[str, Any]
"""A mapped module in Yosys's JSON: ``ports``, ``cells`` and ``netnames``."""

_Converted = TypeVar("_Converted")
_LARGE = 1_000_000
"""Maximum characters of a block's Verilog, without shared units; the instances in a larger block
are units. ABC saves area as long as the longest path allows, so in a large unit a local change
affects all paths."""
_MODULE = re.compile(r"^module (\S+?)\(.*?^endmodule\n", re.MULTILINE | re.DOTALL)
_RAM_PORTS = [
    Port("clk", 1, "input"), Port("write_en", 1, "input"),
    Port("write_addr", "ADDR_BITS", "input"), Port("write_data", "WIDTH", "input"),
    Port("read_en", 1, "input"), Port("read_addr", "ADDR_BITS", "input"),
    Port("read_data", "WIDTH", "output")]  # type: ignore[arg-type]


def map_units(verilog: Verilog, units: list[str], convert: Callable[[str, Netlist], _Converted],
              progress: Callable[[str], None] = lambda _line: None) -> dict[str, _Converted]:
    """Return ``convert(unit, netlist)`` for each of ``units`` (:func:`units_of`), in their order.

    Units with the same netlist share one result. ``progress`` is called with a line for each
    netlist.
    """
    texts = _texts(verilog)
    sources = {unit: _source(unit, verilog, units, texts) for unit in units}
    fingerprints = {unit: _fingerprint(source, unit) for unit, source in sources.items()}
    distinct: dict[str, str] = {}
    for unit, fingerprint in fingerprints.items():
        distinct.setdefault(fingerprint, unit)
    done: list[str] = []

    def one(unit: str) -> _Converted:
        converted = convert(unit, synthesise(unit, sources[unit]))
        done.append(unit)
        progress(f"synthesised {unit} ({len(done)} of {len(distinct)})")
        return converted

    # A run needs up to a few GiB of memory, so at most two run at once.
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        mapped = dict(zip(distinct, pool.map(one, distinct.values())))
    return {unit: mapped[fingerprint] for unit, fingerprint in fingerprints.items()}


def units_of(verilog: Verilog, whole: bool) -> list[str]:
    """Return the modules that are synthesised separately, inner modules first.

    whole: whether to treat the top as one unit, which is faster for a small design.
    """
    # The name of a submodule begins with the name of its enclosing module.
    shared = {cell.module for module in verilog.modules.values() for cell in module.cells
              if cell.module in verilog.modules and not cell.module.startswith(f"{module.name}__")}
    # A module that only wraps a memory or a shared unit counts as part of its user.
    wrapped = shared | LATENCIES.keys()
    wrappers = {name for name, module in verilog.modules.items()
                if len(module.cells) == 1 and module.cells[0].module in wrapped}
    texts = _texts(verilog)
    own = shared | {verilog.name}

    def size(name: str) -> int:
        return 0 if name in shared or name not in texts else len(texts[name]) + sum(
            size(cell.module) for cell in verilog.modules[name].cells if cell.module in texts)

    def divide(name: str) -> None:
        for block in {cell.module for cell in verilog.modules[name].cells} & verilog.modules.keys():
            if block not in wrappers | own:
                own.add(block)
                if size(block) > _LARGE:
                    divide(block)

    if not whole:
        divide(verilog.name)
    ordered: list[str] = []

    def visit(name: str) -> None:
        for cell in verilog.modules[name].cells:
            if cell.module in verilog.modules:
                visit(cell.module)
        if name in own and name not in ordered:
            ordered.append(name)

    visit(verilog.name)
    return ordered


def _texts(verilog: Verilog) -> dict[str, str]:
    """Return the text of each module by name."""
    return {match[1]: match[0] for match in _MODULE.finditer(verilog.text)}


def _source(unit: str, verilog: Verilog, units: list[str], texts: dict[str, str]) -> str:
    """Return the Verilog of ``unit``, with other units and the memories as black boxes."""
    parts: list[str] = []
    seen: set[str] = set()

    def visit(name: str) -> None:
        if name in seen:
            return
        seen.add(name)
        if name in LATENCIES:
            parts.append(_ram_box(name, LATENCIES[name]))
        elif name != unit and name in units:
            parts.append(_box(name, list(verilog.modules[name].ports)))
        else:
            parts.append(texts[name])
            for cell in verilog.modules[name].cells:
                visit(cell.module)

    visit(unit)
    return "\n".join(parts)


def _ram_box(name: str, latency: int) -> str:
    ports = [port for port in _RAM_PORTS if latency or port.name != "read_en"]
    parameters = 'parameter WIDTH = 1, DEPTH = 2, ADDR_BITS = 1, STYLE = ""'
    if latency > 1:
        ports, parameters = [*ports, Port("output_en", 1, "input")], f"{parameters}, LATENCY = 2"
    return _box(name, ports, f"#({parameters}) ")


def _box(name: str, ports: list[Port], parameters: str = "") -> str:
    declared = ", ".join(f"{port.direction} [{port.width}-1:0] \\{port.name} " for port in ports)
    return f"(* blackbox *) module {name} {parameters}({declared});\nendmodule\n"


def _fingerprint(source: str, unit: str) -> str:
    """Return a hash of ``source`` that does not depend on its place in the design."""
    same = re.sub(rf"\b{re.escape(unit)}(?=__|\b)", "UNIT", source)
    return hashlib.sha256(same.encode()).hexdigest()


def synthesise(unit: str, source: str, parameters: Mapping[str, int] | None = None) -> Netlist:
    """Return the flat netlist of module ``unit`` of the Verilog ``source``, from the cache if
    possible.

    parameters: values that replace the module's own parameters.
    """
    settings = "".join(f" -set {name} {value}" for name, value in (parameters or {}).items())
    script = "\n".join([
        "read_verilog -sv unit.v", *([f"chparam{settings} {unit}"] if settings else []),
        f"synth_xilinx -family xcup -abc9 -noiopad -noclkbuf -flatten -top {unit}",
        f"select {unit}", "write_json -selected unit.json"])

    def build(folder: Path) -> None:
        (folder / "unit.v").write_text(source, encoding="utf-8")
        run_yosys(script, cwd=folder)
        written = folder / "unit.json"
        (folder / "unit.json.gz").write_bytes(gzip.compress(written.read_bytes(), 1, mtime=0))
        written.unlink()

    # The synthesis takes minutes, so the result is cached: an interrupted report resumes.
    entry = cached(f"netlist-{digest([yosys_id(), script, source])}", build)
    modules = json.loads(gzip.decompress((entry / "unit.json.gz").read_bytes()))["modules"]
    netlist = modules[unit]
    # Escaped Verilog names keep a backslash inside.
    netlist["netnames"] = {
        name.replace("\\", ""): net for name, net in netlist["netnames"].items()}
    return netlist


def registers(verilog: Verilog, unit: str, units: list[str]) -> dict[str, str]:
    """Return the names of the registers in ``unit`` after flattening, each with the name of its
    flip-flops in the Verilog (:attr:`gen.verilog.rtlil.Module.flip_flops`)."""
    found: dict[str, str] = {}

    def visit(name: str, prefix: str) -> None:
        module = verilog.modules[name]
        found.update((prefix + register, prefix + module.flip_flops.get(register, register))
                     for register in module.registers)
        for cell in module.cells:
            if cell.module in verilog.modules and cell.module not in units:
                visit(cell.module, f"{prefix}{cell.name}.")

    visit(unit, "")
    return found


def place(verilog: Verilog, unit: str, signal: str) -> dict[str, str]:
    """Return the module that contains ``signal`` of ``unit``, and the place of its declaration."""
    module, rest = verilog.modules[unit], signal
    while cell := next((cell for cell in module.cells if cell.module in verilog.modules
                        and rest.startswith(f"{cell.name}.")), None):
        module, rest = verilog.modules[cell.module], rest[len(cell.name) + 1:]
    return {"module": module.name, "source": module.registers.get(rest) or module.source}

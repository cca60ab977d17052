"""Resource report: LUT, FF, RAM, DSP and logic depth of a design, block by block, by Yosys.

A block is a unit of :mod:`gen.netlist.netlists`: an instance in the top, or a shared unit. Memories
are counted from their sizes and styles, see :mod:`gen.netlist.ram_cost`.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from gen.netlist.depth import Path as DepthPath
from gen.netlist.depth import Timing, analyse, ram_timing
from gen.netlist.fit import SLR
from gen.netlist.netlists import LATENCIES, Netlist, map_units, place, registers, units_of
from gen.netlist.ram_cost import RamCost, ram_cost
from gen.verilog.convert import Verilog

__all__ = ["SLR", "report_resources", "resources_of"]

SCHEMA = "embernic/report/2"


def report_resources(verilog: Verilog, progress: Callable[[str], None] = lambda _line: None, *,
                     whole: bool = False) -> dict[str, Any]:
    """Return the resources of each block of ``verilog`` and of the whole design.

    ``blocks`` lists each distinct block: its name (module), its number of instances, and for one
    instance ``lut``, ``ff``, ``bram36``, ``uram``, ``dsp`` and ``depth``, the longest path in LUTs
    between registers, RAMs, DSPs and ports. ``total`` is the sum over the instances; its ``depth``
    includes paths across blocks.

    ``path`` contains the ends of the longest path, ``from`` and ``to``. ``signal`` is the register
    or port, with its instances as prefix. ``module`` contains it. ``source`` is the file and line
    of its declaration, or else of its module, or "" if unknown.

    whole: whether to treat the top as one block, which is faster for a small design.
    """
    units = units_of(verilog, whole)
    netlists = map_units(verilog, units, lambda _unit, netlist: netlist, progress)
    counts = verilog.counts()
    timings: dict[str, Timing] = {}
    blocks = []
    for unit in units:  # a unit comes after the units it contains
        netlist = netlists[unit]
        timings[unit] = _timing(netlist, timings, registers(verilog, unit, units))
        blocks.append({"name": unit, "instances": counts[unit], **resources_of(netlist),
                       **_deepest(verilog, unit, timings[unit].deepest)})
    total: dict[str, Any] = {
        key: sum(block["instances"] * block[key] for block in blocks)
        for key in ("lut", "ff", "bram36", "uram", "dsp")}
    paths = [(verilog.name, timings[verilog.name].deepest),
             *((unit, timing.inner) for unit, timing in timings.items())]
    total |= _deepest(verilog, *max(paths, key=lambda path: path[1].depth))
    return {"schema": SCHEMA, "name": verilog.name, "available": SLR, "blocks": blocks,
            "total": total}


def _ram(cell: dict[str, Any]) -> RamCost:
    parameters = cell["parameters"]
    width, depth = (int(parameters[name], 2) for name in ("WIDTH", "DEPTH"))
    return ram_cost(width, depth, parameters["STYLE"].strip())


def resources_of(netlist: Netlist) -> dict[str, float]:
    """Return ``lut``, ``ff``, ``bram36``, ``uram`` and ``dsp`` of ``netlist``, without its
    subunits."""
    kinds = Counter(cell["type"] for cell in netlist["cells"].values())
    rams = [_ram(cell) for cell in netlist["cells"].values() if cell["type"] in LATENCIES]

    def total(*prefixes: str) -> int:
        return sum(n for kind, n in kinds.items() if kind.startswith(prefixes))

    return {
        # Shift registers and inferred LUTRAM use LUTs too.
        "lut": (total("LUT", "SRL") + 8 * total("RAM32M", "RAM64M") + _route_throughs(netlist)
                + sum(r.lut for r in rams)),
        "ff": total("FD"),
        "bram36": total("RAMB36") + total("RAMB18") / 2 + sum(r.bram36 for r in rams),
        "uram": total("URAM") + sum(r.uram for r in rams),
        "dsp": total("DSP")}


def _route_throughs(netlist: dict[str, Any]) -> int:
    """Return the number of LUTs that only pass a signal to a carry chain."""
    from_lut = {bit for cell in netlist["cells"].values() if cell["type"].startswith("LUT")
                for bit in cell["connections"]["O"]}
    return sum(isinstance(bit, int) and bit not in from_lut
               for cell in netlist["cells"].values() if cell["type"].startswith("CARRY")
               for bit in cell["connections"]["S"])


def _timing(netlist: dict[str, Any], timings: dict[str, Timing], registers: set[str]) -> Timing:
    boxes = {}
    for name, cell in netlist["cells"].items():
        if cell["type"] in LATENCIES:
            boxes[name] = ram_timing(LATENCIES[cell["type"]], _ram(cell).levels)
        elif cell["type"] in timings:
            boxes[name] = timings[cell["type"]]
    return analyse(netlist, boxes, registers)


def _deepest(verilog: Verilog, unit: str, path: DepthPath) -> dict[str, Any]:
    return {"depth": path.depth, "path": {
        end: {"signal": signal, **place(verilog, unit, signal)}
        for end, signal in (("from", path.start), ("to", path.end))}}

"""Timing report of a design: slack of its paths in three cases of nets, block by block.

The design is not placed, so the report gives an interval of frequencies: a value for each case.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gen.timing.analysis import Arrived, TimedDesign, timed_design
from gen.timing.classes import end_classes, end_delays
from gen.timing.fan_out import FAN_OUT_BOUND, costly_nets
from gen.timing.inside import worst_inside
from gen.timing.loads import control_sets, lut_depths, most_loaded
from gen.timing.loops import worst_loops
from gen.timing.nets import CASES
from gen.timing.paths import register_of, worst_paths
from gen.timing.propagate import crossings
from gen.timing.records import (
    PERIODS,
    class_record,
    failing,
    histogram,
    loads_record,
    mhz,
    path_record,
    pico,
    slacks,
)
from gen.timing.through import BlockPath, blocks_of_cells, worst_by_block
from gen.verilog.convert import Verilog

__all__ = ["report_timing"]

SCHEMA = "embernic/timing/1"
_PATHS, _NETS, _LOOPS, _SETS = 20, 10, 20, 10
_CLOCK = 250
_ASSUMPTIONS = {
    "delays": "cells: RapidWright, timing/ultrascaleplus at 325baa0 (Apache-2.0), speed grade -2, "
              "slow corner, and further sources in gen/timing/delays.toml",
    "mapping": "Yosys, each distinct unit once and alone, without moving logic between units and "
               "without retiming",
    "left_out": [
        "placement and routing: a net's delay follows from its fan-out alone",
        "congestion and crossings between dies",
        "skew and uncertainty of the clock, hold times",
        "replication of drivers, and clock routing of nets with many loads",
        "logic behind the ports: a register of the neighbour is assumed, one net away",
        "paths between clocks",
        "paths that logic excludes: only constants end a path",
    ],
}


def report_timing(verilog: Verilog, progress: Callable[[str], None] = lambda _line: None, *,
                  whole: bool = False) -> dict[str, Any]:
    """Return the timing of ``verilog`` as plain JSON: ``gen/documents/schemas/timing.schema.json``.

    verilog: design, converted with sources; otherwise paths have no files and lines.
    whole: whether to treat the top as one unit.

    Raises ``ValueError`` if no register uses port ``clk`` of the top, if there is no path between
    registers, or if logic has a loop without a register.
    """
    design = timed_design(verilog, progress, whole=whole)
    graph = design.graph
    cases, blocks, inside = [], {}, {}
    paths: list[dict[str, Any]] = []
    costly: list[dict[str, Any]] = []
    for case in CASES:
        progress(f"timing {verilog.name} with {case.name} nets")
        found = design.at(case)
        if not len(end_delays(found.registers)):
            raise ValueError(f"{verilog.name} has no path between registers")
        blocks[case.name] = worst_by_block(found.registers)
        inside[case.name] = worst_inside(found.inside)
        cases.append(_case(design, found))
        if case.name == "middle":
            paths = [path_record(path) for path in worst_paths(
                found.registers, PERIODS[str(_CLOCK)], _PATHS, per_register=True,
                source=design.source)]
        if case.name == "pessimistic":
            costly = [
                {**loads_record(one.net), "driver": one.driver, "register": one.register,
                 "ps": pico(one.ps)}
                for one in costly_nets(found.registers, PERIODS[str(_CLOCK)], design.declared)]
    sets = control_sets(graph)
    return {
        "schema": SCHEMA, "name": verilog.name, "clock": "clk",
        "assumptions": {**_ASSUMPTIONS, "nets": [
            {"case": case.name, "base_ps": case.base, "ps_per_root_of_fan_out": case.slope}
            for case in CASES]},
        "interval_mhz": {case["case"]: case["mhz"] for case in reversed(cases)},
        "cases": cases,
        "blocks": _blocks(design, blocks, inside),
        "paths": paths,
        "nets": {name: [loads_record(net) for net in most_loaded(graph, _NETS, kind)]
                 for name, kind in (("most_loads", ""), ("resets", "reset"),
                                    ("enables", "enable"))},
        "costly_nets": {"bound": FAN_OUT_BOUND, "nets": costly},
        "control_sets": {"count": len(sets), "largest": [one._asdict() for one in sets[:_SETS]]},
        "ends_of_other_clocks": crossings(design.levels, design.clock),
        "area": _area(design),
    }


def _case(design: TimedDesign, found: Arrived) -> dict[str, Any]:
    delays = end_delays(found.registers)
    worst = float(delays.max())
    return {
        "case": found.registers.case.name, "ps": pico(worst), "mhz": mhz(worst),
        "slack_ps": slacks(worst), "ends": len(delays), "failing": failing(delays),
        "classes": [class_record(one) for one in end_classes(found.registers)],
        "port_classes": [class_record(one) for part in (found.from_ports, found.into_ports)
                         for one in end_classes(part)],
        "histogram": histogram(delays),
        "loops": [path_record(path, hops=False) for path in worst_loops(
            found.registers, PERIODS[str(_CLOCK)], _LOOPS, design.source)],
    }


def _blocks(design: TimedDesign,
            worst: Mapping[str, Mapping[str, BlockPath]],
            inside: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
    """Return the units on a path, the slowest in the middle case first."""
    graph, counts = design.graph, design.verilog.counts()
    units, of_cell = blocks_of_cells(graph)
    ends = of_cell[graph.captures.cells]
    depths = lut_depths(design.levels)[graph.loads.nets[graph.captures.places]]
    deepest = np.zeros(len(units), int)
    np.maximum.at(deepest, ends, depths)
    luts = dict(zip(units, deepest.tolist()))

    def end(cell: int) -> dict[str, str]:
        name, source = register_of(graph, cell, design.source)
        return {"signal": name, "source": source}

    middle = worst["middle"]
    return [{"name": unit, "instances": counts[unit], "luts": luts[unit], **{
        case: {"ps": pico(paths[unit].ps), "mhz": mhz(paths[unit].ps),
               "from": end(paths[unit].first), "to": end(paths[unit].last),
               "inside": None if unit not in inside[case] else {
                   "ps": pico(inside[case][unit]), "mhz": mhz(inside[case][unit])}}
        for case, paths in worst.items()}}
        for unit in sorted(middle, key=lambda unit: (-middle[unit].ps, unit))]


def _area(design: TimedDesign) -> list[dict[str, Any]]:
    """Return the resources of each instance in the top, including its subunits."""
    units = design.graph.units

    def total(unit: str) -> dict[str, float]:
        inner = [total(instance.unit) for instance in units[unit].instances]
        return {kind: own + sum(one[kind] for one in inner)
                for kind, own in design.resources[unit].items()}

    top = design.verilog.name
    return [{"instance": "", **design.resources[top]}, *(
        {"instance": instance.name, **total(instance.unit)}
        for instance in units[top].instances)]

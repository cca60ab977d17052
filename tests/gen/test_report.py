"""The resource report: primitives of memories, paths, sums over instances."""

import io

import pytest
from rich.console import Console

from gen.depth import Timing, analyse
from gen.ram_cost import RamCost, ram_cost
from gen.report import report_resources
from gen.tables import report_table
from gen.verilog import to_verilog
from tests.gen.designs import Bank


@pytest.mark.parametrize("width, depth, style, cost", [
    (72, 4096, "ultra", RamCost(uram=1)),
    (512, 32768, "ultra", RamCost(uram=64)),
    (512, 4097, "ultra", RamCost(uram=16)),
    (72, 512, "block", RamCost(bram36=1)),
    (36, 512, "block", RamCost(bram36=0.5)),
    (37, 512, "block", RamCost(bram36=1)),
    (4801, 512, "block", RamCost(bram36=67)),
    (9, 4096, "auto", RamCost(bram36=1)),
    (1, 65, "auto", RamCost(bram36=0.5)),
    (14, 32, "auto", RamCost(lut=8, levels=1)),
    (15, 32, "distributed", RamCost(lut=16, levels=1)),
    (7, 64, "distributed", RamCost(lut=8, levels=1)),
    (7, 256, "distributed", RamCost(lut=4 * 8 + 7, levels=2))])
def test_ram_cost(width, depth, style, cost):
    assert ram_cost(width, depth, style) == cost


def cell(kind, inputs, outputs):
    connections = {**inputs, **outputs}
    return {"type": kind, "connections": connections, "port_directions": {
        port: "output" if port in outputs else "input" for port in connections}}


def netlist(cells, **ports):
    return {"cells": cells, "ports": {
        name: {"direction": direction, "bits": bits} for name, (direction, bits) in ports.items()}}


def test_paths_between_registers_and_ports():
    timing = analyse(netlist(
        {"ff_0": cell("FDRE", {"C": [1], "D": [22], "CE": ["1"], "R": ["0"]}, {"Q": [10]}),
         "lut_0": cell("LUT2", {"I0": [10], "I1": [2]}, {"O": [20]}),
         "lut_1": cell("LUT2", {"I0": [20], "I1": [10]}, {"O": [21]}),
         "mux": cell("MUXF7", {"I0": [21], "I1": [20], "S": [2]}, {"O": [22]}),
         "out": cell("LUT1", {"I0": [22]}, {"O": [30]}),
         "wire": cell("LUT1", {"I0": [2]}, {"O": [31]})},
        clk=("input", [1]), a=("input", [2]), x=("output", [30]), y=("output", [31])), {})
    assert timing == Timing(inner=2, launch={"x": 3}, capture={"a": 2},
                            through={("a", "x"): 3, ("a", "y"): 1})
    assert timing.depth == 3


def test_a_carry_chain_counts_once():
    cells = {"ff": cell("FDRE", {"C": [1], "D": [59]}, {"Q": [10]}),
             "lut": cell("LUT1", {"I0": [10]}, {"O": [11]})}
    for i in range(5):
        cells[f"carry_{i}"] = cell(
            "CARRY4", {"CI": [40 + i - 1 if i else "0"], "S": [11 if i == 0 else "0"]},
            {"CO": [40 + i], "O": [55 + i]})
    assert analyse(netlist(cells, clk=("input", [1])), {}).inner == 2


def test_boxes_pass_paths_on():
    box = Timing(inner=9, launch={"q": 2}, capture={"d": 3}, through={("d", "q"): 4})
    timing = analyse(netlist(
        {"before": cell("LUT1", {"I0": [2]}, {"O": [3]}),
         "box": cell("thing", {"d": [3]}, {"q": [4]}),
         "after": cell("LUT1", {"I0": [4]}, {"O": [5]})},
        a=("input", [2]), x=("output", [5])), {"box": box})
    assert timing == Timing(launch={"x": 3}, capture={"a": 4}, through={("a", "x"): 6})


def test_a_loop_through_boxes_ends():
    box = Timing(through={("d", "q"): 1})
    cells = {"one": cell("thing", {"d": [1]}, {"q": [2]}),
             "two": cell("thing", {"d": [2]}, {"q": [1]})}
    timing = analyse(netlist(cells, x=("output", [2])), {"one": box, "two": box})
    assert timing.depth == 0


def test_report_sums_instances():
    report = report_resources(to_verilog(Bank(3, depth=100), "bank"))
    blocks = {block["name"]: block for block in report["blocks"]}
    assert blocks["bank_unit"]["instances"] == 3
    assert blocks["bank_unit"]["ff"] == 9
    # Eight full adders twice, then the increment, which may share LUTs with them.
    assert 16 <= blocks["bank_unit"]["lut"] + blocks["bank_inner"]["lut"] <= 40
    assert 2 <= blocks["bank_unit"]["depth"] <= 7
    assert report["total"]["ff"] == 27
    assert report["total"]["bram36"] == 0.5
    lutram = ram_cost(8, 100, "distributed").lut
    assert report["total"]["lut"] == lutram + 3 * (
        blocks["bank_unit"]["lut"] + blocks["bank_inner"]["lut"])
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(report_table(report))
    assert "bank_unit" in console.export_text()

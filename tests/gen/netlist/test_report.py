"""The resource report: primitives of memories, paths, sums over instances."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from gen.documents.tables import path_table, report_table
from gen.netlist.depth import Path as DepthPath
from gen.netlist.depth import Reach, Timing, analyse, ram_timing
from gen.netlist.ram_cost import RamCost, RamShape, ram_cost, ram_shape
from gen.netlist.report import report_resources
from gen.verilog.convert import to_verilog
from gen.verilog.platform import VerilogPlatform
from tests.gen import designs
from tests.gen.designs import Bank, Chain
from tests.gen.mapped import cell, netlist


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


@pytest.mark.parametrize("width, depth, style, shape", [
    (512, 4097, "ultra", RamShape("uram", 4096, stages=2, columns=8)),
    (36, 512, "block", RamShape("bram18", 512, stages=1, columns=1)),
    # Nine of 4096 x 9 side by side, not nine of 512 x 72 in depth.
    (81, 4096, "block", RamShape("bram36", 4096, stages=1, columns=9)),
    (36, 3072, "block", RamShape("bram36", 1024, stages=3, columns=1)),
    (9, 65, "auto", RamShape("bram18", 512, stages=1, columns=1)),
    (15, 32, "auto", RamShape("lutram", 32, stages=1, columns=2)),
    (7, 65, "distributed", RamShape("lutram", 64, stages=2, columns=1))])
def test_ram_shape(width, depth, style, shape):
    assert ram_shape(width, depth, style) == shape


def test_paths_between_registers_and_ports():
    timing = analyse(netlist(
        {"ff_0": cell("FDRE", {"C": [1], "D": [22], "CE": ["1"], "R": ["0"]}, {"Q": [10]}),
         "lut_0": cell("LUT2", {"I0": [10], "I1": [2]}, {"O": [20]}),
         "lut_1": cell("LUT2", {"I0": [20], "I1": [10]}, {"O": [21]}),
         "mux": cell("MUXF7", {"I0": [21], "I1": [20], "S": [2]}, {"O": [22]}),
         "out": cell("LUT1", {"I0": [22]}, {"O": [30]}),
         "wire": cell("LUT1", {"I0": [2]}, {"O": [31]})},
        {"count": [10]},
        clk=("input", [1]), a=("input", [2]), x=("output", [30]), y=("output", [31])), {})
    assert timing == Timing(
        inner=DepthPath(2, "count", "count"), launch={"x": Reach(3, "count")},
        capture={"a": Reach(2, "count")}, through={("a", "x"): 3, ("a", "y"): 1})
    assert timing.deepest == DepthPath(3, "count", "x")


def test_the_ends_of_the_deepest_path_are_named():
    """The net of a register has the names of all ports that it passes."""
    timing = analyse(netlist(
        {"one": cell("FDRE", {"C": [1], "D": [2]}, {"Q": [10]}),
         "two": cell("FDRE", {"C": [1], "D": [20]}, {"Q": [11]}),
         "lut": cell("LUT2", {"I0": [10], "I1": [11]}, {"O": [20]}),
         "three": cell("FDRE", {"C": [1], "D": [21]}, {"Q": [12]}),
         "next": cell("LUT1", {"I0": [20]}, {"O": [21]}),
         "dsp": cell("DSP48E2", {"A": [22]}, {"P": [13, 14]}),
         "last": cell("LUT1", {"I0": [21]}, {"O": [22]})},
        {"block.item": [9, 10], "a.store": [10], "a": [11], "product": [14], "z$1": [14]},
        clk=("input", [1]), d=("input", [2])), {}, {"a.store"})
    assert timing.inner == DepthPath(3, "a.store", "product")
    assert timing.capture == {"d": Reach(0, "a.store")}


def test_a_carry_chain_counts_once():
    cells = {"ff": cell("FDRE", {"C": [1], "D": [59]}, {"Q": [10]}),
             "lut": cell("LUT1", {"I0": [10]}, {"O": [11]})}
    for i in range(5):
        cells[f"carry_{i}"] = cell(
            "CARRY4", {"CI": [40 + i - 1 if i else "0"], "S": [11 if i == 0 else "0"]},
            {"CO": [40 + i], "O": [55 + i]})
    assert analyse(netlist(cells, clk=("input", [1])), {}).inner == DepthPath(2, "ff", "ff")


def test_boxes_pass_paths_on():
    box = Timing(inner=DepthPath(9, "a", "b"), launch={"q": Reach(2, "a")},
                 capture={"d": Reach(3, "b")}, through={("d", "q"): 4})
    timing = analyse(netlist(
        {"before": cell("LUT1", {"I0": [2]}, {"O": [3]}),
         "box": cell("thing", {"d": [3]}, {"q": [4]}),
         "after": cell("LUT1", {"I0": [4]}, {"O": [5]})},
        a=("input", [2]), x=("output", [5])), {"box": box})
    assert timing == Timing(launch={"x": Reach(3, "box.a")}, capture={"a": Reach(4, "box.b")},
                            through={("a", "x"): 6})


def test_memories_start_and_end_paths():
    levels = ram_timing(0, 2)
    timing = analyse(netlist(
        {"ram": cell("ember_ram_async", {"read_addr": [2], "write_en": [3]}, {"read_data": [4]}),
         "lut": cell("LUT1", {"I0": [4]}, {"O": [3]})}, a=("input", [2])), {"ram": levels})
    assert timing.inner == DepthPath(3, "ram", "ram")
    assert timing.capture == {"a": Reach(3, "ram")}


def test_a_loop_through_boxes_ends():
    box = Timing(through={("d", "q"): 1})
    cells = {"one": cell("thing", {"d": [1]}, {"q": [2]}),
             "two": cell("thing", {"d": [2]}, {"q": [1]})}
    timing = analyse(netlist(cells, x=("output", [2])), {"one": box, "two": box})
    assert timing.deepest.depth == 0


@pytest.mark.slow
def test_report_sums_instances():
    report = report_resources(to_verilog(Bank(3, depth=100), "bank"))
    blocks = {block["name"]: block for block in report["blocks"]}
    assert blocks["bank_unit"]["instances"] == 3
    assert blocks["bank_unit"]["ff"] == 9
    # Two chains of eight full adders, then the increment, which may share LUTs with them.
    assert 16 <= blocks["bank_unit"]["lut"] + blocks["bank_inner"]["lut"] <= 40
    assert 2 <= blocks["bank_unit"]["depth"] <= 7
    assert report["total"]["ff"] == 27
    assert report["total"]["bram36"] == 0.5
    lutram = ram_cost(8, 100, "distributed").lut
    assert report["total"]["lut"] == lutram + 3 * (
        blocks["bank_unit"]["lut"] + blocks["bank_inner"]["lut"])
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(report_table(report))
    console.print(path_table(report))
    shown = console.export_text()
    assert "bank_unit" in shown and report["total"]["path"]["to"]["signal"] in shown


@pytest.mark.thorough
def test_report_names_registers_and_lines():
    """Modules named by Amaranth do not prevent it."""
    report = report_resources(to_verilog(Chain(), "chain", VerilogPlatform("chain", sources=True)))
    assert [block["name"] for block in report["blocks"]] == ["chain__U_0", "chain__U_1", "chain"]
    path = report["total"]["path"]
    lines = Path(designs.__file__).read_text().splitlines()
    for end, name in (("from", "before"), ("to", "after")):
        line = 1 + lines.index(f"        {name} = Signal(8)")
        assert path[end] == {"signal": name, "module": "chain",
                             "source": f"tests/gen/designs.py:{line}"}
    assert report["total"]["depth"] >= 2

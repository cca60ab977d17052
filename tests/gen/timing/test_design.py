"""From Verilog to paths, with Yosys's mapping."""

from pathlib import Path

import pytest

from gen.timing.analysis import timed_design
from gen.timing.design import source_of
from gen.timing.levels import levels_of
from gen.timing.loads import control_sets, lut_depths
from gen.timing.nets import CASES
from gen.timing.paths import worst_paths
from gen.timing.propagate import arrivals, clock_of
from gen.verilog.convert import to_verilog
from gen.verilog.platform import VerilogPlatform
from tests.gen import designs
from tests.gen.designs import Bank, Chain


@pytest.mark.thorough
def test_a_design_in_units():
    """Use ``before`` and ``after`` of the chain, with two unnamed units between them."""
    verilog = to_verilog(Chain(), "chain", VerilogPlatform("chain", sources=True))
    graph = timed_design(verilog).graph
    levels = levels_of(graph)
    arrived = arrivals(levels, CASES[1], clock_of(graph, "clk"))
    paths = worst_paths(arrived, 4000, 9, per_register=True, source=source_of(verilog))
    assert {(path.start, path.end, path.capture) for path in paths} == {
        ("before", "after", "data"), ("i", "before", "data"), ("after", "o", "data"),
        ("rst", "before", "reset"), ("rst", "after", "reset")}
    lines = Path(designs.__file__).read_text().splitlines()
    for path in paths:
        if path.end in ("before", "after"):
            line = 1 + lines.index(f"        {path.end} = Signal(8)")
            assert path.hops[-1].source == f"tests/gen/designs.py:{line}"
        assert abs(path.ps - sum(hop.cell_ps + hop.net_ps for hop in path.hops)) < 1e-6
    assert paths[0].end == "after" and paths[0].start_kind == paths[0].end_kind == "ff"
    assert any(hop.cell.startswith("U$") for hop in paths[0].hops)
    assert 1 <= paths[0].luts <= lut_depths(levels).max()
    assert sum(found.flip_flops for found in control_sets(graph)) == 16


@pytest.mark.thorough
def test_whole_or_in_units_has_the_same_ends():
    """With memories and shared units, the same registers, RAMs and ports are reached."""
    verilog = to_verilog(Bank(2, depth=100), "bank")
    ends = []
    for whole in (False, True):
        graph = timed_design(verilog, whole=whole).graph
        arrived = arrivals(levels_of(graph), CASES[0], clock_of(graph, "clk"))
        reached = graph.captures.cells[arrived.captures[arrived.ends > 0]]
        ends.append({(graph.register_name(int(cell)), graph.type_of(cell).kind)
                     for cell in reached})
    assert ends[0] == ends[1]
    assert {kind for _name, kind in ends[0]} == {"ff", "bram", "lutram", "port"}

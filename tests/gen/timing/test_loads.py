"""Loads by kind, control sets, depth in LUTs."""

from gen.timing.cells import KINDS
from gen.timing.levels import levels_of
from gen.timing.loads import ControlSet, NetLoads, control_sets, lut_depths, most_loaded
from tests.gen.mapped import cell, netlist
from tests.gen.timing.circuits import ff, join, lut


def design():
    """Return a design: ``go`` enables three registers of two sets and is read by a LUT; ``rst``
    resets two."""
    return join({"top": netlist(
        {"a": ff(2, 20, 10, enable=4, reset=3), "b": ff(2, 20, 11, enable=4, reset=3),
         "c": ff(2, 20, 12, enable=4), "d": ff(2, 20, 13), "e": ff(5, "0", 14),
         "f": cell("FDRE", {"C": [2], "D": [10]}, {"Q": [15]}),
         "s": cell("FDSE", {"C": [2], "CE": [4], "D": [10], "S": [3]}, {"Q": [16]}),
         "x": lut(19, 4, 10), "y": lut(20, 19, 11)}, {"next": [20]},
        clk=("input", [2]), rst=("input", [3]), go=("input", [4]), other=("input", [5]))})


def test_loads_by_kind():
    assert most_loaded(design(), 3) == [
        NetLoads("go", 5, {"data": 1, "enable": 4}), NetLoads("next", 4, {"data": 4}),
        NetLoads("rst", 3, {"reset": 3})]
    assert "enable" in KINDS and len(most_loaded(design(), 99)) == 6


def test_control_sets():
    found = control_sets(design())
    assert found[0] == ControlSet("clk", "go", "rst", 3)
    assert set(found[1:]) == {
        ControlSet("clk", "go", "0", 1), ControlSet("clk", "1", "0", 1),
        ControlSet("other", "1", "0", 1), ControlSet("clk", "", "", 1)}


def test_depth_in_luts():
    graph = design()
    depths = lut_depths(levels_of(graph))
    assert {graph.net_name(net): int(n) for net, n in enumerate(depths) if n} == {
        "x": 1, "next": 2}


def test_without_registers():
    graph = join({"top": netlist({"x": lut(4, 3)}, i=("input", [3]), o=("output", [4]))})
    assert control_sets(graph) == []
    assert [loads.total for loads in most_loaded(graph, 9)] == [1, 1]

"""Paths, loads and names across units, worked out by hand; delays as in test_propagate."""

from math import sqrt

import pytest

from gen.timing.loads import NetLoads, most_loaded
from gen.timing.paths import worst_paths
from tests.gen.mapped import cell, netlist
from tests.gen.timing.circuits import analyse, ends, ff, join, lut

TWO = 350 + 20 * sqrt(2)
THREE = 350 + 20 * sqrt(3)


def inner():
    """Return a LUT between ports; its input also drives a register, whose output leaves."""
    return netlist({"lut": lut(4, 3), "store": ff(2, 3, 5)}, {"kept": [5]}, clk=("input", [2]),
                   i=("input", [3]), o=("output", [4]), q=("output", [5]))


def middle():
    return netlist({"unit": cell("inner", {"clk": [2], "i": [3]}, {"o": [4], "q": [5]}),
                    "out": lut(6, 4)}, {"kept": [5]},
                   clk=("input", [2]), i=("input", [3]), o=("output", [6]), q=("output", [5]))


def test_a_path_through_two_levels_counts_the_loads_of_both():
    graph = join({"inner": inner(), "middle": middle(), "top": netlist(
        {"a": ff(2, "0", 10), "m": cell("middle", {"clk": [2], "i": [10]}, {"o": [11], "q": [12]}),
         "b": ff(2, 11, 13), "c": ff(2, 12, 14), "d": ff(2, 10, 15)}, {"first": [10], "last": [13]},
        clk=("input", [2]))})
    arrived = analyse(graph)
    # Net 10 drives d here, and two levels down the LUT and the register.
    assert ends(arrived) == {
        "m.unit.store.D[0]": pytest.approx(77 + THREE - 25),
        "d.D[0]": pytest.approx(77 + THREE - 25),
        "b.D[0]": pytest.approx(77 + THREE + 35 + 370 + 35 + 50 - 25),
        "c.D[0]": 77 + 370 - 25}
    assert most_loaded(graph, 1) == [NetLoads("first", 3, {"data": 3})]
    worst, *_others = worst_paths(arrived, 1000, 4)
    assert [(hop.cell, hop.signal) for hop in worst.hops] == [
        ("a", "first"), ("m.unit.lut", "m.unit.lut"), ("m.out", "m.out"), ("b", "last")]
    assert worst.luts == 2


def test_launch_and_capture_inside_a_unit():
    """The registers are named by the instances around them."""
    graph = join({"inner": inner(), "middle": middle(), "top": netlist(
        {"m": cell("middle", {"clk": [2], "i": [11]}, {"o": [10], "q": [11]})},
        clk=("input", [2]))})
    path, = worst_paths(analyse(graph), 1000, 9)
    # The output of the store returns to its own input and to the LUT, whose output is open.
    assert (path.start, path.end) == ("m.unit.kept", "m.unit.kept")
    assert path.ps == pytest.approx(77 + TWO - 25)
    assert path.slack == pytest.approx(1000 - path.ps)


def test_two_instances_of_one_unit():
    """In series: each has its own nets, with its own fan-out."""
    graph = join({"inner": inner(), "top": netlist(
        {"x": cell("inner", {"clk": [2], "i": [10]}, {"q": [11]}),
         "y": cell("inner", {"clk": [2], "i": [11]}, {"q": [12]}),
         "end": ff(2, 11, 13)}, clk=("input", [2]), i=("input", [10]))})
    assert ends(analyse(graph)) == {
        "x.store.D[0]": pytest.approx(77 + TWO - 25),
        "y.store.D[0]": pytest.approx(77 + THREE - 25),
        "end.D[0]": pytest.approx(77 + THREE - 25)}


def test_a_port_is_of_the_top():
    graph = join({"inner": inner(), "top": netlist(
        {"x": cell("inner", {"clk": [2], "i": [10]}, {"q": [11]}), "end": ff(2, 11, 13)},
        clk=("input", [2]), bus=("input", [9, 10]))})
    path = worst_paths(analyse(graph), 1000, 9, source=lambda unit, signal: f"{unit}/{signal}")[0]
    assert [(hop.cell, hop.signal, hop.source) for hop in path.hops] == [
        ("bus", "bus[1]", "top/bus"), ("x.store", "x.kept", "inner/kept")]
    assert (path.start, path.start_kind) == ("bus", "port")


def test_a_unit_that_only_passes_a_net_on():
    """Its two ports are one net, which has one delay; the same holds for two outputs with one
    driver."""
    graph = join({"wire": netlist({}, i=("input", [2]), o=("output", [2])), "top": netlist(
        {"a": ff(2, "0", 10), "w": cell("wire", {"i": [10]}, {"o": [11]}), "b": ff(2, 11, 12),
         "c": ff(2, 10, 13)}, clk=("input", [2]))})
    end = pytest.approx(77 + TWO - 25)
    assert ends(analyse(graph)) == {"b.D[0]": end, "c.D[0]": end}


def test_a_constant_from_and_into_a_unit_ends_a_path():
    """One unit's output is constant; so are the input of the other unit, and its open port."""
    graph = join({
        "one": netlist({}, o=("output", ["1"])),
        "inner": inner(),
        "top": netlist(
            {"k": cell("one", {}, {"o": [10]}), "a": ff(2, "0", 11), "and": lut(12, 10, 11),
             "b": ff(2, 12, 13), "m": cell("inner", {"clk": [2], "i": ["x"]}, {"q": [14]}),
             "c": ff(2, 14, 15)}, clk=("input", [2]))})
    assert ends(analyse(graph)) == {"b.D[0]": 77 + 370 + 35 + 50 - 25, "c.D[0]": 77 + 370 - 25}

"""The worst paths: hops, names, order; delays as in test_propagate."""

import pytest

from gen.timing.cells import Inner, timing_of
from gen.timing.paths import Hop, worst_paths
from tests.gen.mapped import cell, netlist
from tests.gen.timing.circuits import PESSIMISTIC, analyse, ff, join, lut

CLOCK = {"clk": ("input", [2])}


def counter():
    """Return two bits of a register and a register that follows them, then a port."""
    return join({"top": netlist(
        {"low": ff(2, 20, 10), "high": ff(2, "0", 11), "after": ff(2, 11, 12),
         "not": lut(21, 10), "next": lut(20, 21)},
        {"count": [10, 11], "sub.after": [12], "$abc$1": [21]}, **CLOCK,
        o=("output", [12]))})


def test_the_worst_path_and_its_hops():
    path, *others = worst_paths(analyse(counter()), 500, 9,
                                source=lambda unit, signal: f"{unit}/{signal}:1")
    assert path.hops == (
        Hop("low", "FDRE", "", "Q", 77, 370, 1, "count[0]", "top/count:1"),
        Hop("not", "LUT1", "I0", "O", 35, 370, 1, "$abc$1", "top/$abc$1:1"),
        Hop("next", "LUT1", "I0", "O", 35, 50, 1, "next", "top/:1"),
        Hop("low", "FDRE", "D", "", -25, 0, 0, "count", "top/count:1"))
    assert (path.ps, path.slack, path.luts) == (912, -412, 2)
    assert path.ps == sum(hop.cell_ps + hop.net_ps for hop in path.hops)
    assert (path.start, path.end, path.capture) == ("count", "count", "data")
    assert [(p.start, p.end, p.start_kind, p.end_kind, p.ps) for p in others] == [
        ("sub.after", "o", "ff", "port", 422), ("count", "sub.after", "ff", "ff", 422)]


def test_one_path_for_each_end_or_each_register():
    graph = join({"top": netlist(
        {"a": ff(2, 11, 10), "b": ff(2, 10, 11, enable=10)}, {"pair": [10, 11]}, **CLOCK)})
    every = worst_paths(analyse(graph), 1000, 9)
    assert [(p.end, p.capture, p.hops[-1].cell) for p in every] == [
        ("pair", "enable", "b"), ("pair", "data", "b"), ("pair", "data", "a")]
    assert worst_paths(analyse(graph), 1000, 9, per_register=True) == every[:2]
    assert worst_paths(analyse(graph), 1000, 1) == every[:1]


def test_a_bus_names_its_pins():
    dsp = cell("DSP48E2", {"CLK": [2], "A": [10, 11], "B": ["0"] * 18}, {"P": [12, 13]})
    dsp["parameters"] = {name: "0" * 32 for name in ("AREG", "BREG", "MREG", "PREG", "ACASCREG",
                                                     "BCASCREG")}
    graph = join({"top": netlist(
        {"a": ff(2, "0", 11), "dsp": dsp, "b": ff(2, 13, 14)}, {"product": [12, 13]}, **CLOCK)})
    path = worst_paths(analyse(graph), 1000, 1)[0]
    assert [(hop.entry, hop.exit, hop.signal) for hop in path.hops] == [
        ("", "Q", "a"), ("A[1]", "P[1]", "product[1]"), ("D", "", "b")]


def test_a_path_inside_a_cell_is_a_path():
    """The path is bounded by the cell itself, with its inner nets in the case's delay; no input
    arrives.

    1,024 words of 1 bit in LUTRAM with a register: 16 banks, two levels of LUTs.
    """
    ram = cell("ember_ram", {"clk": [2], "read_en": ["1"], "read_addr": ["0"] * 10,
                             "write_en": ["0"], "write_addr": ["0"] * 10, "write_data": ["0"]},
               {"read_data": [10]})
    ram["parameters"] = {"WIDTH": f"{1:b}", "DEPTH": f"{1024:b}", "ADDR_BITS": f"{10:b}",
                         "STYLE": "distributed"}
    timing = timing_of("ember_ram", ram["parameters"], {"read_addr": 10, "read_data": 1})
    # Clock to LUTRAM's output, two nets, two LUTs (the slowest of four pins), wire and setup.
    assert timing.inner == (Inner(312 + 100 + 100 + 50 - 25, 2),)
    graph = join({"top": netlist({"ram": ram}, {"word": [10]}, **CLOCK)})
    path, = worst_paths(analyse(graph, PESSIMISTIC), 2000, 9)
    assert (path.ps, path.slack) == (537 + 2 * 640, 2000 - 537 - 2 * 640)
    assert (path.start, path.end, path.capture, path.start_kind) == ("word", "word", "inner",
                                                                     "lutram")


def test_a_register_is_preferred_for_a_name():
    """A net has the names of all ports that it passes."""
    graph = join({"top": netlist({"a": ff(2, "0", 10), "b": ff(2, 10, 11)},
                                 {"block.item": [10], "a.store": [10], "end": [11]}, **CLOCK)},
                 registers={"a.store"})
    assert worst_paths(analyse(graph), 1000, 1)[0].start == "a.store"


@pytest.mark.parametrize("count", [0, 1])
def test_no_path(count):
    graph = join({"top": netlist({"a": ff(2, "0", 10)}, **CLOCK)})
    assert worst_paths(analyse(graph), 1000, count) == []

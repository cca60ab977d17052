"""One-cycle loops, by hand; delays as in test_propagate."""

from math import sqrt

import pytest

from gen.timing.loops import worst_loops
from tests.gen.mapped import cell, netlist
from tests.gen.timing.circuits import analyse, ff, join, lut


def test_loops_of_registers_are_found_and_named():
    """``state``: bit 1 to bit 0 through two LUTs. ``on`` enables itself. ``ping`` and ``pong`` take
    two cycles. ``deep`` follows three LUTs, and is not a loop."""
    graph = join({"top": netlist(
        {"s0": ff(2, 31, 10), "s1": ff(2, 10, 11), "x": lut(30, 11), "y": lut(31, 30),
         "on": ff(2, "1", 12, enable=32), "z": lut(32, 12),
         "ping": ff(2, 14, 13), "pong": ff(2, 13, 14),
         "p": lut(33, 11), "q": lut(34, 33), "r": lut(35, 34), "deep": ff(2, 35, 15)},
        {"state": [10, 11], "on": [12], "ping": [13], "pong": [14], "deep": [15]},
        clk=("input", [2]))})
    two = 350 + 20 * sqrt(2)
    state, on = worst_loops(analyse(graph), 1000, 9)
    assert (state.start, state.end, state.capture) == ("state", "state", "data")
    assert [hop.cell for hop in state.hops] == ["s1", "x", "y", "s0"]
    assert state.ps == pytest.approx(77 + two + 35 + 370 + 35 + 50 - 25)
    assert (on.end, on.capture, on.ps) == ("on", "enable", 77 + 370 + 35 + 370 + 61)
    assert worst_loops(analyse(graph), 1000, 1) == [state]


def test_a_loop_counts_its_own_way_alone():
    """A later signal enters from outside: its path is longer than the loop. The LUT's pins stay as
    the latest input chose them: the loop has the second pin."""
    graph = join({"top": netlist(
        {"far": ff(2, "0", 9), "a": lut(20, 9), "b": lut(21, 20), "near": ff(2, 22, 10),
         "both": lut(22, 21, 10)}, {"near": [10]}, clk=("input", [2]))})
    arrived = analyse(graph)
    assert arrived.ends.max() == 77 + 370 + 35 + 370 + 35 + 370 + 35 + 50 - 25
    loop, = worst_loops(arrived, 1000, 9)
    assert loop.ps == 77 + 370 + 50 + 50 - 25


def test_loops_may_share_logic():
    """``a`` and ``b`` enter one LUT, which both follow: each has a loop of its own through it."""
    graph = join({"top": netlist(
        {"fa": ff(2, 31, 10), "fb": ff(2, 33, 11), "both": lut(30, 10, 11), "x": lut(31, 30),
         "y": lut(32, 30), "z": lut(33, 32)}, {"a": [10], "b": [11]}, clk=("input", [2]))})
    two = 350 + 20 * sqrt(2)
    b, a = worst_loops(analyse(graph), 1000, 9)
    assert ([hop.cell for hop in b.hops], [hop.cell for hop in a.hops]) == (
        ["fb", "both", "y", "z", "fb"], ["fa", "both", "x", "fa"])
    # Both inputs of the first LUT arrive at the same time: one has its fastest pin, one the second.
    assert sorted([b.ps - 370 - 35, a.ps]) == pytest.approx(
        [77 + 370 + pin + two + 35 + 50 - 25 for pin in (35, 50)])


def test_the_slowest_loop_may_not_be_where_the_latest_path_ends():
    """``near`` ends the slowest path, behind four LUTs, and has a loop of one LUT; ``slow`` has a
    loop of two."""
    graph = join({"top": netlist(
        {"far": ff(2, "0", 9), "a": lut(20, 9), "b": lut(21, 20), "c": lut(22, 21),
         "both": lut(23, 22, 10), "near": ff(2, 23, 10),
         "x": lut(30, 11), "y": lut(31, 30), "slow": ff(2, 31, 11)},
        {"near": [10], "slow": [11]}, clk=("input", [2]))})
    loops = [(loop.end, loop.ps) for loop in worst_loops(analyse(graph), 1000, 9)]
    assert loops == [("slow", 77 + 370 + 35 + 370 + 35 + 50 - 25),
                     ("near", 77 + 370 + 50 + 50 - 25)]
    assert [loop.end for loop in worst_loops(analyse(graph), 1000, 1)] == ["slow"]


def test_registers_of_two_instances_are_two():
    inner = netlist({"s": ff(2, 3, 4), "x": lut(5, 4)}, {"s": [4]}, clk=("input", [2]),
                    i=("input", [3]), o=("output", [5]))

    def unit(i, o):
        return cell("inner", {"clk": [2], "i": [i]}, {"o": [o]})

    crossed = join({"inner": inner, "top": netlist({"a": unit(11, 10), "b": unit(10, 11)},
                                                   clk=("input", [2]))})
    assert worst_loops(analyse(crossed), 1000, 9) == []
    own = join({"inner": inner, "top": netlist({"a": unit(10, 10), "b": unit(11, 11)},
                                               clk=("input", [2]))})
    assert sorted(loop.end for loop in worst_loops(analyse(own), 1000, 9)) == ["a.s", "b.s"]

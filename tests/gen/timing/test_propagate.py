"""Arrivals of small circuits, worked out by hand; all in ps.

Flip-flop: clock to Q 77, setup D -25, CE 61, R 72. LUT pins 150, 125, 100, 90, 50, 35. A LUT that
drives a D alone: 50. Net of the middle case: 350 + 20 sqrt(fan-out), so 370 for one load.
"""

from math import inf, sqrt

import numpy as np
import pytest

from gen.timing.levels import levels_of
from gen.timing.propagate import arrivals, clock_of, crossings, required
from tests.gen.mapped import cell, netlist
from tests.gen.timing.circuits import (
    MIDDLE,
    OPTIMISTIC,
    PESSIMISTIC,
    analyse,
    ends,
    ff,
    join,
    lut,
)

CLOCK = {"clk": ("input", [2])}


def two_luts(**ports):
    """Return a register, two LUTs and a register; the first LUT also drives ``side``, if given."""
    return netlist(
        {"a": ff(2, "0", 10), "one": lut(11, 10), "two": lut(12, 11), "b": ff(2, 12, 13)},
        **CLOCK, **ports)


@pytest.mark.parametrize("case, expected", [
    (OPTIMISTIC, 77 + 150 + 35 + 150 + 35 + 50 - 25),
    (MIDDLE, 77 + 370 + 35 + 370 + 35 + 50 - 25),
    (PESSIMISTIC, 77 + 640 + 35 + 640 + 35 + 50 - 25)])
def test_a_chain_of_luts(case, expected):
    assert ends(analyse(join({"top": two_luts()}), case)) == {"b.D[0]": expected}


def test_a_load_more_makes_a_net_slower():
    arrived = analyse(join({"top": two_luts(side=("output", [11]))}))
    net = 350 + 20 * sqrt(2)
    assert ends(arrived) == {
        "b.D[0]": pytest.approx(77 + 370 + 35 + net + 35 + 50 - 25),
        "side.side[0]": pytest.approx(77 + 370 + 35 + net - 25)}


def test_a_lut_that_drives_two_registers_needs_a_net():
    arrived = analyse(join({"top": netlist(
        {"a": ff(2, "0", 10), "one": lut(11, 10), "b": ff(2, 11, 12), "c": ff(2, 11, 13)},
        **CLOCK)}))
    end = pytest.approx(77 + 370 + 35 + 350 + 20 * sqrt(2) - 25)
    assert ends(arrived) == {"b.D[0]": end, "c.D[0]": end}


@pytest.mark.parametrize("order", [(10, 11, 12), (12, 11, 10), (11, 12, 10)])
def test_the_latest_input_gets_the_fastest_pin(order):
    """The inputs come behind a, one and two LUTs; names of pins do not matter."""
    arrived = analyse(join({"top": netlist(
        {"a": ff(2, "0", 9), "x": lut(10, 9), "y": lut(11, 10), "z": lut(12, 9, 10, 11),
         "last": lut(13, *order), "b": ff(2, 13, 14)}, **CLOCK)}))
    # Net 9 drives x and z; 10 drives y, z and last; 11 drives z and last; 12 drives last.
    x = 77 + 350 + 20 * sqrt(2) + 35
    y = x + 350 + 20 * sqrt(3) + 35
    z = max(y + 350 + 20 * sqrt(2) + 35, x + 350 + 20 * sqrt(3) + 50, x - 35 + 90)
    last = max(z + 370 + 35, y + 350 + 20 * sqrt(2) + 50, x + 350 + 20 * sqrt(3) + 90)
    assert ends(arrived) == {"b.D[0]": pytest.approx(last + 50 - 25)}


def test_inputs_that_arrive_together_share_no_pin():
    """Six inputs arrive at once: the last to choose has the slowest pin."""
    cells = {f"a{k}": ff(2, "0", 10 + k) for k in range(6)}
    arrived = analyse(join({"top": netlist(
        {**cells, "six": lut(20, *range(10, 16)), "b": ff(2, 20, 21)}, **CLOCK)}))
    assert ends(arrived) == {"b.D[0]": 77 + 370 + 150 + 50 - 25}


def test_a_constant_ends_a_path():
    """Constants have no arrival: they take the slowest pins, and a LUT of constants has no
    arrival."""
    arrived = analyse(join({"top": netlist(
        {"a": ff(2, "0", 10), "silent": lut(11, "0", "1"), "and": lut(12, "0", 10, 11),
         "b": ff(2, 12, 13), "c": ff(2, 11, 14), "d": ff(2, "x", 15)}, **CLOCK)}))
    assert ends(arrived) == {"b.D[0]": 77 + 370 + 35 + 50 - 25}
    assert list(np.sort(arrived.slacks(1000))) == [1000 - 507, inf]


def test_enable_and_reset_have_their_own_setup():
    arrived = analyse(join({"top": netlist(
        {"a": ff(2, "0", 10), "b": ff(2, "0", 11), "c": ff(2, "0", 12, enable=10, reset=11)},
        **CLOCK)}))
    assert ends(arrived) == {"c.CE[0]": 77 + 370 + 61, "c.R[0]": 77 + 370 + 72}


def test_ports_stand_for_registers_of_the_neighbours():
    arrived = analyse(join({"top": netlist(
        {"one": lut(10, 3), "a": ff(2, 10, 11)}, **CLOCK,
        i=("input", [3]), q=("output", [11]), through=("output", [3]))}))
    two = 350 + 20 * sqrt(2)
    assert ends(arrived) == {
        "a.D[0]": pytest.approx(77 + two + 35 + 50 - 25), "q.q[0]": 77 + 370 - 25,
        "through.through[0]": pytest.approx(77 + two - 25)}
    starts = arrived.graph.launches.cells[arrived.end_starts]
    assert sorted(arrived.graph.kinds_of(starts)) == ["ff", "port", "port"]


def test_a_design_with_ports_only():
    graph = join({"top": netlist({}, i=("input", [2, 3]), o=("output", [3, "1"]))})
    arrived = arrivals(levels_of(graph), MIDDLE, -2)
    assert ends(arrived) == {"o.o[0]": 77 + 370 - 25}


def test_what_is_not_connected_has_no_timing():
    """Test an input without a net, and an output that Yosys leaves as x or omits."""
    cells = {"a": cell("FDRE", {"C": [2], "D": [10]}, {"Q": [10]}),
             "c": cell("CARRY4", {"CI": ["0"], "CYINIT": ["0"], "S": [10, "x", "x", "x"],
                                  "DI": ["0"] * 4}, {"CO": ["x"] * 4, "O": [11, "x", "x", "x"]}),
             "b": ff(2, 11, 12)}
    two = 350 + 20 * sqrt(2)
    # S[0] to O[0]: 15 in the slice and 65; O to D alone: 25.
    assert ends(analyse(join({"top": netlist(cells, **CLOCK)}))) == {
        "a.D[0]": pytest.approx(77 + two - 25),
        "b.D[0]": pytest.approx(77 + two + 15 + 65 + 25 - 25)}


def test_an_inverter_is_part_of_what_it_drives():
    cells = {"a": ff(2, "0", 10), "not": cell("INV", {"I": [10]}, {"O": [11]}),
             "b": ff(2, 11, 12), "c": ff(2, 10, 13)}
    graph = join({"top": netlist(cells, **CLOCK)})
    end = pytest.approx(77 + 350 + 20 * sqrt(2) - 25)
    assert ends(analyse(graph)) == {"b.D[0]": end, "c.D[0]": end}


def test_memories_load_a_net_with_their_primitives():
    """128 words of 8 bits in LUTRAM are 2 x 2 RAM64M8, and 8 LUTs that each select one of two.

    The data reach both banks. A word leaves after 312, a net of 370, and the slower of a LUT's two
    data pins, 50.
    """
    ram = cell("ember_ram_async", {
        "clk": [2], "write_en": ["0"], "write_addr": ["0"] * 7, "write_data": [10] + ["0"] * 7,
        "read_addr": ["0"] * 7}, {"read_data": list(range(20, 28))})
    ram["parameters"] = {"WIDTH": f"{8:032b}", "DEPTH": f"{128:032b}", "ADDR_BITS": f"{7:032b}",
                         "STYLE": "distributed"}
    graph = join({"top": netlist({"a": ff(2, "0", 10), "ram": ram, "b": ff(2, 20, 30)}, **CLOCK)})
    assert ends(analyse(graph)) == {
        "ram.write_data[0]": pytest.approx(77 + 350 + 20 * sqrt(2) + 69),
        "b.D[0]": 312 + 370 + 50 + 370 - 25}


@pytest.mark.parametrize("case, address", [(OPTIMISTIC, 0), (MIDDLE, 77 + 370 + 35)])
def test_a_word_changes_with_the_address_or_when_it_is_written(case, address):
    """In a LUTRAM of 64 words, bit 5 of the address takes 35 to the word, the clock takes 312; in
    the first case of nets the address, 77 + 150 + 35, is earlier."""
    ram = cell("ember_ram_async", {
        "clk": [2], "write_en": ["0"], "write_addr": ["0"] * 6, "write_data": ["0"],
        "read_addr": [*["0"] * 5, 10]}, {"read_data": [20]})
    ram["parameters"] = {"WIDTH": "1", "DEPTH": "1000000", "ADDR_BITS": "110",
                         "STYLE": "distributed"}
    graph = join({"top": netlist({"a": ff(2, "0", 10), "ram": ram, "b": ff(2, 20, 30)}, **CLOCK)})
    arrived = analyse(graph, case)
    assert ends(arrived) == {"b.D[0]": max(address, 312) + float(case.delay(1)) - 25}
    start = graph.launches.cells[arrived.end_starts[np.isfinite(arrived.ends)]]
    assert graph.kinds_of(start) == ["ff" if address else "lutram"]


def test_a_clock_that_leaves_by_a_port_is_no_path():
    graph = join({"top": netlist({"a": ff(2, "0", 10)}, **CLOCK, clk_out=("output", [2]))})
    assert ends(analyse(graph)) == {}


def test_required_times_meet_the_slacks():
    arrived = analyse(join({"top": two_luts(side=("output", [11]))}))
    graph = arrived.graph
    latest = required(arrived, 1000)
    times = {graph.net_name(net): latest[net] for net in range(graph.count)}
    net = 350 + 20 * sqrt(2)
    assert times["two"] == pytest.approx(1000 + 25 - 50)
    assert times["one"] == pytest.approx(1000 + 25 - 50 - 35 - net)
    assert times["a"] == pytest.approx(1000 + 25 - 50 - 35 - net - 35 - 370)
    assert times["b"] == inf
    # The slack is the same all along the worst path.
    assert times["a"] - 77 == pytest.approx(arrived.slacks(1000).min())


def test_paths_between_clocks_are_left_out_and_counted():
    graph = join({"top": netlist(
        {"a": ff(2, "0", 10), "b": ff(3, "0", 11), "both": lut(12, 10, 11), "c": ff(2, 12, 13),
         "d": ff(3, 10, 14)}, **CLOCK, other=("input", [3]))})
    two = 350 + 20 * sqrt(2)
    assert ends(analyse(graph)) == {"c.D[0]": pytest.approx(77 + two + 35 + 50 - 25)}
    levels = levels_of(graph)
    assert crossings(levels, clock_of(graph, "clk")) == 1
    assert crossings(levels, clock_of(graph, "other")) == 1


def test_a_clock_is_a_port_of_registers():
    graph = join({"top": two_luts(i=("input", [3]))})
    for port in ("i", "none"):
        with pytest.raises(ValueError, match=f"clock must be a port at a register's clock, "
                                             f"not '{port}'"):
            clock_of(graph, port)


def test_a_loop_of_logic_is_refused():
    graph = join({"top": netlist(
        {"x": lut(10, 11, 13), "y": lut(11, 10), "behind": lut(12, 11), "a": ff(2, 12, 13)},
        **CLOCK)})
    with pytest.raises(ValueError) as error:
        levels_of(graph)
    assert str(error.value) == "logic must have no loop without a register: x, y"


def test_a_net_has_one_driver():
    with pytest.raises(ValueError, match="net shared must have one driver"):
        join({"top": netlist({"a": ff(2, "0", 10), "b": ff(2, "0", 10)}, {"shared": [10]},
                             **CLOCK)})

"""The worst path through each block, worked out by hand; delays as in test_propagate."""

from math import sqrt
from random import Random

import pytest

from gen.timing.boundary import registers_only
from gen.timing.inside import inside_blocks, worst_inside
from gen.timing.nets import CASES
from gen.timing.through import blocks_of_cells, worst_by_block
from tests.gen.mapped import cell, netlist
from tests.gen.timing.circuits import OPTIMISTIC, analyse, ff, join, lut
from tests.gen.timing.test_random import random_cells

TWO = 350 + 20 * sqrt(2)
CLOCK = {"clk": ("input", [2])}


def inner():
    """Return a LUT between ports; its input also drives a register, whose output leaves."""
    return netlist({"lut": lut(4, 3), "store": ff(2, 3, 5)}, {"kept": [5]}, clk=("input", [2]),
                   i=("input", [3]), o=("output", [4]), q=("output", [5]))


def around(**cells):
    """Return a circuit in which ``a`` drives a unit, whose outputs are nets 11, behind its LUT, and
    12."""
    return join({"inner": inner(), "top": netlist(
        {"a": ff(2, "0", 10), "u": cell("inner", {"clk": [2], "i": [10]}, {"o": [11], "q": [12]}),
         **cells}, **CLOCK)})


def found(graph, case=CASES[1]):
    """Return delay, start and end by block."""
    return {unit: (pytest.approx(path.ps), graph.cell_name(path.first), graph.cell_name(path.last))
            for unit, path in worst_by_block(analyse(graph, case)).items()}


def test_a_path_is_that_of_every_block_on_its_way():
    graph = around(b=ff(2, 11, 13), c=ff(2, 12, 14))
    # Clock to output, a net with two loads, the LUT, the wire to the flip-flop, setup.
    path = (77 + TWO + 35 + 50 - 25, "a", "b")
    assert found(graph) == {"top": path, "inner": path}


def test_a_block_has_its_own_worst_path():
    graph = around(b=ff(2, 11, 13), c=ff(2, 12, 14), one=lut(20, 13), two=lut(21, 20),
                   d=ff(2, 21, 22))
    assert found(graph) == {
        "top": (77 + 370 + 35 + 370 + 35 + 50 - 25, "b", "d"),
        "inner": (77 + TWO + 35 + 50 - 25, "a", "b")}


def test_it_may_be_another_than_the_worst_path_to_its_end():
    """The last LUT's other input arrives later, and gets the faster pin."""
    graph = around(f=ff(2, "0", 30), one=lut(32, 30), two=lut(31, 32), three=lut(20, 11, 31),
                   e=ff(2, 20, 21))
    assert found(graph) == {
        "top": (77 + 370 + 35 + 370 + 35 + 370 + 35 + 50 - 25, "f", "e"),
        "inner": (77 + TWO + 35 + 370 + 50 + 50 - 25, "a", "e")}


def test_an_end_alone_belongs_to_its_block():
    graph = join({
        "inner": netlist({"store": ff(2, 3, 5)}, clk=("input", [2]), i=("input", [3])),
        "top": netlist({"a": ff(2, "0", 10), "lut": lut(11, 10),
                        "u": cell("inner", {"clk": [2], "i": [11]}, {})}, **CLOCK)})
    path = (77 + 370 + 35 + 50 - 25, "a", "u.store")
    assert found(graph) == {"top": path, "inner": path}


def test_the_worst_of_several_instances_counts():
    unit = {"clk": [2], "i": [10]}
    graph = join({"inner": inner(), "top": netlist(
        {"a": ff(2, "0", 10), "u": cell("inner", unit, {"o": [11], "q": [12]}),
         "v": cell("inner", unit, {"o": [13], "q": [14]}), "b": ff(2, 11, 15), "c": ff(2, 13, 16),
         "d": ff(2, 13, 17)}, **CLOCK)})
    # Net 10 has four loads. Net 13 has two, and therefore leaves the slice.
    assert found(graph)["inner"] == (77 + 350 + 20 * 2 + 35 + TWO - 25, "a", "c")


def test_a_path_inside_a_cell_is_one_of_its_block():
    """Use 1,024 words of 1 bit in LUTRAM with a register, as in test_paths."""
    ram = cell("ember_ram", {"clk": [2], "read_en": ["1"], "read_addr": ["0"] * 10,
                             "write_en": ["0"], "write_addr": ["0"] * 10, "write_data": ["0"]},
               {"read_data": [10]})
    ram["parameters"] = {"WIDTH": f"{1:b}", "DEPTH": f"{1024:b}", "ADDR_BITS": f"{10:b}",
                         "STYLE": "distributed"}
    graph = join({"top": netlist({"ram": ram}, {"word": [10]}, **CLOCK)})
    assert found(graph, OPTIMISTIC) == {"top": (537 + 2 * 150, "ram", "ram")}


def test_a_block_without_a_path_is_left_out():
    graph = join({"inner": netlist({"lut": lut(4, 3)}, i=("input", [3]), o=("output", [4])),
                  "top": netlist({"u": cell("inner", {"i": ["0"]}, {"o": [11]}),
                                  "a": ff(2, 11, 12), "b": ff(2, 12, 13)}, **CLOCK)})
    assert found(graph) == {"top": (77 + 370 - 25, "a", "b")}
    units, blocks = blocks_of_cells(graph)
    assert units == ("top", "inner") and sorted(blocks) == [0, 0, 0, 1]


def inside(graph):
    arrived = analyse(inside_blocks(registers_only(graph)))
    return {unit: pytest.approx(ps) for unit, ps in worst_inside(arrived).items()}


def test_paths_that_stay_in_a_block():
    """Paths into and out of the unit are left out; their loads still count."""
    graph = around(b=ff(2, 11, 13), c=ff(2, 12, 14))
    assert inside(graph) == {}
    graph = around(b=ff(2, 11, 13), c=ff(2, 10, 14), one=lut(20, 11, 13), d=ff(2, 20, 21))
    # Net 10 has three loads, one of them here. The LUT's other input comes from the unit.
    assert inside(graph) == {"top": max(77 + 350 + 20 * sqrt(3) - 25, 77 + 370 + 35 + 50 - 25)}
    assert worst_by_block(analyse(graph))["top"].ps > 77 + 370 + 35 + 50 - 25


@pytest.mark.parametrize("seed", range(20))
def test_all_paths_of_a_design_of_one_block_stay_in_it(seed):
    graph = registers_only(join({"top": netlist(random_cells(Random(seed)), clk=("input", [2]), **{
        f"i{net}": ("input", [net]) for net in (3, 4, 5)})}))
    worst = {unit: path.ps for unit, path in worst_by_block(analyse(graph)).items()}
    # A port's cell belongs to the top, too; signals from it never arrive.
    assert inside(graph) == worst


@pytest.mark.parametrize("seed", range(20))
def test_the_worst_of_all_blocks_is_the_worst_of_all_ends(seed):
    graph = join({"top": netlist(random_cells(Random(seed)), clk=("input", [2]),
                                 **{f"i{net}": ("input", [net]) for net in (3, 4, 5)})})
    for part in (graph, registers_only(graph)):
        arrived = analyse(part)
        worst = float(arrived.ends.max(initial=-1))
        assert worst_by_block(arrived)["top"].ps == pytest.approx(worst) if worst > 0 else True

"""Paths of ports apart from paths between registers, classes of ends, nets with many loads."""

from math import sqrt

import numpy as np
import pytest

from gen.timing.boundary import from_ports, into_ports, registers_only
from gen.timing.cells import KINDS
from gen.timing.classes import end_classes, end_delays
from gen.timing.fan_out import FAN_OUT_BOUND, costly_nets
from gen.timing.loads import NetLoads, most_loaded
from gen.timing.records import failing, histogram, loads_record, mhz, slacks
from tests.gen.mapped import netlist
from tests.gen.timing.circuits import PESSIMISTIC, analyse, ends, ff, join, lut

CLOCK = {"clk": ("input", [2])}


def between():
    """Return a path from a port through a LUT to a register, to another by its enable, to a
    port."""
    return join({"top": netlist(
        {"in": lut(10, 3), "a": ff(2, 10, 11), "b": ff(2, "1", 12, enable=11)}, {"kept": [11]},
        **CLOCK, i=("input", [3]), o=("output", [12]), p=("output", [11]))})


def test_parts_of_the_paths():
    graph = between()
    assert ends(analyse(registers_only(graph))) == {
        "b.CE[0]": pytest.approx(77 + 350 + 20 * sqrt(2) + 61)}
    assert ends(analyse(from_ports(graph))) == {"a.D[0]": 77 + 370 + 35 + 50 - 25}
    assert ends(analyse(into_ports(graph))) == {
        "o.o[0]": 77 + 370 - 25, "p.p[0]": pytest.approx(77 + 350 + 20 * sqrt(2) - 25)}


def test_classes_of_ends():
    graph = between()
    found = {(one.start, one.end, one.pin): one.delays.tolist()
             for part in (registers_only, from_ports, into_ports)
             for one in end_classes(analyse(part(graph)))}
    assert {key: len(delays) for key, delays in found.items()} == {
        ("ff", "ff", "enable"): 1, ("port", "ff", "data"): 1, ("ff", "port", "data"): 2}
    every = end_classes(analyse(graph))
    assert [one.delays.max() for one in every] == sorted(
        (max(delays) for delays in found.values()), reverse=True)
    assert sorted(end_delays(analyse(graph))) == pytest.approx(sorted(
        ps for delays in found.values() for ps in delays))
    assert end_classes(analyse(join({"top": netlist({"a": ff(2, "0", 3)}, **CLOCK)}))) == []


def many(loads, driver):
    """Return a circuit in which ``driver`` makes net 10 of net 9, a register's; ``loads`` registers
    take it."""
    return join({"top": netlist(
        {"first": ff(2, "0", 9), "driver": driver,
         **{f"load{k}": ff(2, 10, 100 + k) for k in range(loads)}},
        {"kept": [10], "wire": [9]}, **CLOCK)})


def costly(graph, period=1000,
           declared=lambda unit, signal: "kept" if (unit, signal) == ("top", "kept") else ""):
    return costly_nets(analyse(registers_only(graph), PESSIMISTIC), period, declared)


def test_nets_whose_loads_cost_the_clock():
    # Up to here no case adds more for the loads than for the distance.
    assert FAN_OUT_BOUND == 225
    assert costly(many(225, ff(2, 9, 10))) == []
    one, = costly(many(226, ff(2, 9, 10)))
    assert one.net == NetLoads("kept", 226, {"data": 226})
    assert (one.driver, one.register) == ("ff", "kept")
    assert one.ps == pytest.approx(77 + 600 + 40 * sqrt(226) - 25)
    assert costly(many(226, ff(2, 9, 10)), period=1300) == []


def test_only_declared_registers_have_a_name_to_constrain():
    one, = costly(many(300, lut(10, 9)))
    assert (one.driver, one.register) == ("lut", "")
    one, = costly(many(300, ff(2, 9, 10)), declared=lambda _unit, _signal: "")
    assert (one.driver, one.register) == ("ff", "")


def test_most_loads_of_a_kind():
    graph = join({"top": netlist(
        {"a": ff(2, "0", 10), "b": ff(2, 10, 11, enable=12), "c": ff(2, 10, 12, enable=12),
         "d": ff(2, 10, 13, enable=12, reset=11)}, {"a": [10], "b": [11], "c": [12]}, **CLOCK)})
    assert [net.name for net in most_loaded(graph, 9)] == ["a", "c", "b"]
    assert most_loaded(graph, 9, "enable") == [NetLoads("c", 3, {"enable": 3})]
    assert most_loaded(graph, 9, "reset") == [NetLoads("b", 1, {"reset": 1})]
    assert loads_record(NetLoads("b", 1, {"reset": 1})) == {
        "net": "b", "loads": 1, "kinds": {kind: int(kind == "reset") for kind in KINDS}}


def test_slack_and_its_histogram():
    assert slacks(4000) == {"250": 0.0, "300": -666.7}
    assert mhz(3344) == 299.0
    assert failing(np.array([4000.0, 4000.1, 3400.0])) == {"250": 1, "300": 3}
    # Bins of 250 ps: slack 0 is in the bin that begins there, a tenth less in the previous bin.
    assert histogram(np.array([4000.0, 4000.1, 3751.0, 3750.0])) == {
        "first_ps": -250, "bin_ps": 250, "ends": [1, 2, 1]}
    assert histogram(np.array([3000.0])) == {"first_ps": 0, "bin_ps": 250,
                                             "ends": [0, 0, 0, 0, 1]}

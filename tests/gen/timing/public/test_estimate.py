"""The estimate of a public design, by hand for a small design, and as recorded for PicoRV32."""

from importlib.metadata import PackageNotFoundError, version

import pytest

from tests.gen.timing.public.designs import read_designs
from tests.gen.timing.public.estimate import estimate
from tests.gen.timing.public.mapping import map_design
from tests.optional import absent


def _cell(kind, inputs, outputs, **parameters):
    return {"type": kind, "parameters": parameters, "connections": {**inputs, **outputs},
            "port_directions": {**dict.fromkeys(inputs, "input"),
                                **dict.fromkeys(outputs, "output")}}


def _register(data, out):
    return _cell("FDRE", {"C": [2], "CE": ["1"], "R": ["0"], "D": [data]}, {"Q": [out]})


def _netlist(*registers):
    """Return two registers into a LUT into a register, whose output is a port."""
    return {
        "ports": {"clk": {"direction": "input", "bits": [2]},
                  "a": {"direction": "input", "bits": [3]},
                  "y": {"direction": "output", "bits": [7]}},
        "cells": {"lut": _cell("LUT2", {"I0": [4], "I1": [5]}, {"O": [6]}, INIT="0001"),
                  **dict(registers)},
        "netnames": {}}


def test_the_clock_is_that_of_the_slowest_path_between_registers():
    netlist = _netlist(("first", _register(3, 4)), ("second", _register(3, 5)),
                       ("third", _register(6, 7)))
    # Out of a register 77, net, the second fastest pin of a LUT 50 (both inputs are equally late),
    # the wire in the slice 50, setup -25. Nets of fan-out 1: 150, 370 and 640.
    assert estimate(netlist, "top", ["clk"]) == pytest.approx(
        [1e6 / (77 + net + 50 + 50 - 25) for net in (150, 370, 640)])


def test_paths_of_ports_are_no_paths():
    netlist = _netlist(("third", _register(6, 7)))
    with pytest.raises(ValueError, match=r"design 'top' has no path between registers of \('clk',"):
        estimate(netlist, "top", ["clk"])


@pytest.mark.parametrize("design", [design for design in read_designs() if design.package],
                         ids=lambda design: design.name)
def test_the_recorded_estimates_are_of_this_analysis(design):
    try:
        version(design.package.name)
    except PackageNotFoundError:
        pytest.skip(absent(design.package.module))
    # Other versions of Yosys map slightly differently. After a change of the analysis, record all
    # values again.
    assert estimate(map_design(design), design.top, design.clocks) == pytest.approx(
        design.recorded, rel=0.05)

"""`timing_of` finds each type of cell, and names an unknown type."""

import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from gen.timing.cells import KINDS, timing_of

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("kind", ["LATCH", "LUT7", "LUT", "LDCE", "CARRY", "RAMB36E1", "DSP48E1"])
def test_an_unknown_cell_is_named(kind):
    with pytest.raises(ValueError, match=f"^cells of type {kind} have no timing$"):
        timing_of(kind, {}, {})


def test_a_parameter_that_is_no_number_is_named():
    with pytest.raises(ValueError, match=r"^cell of type ember_ram: parameter WIDTH must be a "
                                         "number, not '01x'$"):
        timing_of("ember_ram", {"WIDTH": "01x"}, {})


def test_a_style_that_is_not_known_is_named():
    with pytest.raises(ValueError, match=r"parameter STYLE must be one of auto, distributed, "
                                         "block, ultra, not 'registers'$"):
        timing_of("ember_ram", {"STYLE": "registers"}, {})


@pytest.mark.parametrize("kind", ["INV", "BUF", "BUFG"])
def test_buffers_are_free(kind):
    timing = timing_of(kind, {}, {"I": 1, "O": 1})
    assert timing.kind == "buffer"
    assert [(arc.source, arc.target, arc.ps) for arc in timing.arcs] == [(("I", 0), ("O", 0), 0)]


@pytest.mark.parametrize("kind", ["GND", "VCC", "$scopeinfo"])
def test_constants_have_no_paths(kind):
    timing = timing_of(kind, {}, {})
    assert (timing.kind, timing.arcs, timing.launches, timing.captures) == ("constant", (), (), ())


def test_every_capture_has_a_kind():
    for kind, widths in (("FDRE", {}), ("SRLC32E", {"A": 5}), ("RAM64M8", {"ADDRH": 6, "DIA": 1}),
                         ("RAMB36E2", {"WEA": 4, "ENARDEN": 1, "RSTRAMB": 1}),
                         ("URAM288", {"EN_A": 1, "RST_A": 1, "BWE_B": 9}),
                         ("DSP48E2", {"A": 30, "OPMODE": 9, "CEP": 1, "RSTP": 1})):
        captures = timing_of(kind, {}, widths).captures
        assert captures and {capture.kind for capture in captures} <= set(KINDS)


def test_the_table_of_delays_is_installed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["gen"]
    assert any(fnmatch("timing/delays.toml", pattern) for pattern in patterns)

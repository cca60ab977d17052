"""Sharing of modules' code: which modules are shared, and the Verilog that results."""

import re

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from gen.base.tools import run_verilator
from gen.verilog.convert import to_verilog
from rtl.shared import Shared
from sim.engines import units
from sim.engines.units import share_units


class Inner(wiring.Component):
    """A register, and an output that depends on an input combinationally."""

    i: In(12)
    plus: In(1)
    o: Out(12)
    now: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.o.eq(self.i + self.plus)
        m.d.comb += self.now.eq(self.i.xor())
        return m


class Chain(wiring.Component):
    """``count`` of ``units`` in series."""

    def __init__(self, make, name, count):
        self._make, self._name, self._count = make, name, count
        super().__init__({"i": In(12), "plus": In(1), "o": Out(12), "now": Out(1)})

    def elaborate(self, platform):
        m = Module()
        value = self.i
        for k in range(self._count):
            m.submodules[f"unit{k}"] = unit = Shared(
                self._make(), self._name, has_reset=True)
            m.d.comb += [unit.i.eq(value), unit.plus.eq(self.plus)]
            value = unit.o
        m.d.comb += [self.o.eq(value), self.now.eq(unit.now)]
        return m


@pytest.fixture(scope="module")
def verilog():
    """Return three of ``outer``, each with two ``inner``."""
    return to_verilog(Chain(lambda: Chain(Inner, "inner", 2), "outer", 3), "top").text


@pytest.mark.parametrize("many, shared", [
    (7, []), (6, ["top_inner"]), (4, ["top_inner"]), (3, ["top_outer"]), (2, ["top_outer"])])
def test_the_outermost_of_many_instances_is_shared(verilog, many, shared, monkeypatch, tmp_path):
    monkeypatch.setattr(units, "MANY", many)
    monkeypatch.setattr(units, "LEAST_BYTES", 0)
    text, names = share_units(verilog, "top")
    assert names == shared
    assert (text == verilog) == (not shared)
    assert text.count("/*verilator no_inline_module*/") == len(shared)
    for name in shared:
        header = re.search(rf"^module {name}\((.*?)\);", text, re.MULTILINE | re.DOTALL)
        assert header
        assert {port.strip() for port in header[1].split(",")} == {"clk", "rst", "o", "now"}
    # Each instantiation assigns both inputs.
    places = {"top_inner": 2, "top_outer": 3}
    assert len(re.findall(r"^  assign \w+\.(?:i|plus)_in\[0\] = ", text, re.MULTILINE)) == sum(
        2 * places[name] for name in shared)
    (tmp_path / "design.v").write_text(text)
    run_verilator(["--lint-only", "-Wall", "-Wno-fatal", "--top-module", "top", "design.v"],
                  cwd=tmp_path)


def test_small_units_are_not_shared(verilog, monkeypatch):
    monkeypatch.setattr(units, "MANY", 6)
    for least, shared in ((0, True), (len(verilog), False)):
        monkeypatch.setattr(units, "LEAST_BYTES", least)
        assert bool(share_units(verilog, "top")[1]) == shared


def test_pins_with_other_names_stay(monkeypatch):
    """Amaranth's names of field ports are not identifiers; the ports are connected as before."""
    monkeypatch.setattr(units, "LEAST_BYTES", 0)
    inner = ("module top_a(clk, \\p$1 , i, o);\n  input clk;\n  wire clk;\n"
             "  input [3:0] \\p$1 ;\n  wire [3:0] \\p$1 ;\n  input i;\n  wire i;\n"
             "  output o;\n  wire o;\n  assign o = i & \\p$1 [0];\nendmodule\n")
    cell = ("  top_a \\u${0}  (\n    .\\p$1 (x),\n    .clk(clk),\n    .i(y[{0}]),\n"
            "    .o(z[{0}])\n  );\n")
    cells = "".join(cell.format(k) for k in range(units.MANY))
    top = f"module top(clk, x, y, z);\n{cells}endmodule\n"
    text, names = share_units(inner + top, "top")
    assert names == ["top_a"]
    assert text.count("    .\\p$1 (x),\n    .clk(clk),\n    .o(z[") == units.MANY
    assert "  assign \\u$5 .i_in[0] = y[5];\n" in text
    assert "module top_a(clk , \\p$1 , o ); " in text
    assert "  wire i_in [0:0];\n  wire i = i_in[0];\n" in text

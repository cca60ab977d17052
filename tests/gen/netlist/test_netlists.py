"""Separately synthesised netlists: blocks of the top, blocks of a large block, shared units."""

import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from gen.netlist import netlists
from gen.netlist.report import report_resources
from gen.verilog.convert import Verilog, to_verilog
from gen.verilog.platform import VerilogPlatform
from rtl.stream import SkidBuffer

BLOCK = ["top__block", "top"]
PARTS = ["top__block__first", "top__block__second", "top__block", "top"]


class Chain(wiring.Component):
    """Two instances of ``part`` in series, with the names ``names``."""

    def __init__(self, part, *names: str):
        self._parts = {name: part() for name in names}
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(8))})

    def elaborate(self, platform) -> Module:
        m = Module()
        before = wiring.flipped(self.i)
        for name, part in self._parts.items():
            m.submodules[name] = part
            wiring.connect(m, before, part.i)
            before = part.o
        wiring.connect(m, before, wiring.flipped(self.o))
        return m


@pytest.fixture(scope="module")
def verilog() -> Verilog:
    def block() -> Chain:
        return Chain(lambda: SkidBuffer(8), "first", "second")

    return to_verilog(Chain(block, "block"), "top", VerilogPlatform("top", sources=True))


@pytest.mark.parametrize("large, units", [(10**6, BLOCK), (1000, PARTS)])
def test_blocks_of_a_large_block_are_units(monkeypatch, verilog, large, units):
    monkeypatch.setattr(netlists, "_LARGE", large)
    assert netlists.units_of(verilog, whole=False) == units
    assert netlists.units_of(verilog, whole=True) == ["top"]


@pytest.mark.thorough
def test_resources_do_not_depend_on_how_it_is_divided(monkeypatch, verilog):
    found = []
    for large in (10**6, 1000):
        monkeypatch.setattr(netlists, "_LARGE", large)
        found.append(report_resources(verilog)["total"]["ff"])
    assert found[0] == found[1] > 2 * 2 * 8

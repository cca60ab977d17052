"""Which blocks get a clock of their own for the simulation, and what makes it tick."""

import re

import pytest
from amaranth.hdl import Fragment, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from gen.generate import build_nic
from gen.tools import run_verilator
from gen.verilog import to_verilog
from rtl.config import preset
from sim.engines import gating
from sim.engines.gating import gate_blocks


class Inner(wiring.Component):
    """An item at a time, with every kind of input that is treated in its own way."""

    i: In(stream.Signature(12))
    step: In(3)
    learning_rate: In(32)
    time: In(32)
    o: Out(12)
    idle: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [self.i.ready.eq(1), self.idle.eq(self.o == 0)]
        with m.If(self.i.valid):
            m.d.sync += self.o.eq(self.i.payload + self.step + self.learning_rate + self.time)
        return m


class Outer(wiring.Component):
    """A block in a block, and the same beside it."""

    def __init__(self, deep):
        self._deep = deep
        super().__init__({**Inner().signature.members, "o2": Out(12)})

    def elaborate(self, platform):
        m = Module()
        names = ("part", "other")
        for number, name in enumerate(names):
            m.submodules[name] = part = Outer(False) if self._deep and not number else Inner()
            m.d.comb += [getattr(part, port).eq(getattr(self, port))
                         for port in ("step", "learning_rate", "time")]
            m.d.comb += [part.i.valid.eq(self.i.valid), part.i.payload.eq(self.i.payload),
                         (self.o2 if number else self.o).eq(part.o)]
        m.d.comb += [self.i.ready.eq(1), self.idle.eq(m.submodules.part.idle
                                                     & m.submodules.other.idle)]
        return m


@pytest.fixture(scope="module")
def verilog():
    return to_verilog(Outer(True), "top").text


def modules(text):
    return {match[1]: match[2] for match in re.finditer(
        r"^module (\w+)\(.*?\);(.*?)^endmodule", text, re.MULTILINE | re.DOTALL)}


def test_only_those_that_are_named_are_changed(verilog, monkeypatch):
    assert gate_blocks(verilog, "top") == verilog
    monkeypatch.setattr(gating, "GATED", ("art", "part__oth", "no"))
    assert gate_blocks(verilog, "top") == verilog
    monkeypatch.setattr(gating, "GATED", ("part",))
    before, after = modules(verilog), modules(gate_blocks(verilog, "top"))
    assert {name for name in before if after[name] != before[name]} == {"top"}
    assert set(after) >= set(before)


def test_each_is_a_block_of_a_nic_that_trains():
    """A path that names none would leave its block on the NIC's clock, and nobody would see it."""
    nic = build_nic(preset("tiny").with_fields(training=True))
    whole = Fragment.get(nic.blocks["training_path"], None)
    for path in gating.GATED:
        first, *names = path.split("__")
        assert first == "training_path"
        fragment = whole
        for name in names:
            inside = {known: part for part, known, _source in fragment.subfragments}
            assert name in inside, path
            fragment = inside[name]


def test_clock_reset_and_inputs(verilog, monkeypatch, tmp_path):
    monkeypatch.setattr(gating, "GATED", ("part", "part__other"))
    text = gate_blocks(verilog, "top")
    for parent, name in (("top", "part"), ("top__part", "other")):
        body = modules(text)[parent]
        cell = re.search(rf"^  top__\w+ {name} \((.*?)^  \);", body, re.MULTILINE | re.DOTALL)
        assert cell
        pins = dict(re.findall(r"\.\\?(\w+) ?\((.*?)\)(?:,|$)", cell[1], re.MULTILINE))
        assert pins["clk"] == f"{name}_clk" and pins["rst"] == "1'h0"
        # Settings do not come straight from the block that drives them, what comes often does.
        assert pins["learning_rate"].startswith(f"{name}_still[") == (parent == "top")
        assert "_still" not in pins["time"] + pins["i__valid"] + pins["i__payload"]
        wake = re.search(rf"^  assign {name}_wake = (.*);", body, re.MULTILINE)
        assert wake
        assert set(wake[1].split(" | ")) == {
            f"~{pins['idle']}", pins["i__valid"], f"{name}_changed"}
    (tmp_path / "design.v").write_text(text)
    run_verilator(["--lint-only", "-Wall", "-Wno-fatal", "--top-module", "top", "design.v"],
                  cwd=tmp_path)

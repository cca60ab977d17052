"""Clock gating: the blocks with a gated clock, and the conditions under which it runs."""

import re

import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from gen.base.tools import run_verilator
from gen.verilog.convert import to_verilog
from gen.verilog.platform import VerilogPlatform
from rtl.config import preset
from rtl.gateable import Gateable
from rtl.nic import SmartNic
from rtl.training import TrainingPath
from sim.engines.gating import gate_blocks
from sim.engines.translate import translated


class Inner(wiring.Component):
    """One item at a time, with an input of each kind that gating treats differently."""

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
    """A block inside a block, and a block beside it."""

    def __init__(self, deep):
        self._deep = deep
        super().__init__({**Inner().signature.members, "o2": Out(12)})

    def elaborate(self, platform):
        m = Module()
        kinds = (GateableOuter(False) if self._deep else Inner(),
                 Inner() if self._deep else GateableInner())
        for number, (name, part) in enumerate(zip(("part", "other"), kinds)):
            m.submodules[name] = part
            m.d.comb += [getattr(part, port).eq(getattr(self, port))
                         for port in ("step", "learning_rate", "time")]
            m.d.comb += [part.i.valid.eq(self.i.valid), part.i.payload.eq(self.i.payload),
                         (self.o2 if number else self.o).eq(part.o)]
        m.d.comb += [self.i.ready.eq(1), self.idle.eq(m.submodules.part.idle
                                                     & m.submodules.other.idle)]
        return m


class GateableInner(Gateable, Inner):
    """Gateable."""


class GateableOuter(Gateable, Outer):
    """Gateable, with a gateable block inside."""


@pytest.fixture(scope="module")
def verilog():
    return to_verilog(Outer(True), "top")


def modules(text):
    return {match[1]: match[2] for match in re.finditer(
        r"^module (\w+)\(.*?\);(.*?)^endmodule", text, re.MULTILINE | re.DOTALL)}


def test_blocks_are_marked_as_gateable(verilog):
    assert sorted(verilog.gateable) == ["top__part", "top__part__other"]
    # A top module has no surrounding module that could make its clock.
    assert to_verilog(GateableInner(), "alone").gateable == ()


def test_gateable_names_are_cached_with_the_verilog(verilog, monkeypatch, tmp_path):
    monkeypatch.setenv("EMBERNIC_CACHE", str(tmp_path))
    for _ in range(2):
        found = translated(Outer(True), "top", "Outer(True)")
        assert (found.text, found.ports) == (verilog.text, verilog.ports)
        assert found.gateable == verilog.gateable


def test_a_gateable_block_must_have_idle():
    class Never(Gateable, wiring.Component):
        o: Out(1)

        def elaborate(self, platform):
            m = Module()
            m.d.sync += self.o.eq(~self.o)
            return m

    class Around(wiring.Component):
        o: Out(1)

        def elaborate(self, platform):
            m = Module()
            m.submodules.never = never = Never()
            m.d.comb += self.o.eq(never.o)
            return m

    with pytest.raises(ValueError, match=r"gateable block top\.never must have a port idle"):
        to_verilog(Around(), "top")


def test_only_the_named_modules_are_changed(verilog):
    text = verilog.text
    assert gate_blocks(text, ()) == gate_blocks(text, ("top__par", "part", "other")) == text
    before, after = modules(text), modules(gate_blocks(text, ("top__part",)))
    assert {name for name in before if after[name] != before[name]} == {"top"}
    assert set(after) > set(before)


@pytest.mark.thorough
def test_gateable_training_blocks():
    """A block without its mark would stay on the NIC's clock without any visible effect."""
    platform = VerilogPlatform("path")
    platform.convert(TrainingPath(preset("tiny").with_fields(training=True)), "path")
    assert sorted(platform.gateable) == [f"path__{name}" for name in (
        "departure", *(f"departure__{kind}_packager" for kind in (
            "report", "state", "state_request", "step")), "global_reducer", "global_reducer__sums",
        "gradient_sender", "local_reducer", "local_reducer__sums", "partial_receiver", "receiver",
        "returned_receiver", "row_updater", "row_updater__optimizer")]


@pytest.mark.thorough
def test_gateable_blocks_of_a_nic():
    platform = VerilogPlatform("nic")
    platform.convert(SmartNic(preset("tiny")), "nic")
    assert sorted(platform.gateable) == [f"nic__{name}" for name in (
        "completion_writer", "dedupe", "delivery", "dense_ring__requests", "host_assembler",
        "index_packager", "interaction", "local_cache", "lookup_check", "lookup_packager",
        "net_assembler", "pooler", "query_checker", "remote_cache", "request_packager",
        "result_frames", "result_packager", "vector_packager")]


def test_clock_reset_and_inputs(verilog, tmp_path):
    text = gate_blocks(verilog.text, verilog.gateable)
    for parent, name in (("top", "part"), ("top__part", "other")):
        body = modules(text)[parent]
        cell = re.search(rf"^  top__\w+ {name} \((.*?)^  \);", body, re.MULTILINE | re.DOTALL)
        assert cell
        pins = dict(re.findall(r"\.\\?(\w+) ?\((.*?)\)(?:,|$)", cell[1], re.MULTILINE))
        assert pins["clk"] == f"{name}_clk" and pins["rst"] == "rst"
        # Settings pass through a copy; inputs that change often come directly from their driver.
        assert pins["learning_rate"].startswith(f"{name}_still[") == (parent == "top")
        assert "_still" not in pins["time"] + pins["i__valid"] + pins["i__payload"]
        wake = re.search(rf"^  assign {name}_wake = (.*);", body, re.MULTILINE)
        assert wake
        assert set(wake[1].split(" | ")) == {
            f"~{pins['idle']}", pins["i__valid"], f"{name}_changed"}
    (tmp_path / "design.v").write_text(text)
    run_verilator(["--lint-only", "-Wall", "-Wno-fatal", "--top-module", "top", "design.v"],
                  cwd=tmp_path)

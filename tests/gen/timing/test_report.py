"""The timing report of a small design: its parts agree, and it states its assumptions."""

import io
import re

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from rich.console import Console

from gen.timing.report import report_timing
from gen.timing.tables import timing_lines, timing_tables
from gen.verilog.convert import Verilog, to_verilog
from gen.verilog.platform import VerilogPlatform
from tests.gen.designs import Bank, Chain, Inner
from tests.gen.timing.reports import small_report

CASES = ("optimistic", "middle", "pessimistic")


def verilog(component: wiring.Component, name: str) -> Verilog:
    return to_verilog(component, name, VerilogPlatform(name, sources=True))


@pytest.fixture(scope="module")
def chain():
    return report_timing(verilog(Chain(), "chain"))


@pytest.mark.thorough
def test_three_cases_and_never_one(chain):
    assert [case["case"] for case in chain["cases"]] == list(CASES)
    ps = [case["ps"] for case in chain["cases"]]
    assert ps[0] < ps[1] < ps[2]
    assert chain["interval_mhz"] == {
        case["case"]: round(1e6 / case["ps"], 1) for case in chain["cases"]}
    for case in chain["cases"]:
        assert case["slack_ps"]["250"] == pytest.approx(4000 - case["ps"], abs=0.1)
        assert case["slack_ps"]["300"] == pytest.approx(1e6 / 300 - case["ps"], abs=0.1)
        assert sum(case["histogram"]["ends"]) == case["ends"] == sum(
            one["ends"] for one in case["classes"]) == 8
        assert max(one["ps"] for one in case["classes"]) == case["ps"]
        assert {(one["from_kind"], one["to_kind"], one["pin"]) for one in case["port_classes"]} \
            >= {("port", "ff", "data"), ("port", "ff", "reset"), ("ff", "port", "data")}


def test_paths_blocks_and_loads(chain):
    worst = chain["cases"][1]["ps"]
    assert chain["paths"][0]["ps"] == worst
    assert (chain["paths"][0]["from"], chain["paths"][0]["to"]) == ("before", "after")
    for path in chain["paths"]:
        assert path["ps"] == pytest.approx(
            sum(hop["cell_ps"] + hop["net_ps"] for hop in path["hops"]),
            abs=0.1 * len(path["hops"]))
        assert path["luts"] == sum(hop["type"].startswith("LUT") for hop in path["hops"])
    blocks = {block["name"]: block for block in chain["blocks"]}
    assert set(blocks) <= {"chain", "chain__U_0", "chain__U_1"} and "chain" in blocks
    for case, place in zip(CASES, range(3)):
        assert max(block[case]["ps"] for block in blocks.values()) == chain["cases"][place]["ps"]
    # The deepest path need not be a slow one.
    assert max(block["luts"] for block in blocks.values()) >= max(
        path["luts"] for path in chain["paths"]) >= 1
    assert blocks["chain"]["middle"]["from"]["signal"] == "before"
    assert blocks["chain"]["middle"]["to"]["source"].startswith("tests/gen/designs.py:")
    assert chain["nets"]["resets"][0]["net"] == "rst"
    assert chain["nets"]["resets"][0]["kinds"]["reset"] == 16
    assert sum(one["flip_flops"] for one in chain["control_sets"]["largest"]) == 16
    assert sum(one["ff"] for one in chain["area"]) == 16
    assert chain["ends_of_other_clocks"] == 0 and chain["costly_nets"]["nets"] == []


@pytest.mark.thorough
def test_memories_are_ends():
    report = report_timing(verilog(Bank(), "bank"), whole=True)
    kinds = {kind for one in report["cases"][0]["classes"] + report["cases"][0]["port_classes"]
             for kind in (one["from_kind"], one["to_kind"])}
    assert {"bram", "lutram", "ff", "port"} <= kinds
    # Three units of nine flip-flops, each with its inner unit, and the memories of the top.
    units = [one for one in report["area"] if one["instance"]]
    assert [(one["instance"], one["ff"], one["bram36"]) for one in units] == [
        (f"unit_{number}.unit", 9, 0) for number in range(3)]
    assert all(one["lut"] >= 16 for one in units)
    assert (report["area"][0]["ff"], report["area"][0]["bram36"]) == (0, 0.5)


class Delay(wiring.Component):
    """A register between ports."""

    def __init__(self):
        super().__init__({"i": In(1), "o": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.d.sync += self.o.eq(self.i)
        return m


@pytest.mark.thorough
@pytest.mark.parametrize("component, text", [
    (Inner, "clock must be a port at a register's clock, not 'clk'"),
    (Delay, "delay has no path between registers")])
def test_what_cannot_be_timed(component, text):
    with pytest.raises(ValueError, match=f"^{text}$"):
        report_timing(verilog(component(), "delay"))


def shown(report, shell="none"):
    console = Console(record=True, width=120, file=io.StringIO())
    for table in timing_tables(report):
        console.print(table)
    for line in timing_lines(report, shell):
        console.print(line, soft_wrap=True)
    return console.export_text()


def test_tables():
    text = shown(small_report("tiny"))
    assert "between 125 and 400 MHz, 200 with middle nets" in text
    assert re.search("part.count: 100 MHz .*300 MHz", text)
    assert re.search(r"^ ?part +2 +125 +200 +400 +6 *$", text, re.MULTILINE)
    assert "control sets: 3; omitted ends of paths between clocks: 4" in text
    assert "not modelled: placement; skew" in text
    assert re.search(r"worst path of a port: .*9,000 ps, port to ff \(reset\)", text)
    assert "for the bare NIC, without shell vitis," in shown(small_report("tiny"), "vitis")


def test_tables_of_a_real_report(chain):
    text = shown(chain)
    assert "chain" in text and "rst" in text and "before" in text

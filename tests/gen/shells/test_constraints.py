"""Every name in a constraint exists in the design, and every clock crossing has a constraint."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from gen.documents.generate import generate
from gen.netlist.fit import SLR
from gen.shells import SHELLS
from rtl.config import preset
from tests.gen.shells.designs import Storing
from tests.gen.shells.netlist import Netlist
from tests.gen.shells.queries import constraints, covers, matches, queries
from tests.gen.timing.reports import report_of

CLOCKS = {"opennic": {"axil_aclk", "axis_aclk", "hbm_aclk"}, "vitis": {"ap_clk"}, "none": {"clk"}}
OF_VIVADO = {"property", "timing_paths", "user_parameters"}
"""Queries without a name of the design."""
OPENNIC_BOX = {
    "NUM_PHYS_FUNC", "NUM_QDMA", "NUM_CMAC_PORT", "USE_PHYS_FUNC", "MAX_PKT_LEN", "mod_rstn",
    "mod_rst_done", "axil_aclk", "axis_aclk", "ref_clk_100mhz",
    *(f"s_axil_{channel}{signal}" for channel, signals in {
        "aw": "valid addr ready", "w": "valid data ready", "b": "valid resp ready",
        "ar": "valid addr ready", "r": "valid data resp ready"}.items()
      for signal in signals.split()),
    *(f"{stream}_{signal}" for stream in (
        "s_axis_qdma_h2c", "m_axis_qdma_c2h", "m_axis_adap_tx_250mhz", "s_axis_adap_rx_250mhz")
      for signal in ("tvalid", "tdata", "tkeep", "tlast", "tuser_size", "tuser_src", "tuser_dst",
                     "tready"))}
"""Parameters and ports of ``box_250mhz`` for the board au280: open-nic-shell 940907f,
``src/box_250mhz/box_250mhz.sv``."""


class Made(NamedTuple):
    """The files of a shell around a small design, and the design as Yosys reads it."""

    shell: str
    folder: Path
    netlist: Netlist

    @property
    def top(self) -> str:
        return "tiny" if self.shell == "none" else f"tiny_{self.shell}"

    def scripts(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in sorted(self.folder.rglob("*"))
                if path.suffix in (".xdc", ".tcl")}


def _report(verilog, _progress):
    """Bound the fan-out of all registers, and assign a die to each block."""
    report = report_of(verilog)
    report["area"][0]["lut"] = 0.7 * SLR["lut"]
    report["area"].append({**report["area"][0], "instance": ""})
    return report


@pytest.fixture(scope="module", params=["none", *sorted(SHELLS)])
def made(request, tmp_path_factory) -> Made:
    root = tmp_path_factory.mktemp(request.param)
    masters = () if request.param == "none" else [("rows", 3, 512)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("gen.timing.report.report_timing", _report)
        generate(preset("tiny"), root / "made", shell=request.param, timing=request.param != "none",
                 build=lambda _config: Storing(masters))
    top = "tiny" if request.param == "none" else f"tiny_{request.param}"
    text = (root / "made" / f"{top}.v").read_text()
    return Made(request.param, root / "made", Netlist(text, top, root))


@pytest.mark.thorough
def test_each_pattern_selects_something(made):
    asked = set()
    for text in made.scripts().values():
        for query in queries(text):
            asked.add(query.kind)
            if query.kind in ("cells", "pins", "ports", "clocks"):
                assert matches(query, made.netlist)
            elif query.kind == "bus_interfaces":
                _check_interfaces(query.patterns, made.netlist)
            elif query.kind in ("pblocks", "ips"):
                created = {"pblocks": r"create_pblock (\S+)",
                           "ips": r"create_ip .*-module_name (\S+)"}[query.kind]
                assert set(query.patterns) <= set(re.findall(created, text))
            else:
                assert query.kind in OF_VIVADO
    assert asked >= {"none": {"ports", "pblocks"}, "vitis": {"cells", "ports", "pblocks"},
                     "opennic": {"cells", "pins", "clocks", "ports", "pblocks", "ips"}}[made.shell]


def test_options_name_ports_and_the_top(made):
    for text in made.scripts().values():
        _check_interfaces(re.findall(r"-busif (\S+)", text), made.netlist)
        assert {*re.findall(r"-(?:clock|reset) (\S+)", text)} <= made.netlist.ports
        assert {*re.findall(r"(?:-ref|-top|set_property top) (\w+)", text)} <= {made.top}


def _check_interfaces(names, netlist):
    assert all(any(port.startswith(f"{name}_") for port in netlist.ports) for name in names)


@pytest.mark.thorough
def test_each_crossing_is_constrained(made):
    assert set(made.netlist.clocks.values()) == CLOCKS[made.shell]
    crossings = list(made.netlist.crossings())
    assert bool(crossings) == (made.shell == "opennic")
    if not crossings:
        return
    all_of_it = constraints((made.folder / f"{made.top}.xdc").read_text())
    bounds = [line for command, line in all_of_it if command != "set_bus_skew"]
    skews = [line for command, line in all_of_it if command == "set_bus_skew"]
    needed = set()
    for crossing in crossings:
        found = [line for line in bounds if covers(line, crossing, made.netlist)]
        assert found, crossing
        if len(found) == 1:
            needed.update(found)
        # All bits of a counter in Gray code arrive within a period.
        if crossing.target.endswith("crossed0_reg") and made.netlist.registers[crossing.target] > 1:
            assert any(covers(line, crossing, made.netlist) for line in skews), crossing
        # A number in a name changes with any signal that is declared earlier.
        assert "$" not in crossing.source + crossing.target
    # Each line about the control bus is necessary: the test fails without it.
    assert {line for line in bounds if "csr_crossing" in line} <= needed
    assert len(skews) == 2 * 5


@pytest.mark.thorough
def test_a_pattern_of_no_register_is_noticed(made):
    for pattern in ("nic/taken_*_reg*", "nic/slave/no_such_block"):
        with pytest.raises(ValueError, match="selects nothing"):
            matches(queries(f"[get_cells {{{pattern}}}]")[0], made.netlist)


@pytest.mark.parametrize("made", ["opennic"], indirect=True)
def test_the_box_has_what_is_connected(made):
    text = (made.folder / "box_250mhz" / "user_plugin_250mhz_inst.vh").read_text()
    text = re.sub(r'//.*|"[^"]*"|\$fatal|\.\w+', "", text)
    names = set(re.findall(r"\b[a-zA-Z_]\w*", text)) - {
        "initial", "begin", "end", "if", "assign", "b1", "tiny_opennic_box", "tiny_opennic_inst"}
    assert names <= OPENNIC_BOX and len(names) > 50

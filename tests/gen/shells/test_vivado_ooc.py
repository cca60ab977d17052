"""The script that implements a design alone in Vivado: its commands and their order."""


import pytest

from gen.documents.generate import generate
from gen.shells.vivado_ooc import not_estimated
from rtl.config import preset
from tests.gen.designs import Bank
from tests.gen.tcl import run_tcl
from tests.optional import needs_tool

pytestmark = needs_tool("tclsh")


@pytest.fixture
def script(tmp_path):
    generate(preset("tiny"), tmp_path / "made", build=lambda config: Bank())
    return tmp_path / "made" / not_estimated("tiny")["script"]


def test_what_vivado_is_asked(script, tmp_path):
    done = run_tcl(script, tmp_path)
    assert done.returncode == 0 and done.stderr == ""
    *calls, said = done.stdout.splitlines()
    reports = script.parent / "tiny.vivado"
    main = [call for call in calls if not call.startswith("get_")]
    assert main[:11] == [
        "create_project -in_memory -part xcu280-fsvh2892-2L-e",
        f"read_verilog -sv {script.parent}/tiny.v", f"read_xdc {reports}/clocks.xdc",
        "auto_detect_xpm",
        "synth_design -top tiny -part xcu280-fsvh2892-2L-e -mode out_of_context "
        "-verilog_define EMBER_XPM",
        "create_pblock pblock_nic", "resize_pblock <get_pblocks> -add SLR1",
        "add_cells_to_pblock <get_pblocks> -top", "opt_design", "place_design", "phys_opt_design"]
    assert main[11] == "route_design"
    after = [call.partition(f" -file {reports}/") for call in main[12:]]
    assert [call for call, _, _ in after] == [
        f"write_checkpoint -force {reports}/tiny.dcp",
        "report_timing_summary -max_paths 20 -report_unconstrained",
        "report_utilization -pblocks <get_pblocks>", "report_utilization -hierarchical",
        "report_design_analysis -timing -max_paths 100",
        "report_design_analysis -logic_level_distribution -logic_level_dist_paths 10000",
        "report_design_analysis -congestion"]
    files = [file for _, _, file in after[1:]]
    assert len(set(files)) == len(files) == 6 and all(file.endswith(".rpt") for file in files)
    assert (reports / "clocks.xdc").read_text() == (
        "create_clock -name clk -period 4.000 [get_ports clk]\n")
    assert (script.parent / "tiny.v").is_file()
    assert said == ("tiny in SLR1: worst setup slack <get_property> ns, <get_property> logic "
                    "levels")
    assert "get_property SLACK <get_timing_paths>" in calls


def test_another_die(script, tmp_path):
    done = run_tcl(script, tmp_path, "SLR2")
    assert done.returncode == 0 and "resize_pblock <get_pblocks> -add SLR2\n" in done.stdout
    done = run_tcl(script, tmp_path, "SLR3")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: DIE must be one of SLR0, SLR1, SLR2, not SLR3\n"

"""Constraints of the shells that follow from a timing report: their contents, and their use."""

import re
import shutil

import pytest

from gen import __main__ as command
from gen.documents.generate import generate
from gen.netlist.fit import SLR
from gen.shells.timing_xdc import dies_xdc, fan_out_xdc
from rtl.config import preset
from tests.gen.shells.designs import Storing
from tests.gen.tcl import run_tcl
from tests.gen.timing.reports import report_of, small_report
from tests.optional import needs_tool

COPIES = "set_property MAX_FANOUT 225 [get_cells {nic/part/$signal$3_reg*}]"
DIE = "set_property USER_SLR_ASSIGNMENT SLR1 [get_cells {nic}]"


def commands(xdc: str) -> list[str]:
    return [line for line in xdc.splitlines() if not line.startswith("#")]


def test_a_register_is_bound_once():
    """All bits of a register are one object in synthesis."""
    xdc = fan_out_xdc("tiny_opennic", small_report("tiny"))
    assert commands(xdc) == [COPIES]
    # The bit with more loads, and the net without a name.
    assert "# 310 loads\nset_property" in xdc and "part.go, 401 loads" in xdc


def test_no_net_is_too_large():
    report = small_report("tiny")
    report["costly_nets"]["nets"] = []
    assert commands(fan_out_xdc("tiny_opennic", report)) == []


def test_one_die_if_the_nic_fits_in_it():
    assert commands(dies_xdc("tiny_opennic", small_report("tiny"))) == [DIE]


@pytest.mark.parametrize("kind", sorted(SLR))
def test_blocks_are_not_divided(kind):
    """Two blocks of 40 and 41 % of a die's resources of one kind are too much for one die."""
    report = small_report("tiny")
    own, one, two = report["area"]
    own[kind], one[kind], two[kind] = 0, 0.4 * SLR[kind], 0.4 * SLR[kind]
    assert commands(dies_xdc("x", report)) == [DIE]
    two[kind] = 0.41 * SLR[kind]
    assert commands(dies_xdc("x", report)) == [
        "set_property USER_SLR_ASSIGNMENT nic_part [get_cells {nic/part}]",
        "set_property USER_SLR_ASSIGNMENT nic_part_2 [get_cells {nic/part_2}]"]
    two[kind] = 0.81 * SLR[kind]
    assert commands(dies_xdc("x", report)) == [
        "set_property USER_SLR_ASSIGNMENT nic_part [get_cells {nic/part}]"]
    assert "# part_2 alone uses more." in dies_xdc("x", report)


@needs_tool("tclsh")
def test_the_constraints_are_tcl(tmp_path):
    """Braces pass ``$`` and ``*`` to Vivado unchanged."""
    report = small_report("tiny")
    for name, xdc in (("fanout", fan_out_xdc("t", report)), ("slr", dies_xdc("t", report))):
        (tmp_path / f"{name}.xdc").write_text(xdc)
    fan_out = run_tcl(tmp_path / "fanout.xdc", tmp_path)
    assert (fan_out.returncode, fan_out.stderr) == (0, "")
    assert fan_out.stdout.splitlines() == [
        "get_cells {nic/part/$signal$3_reg*}", "set_property MAX_FANOUT 225 <get_cells>"]
    dies = run_tcl(tmp_path / "slr.xdc", tmp_path)
    assert (dies.returncode, dies.stderr) == (0, "")
    assert dies.stdout.splitlines() == [
        "get_cells nic", "set_property USER_SLR_ASSIGNMENT SLR1 <get_cells>"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folders of both shells around a small design, with and without timing."""
    root = tmp_path_factory.mktemp("timed")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("gen.timing.report.report_timing", _report)
        for shell in ("opennic", "vitis"):
            for timing in (False, True):
                generate(preset("tiny"), root / f"{shell}-{timing}", shell=shell, timing=timing,
                         build=lambda _config: Storing(()))
    return root


def _report(verilog, progress):
    # The timing is of the bare NIC, whose registers are identified by file and line.
    assert verilog.name == "tiny" and any(
        source for module in verilog.modules.values() for source in module.registers.values())
    return report_of(verilog)


@pytest.mark.thorough
@needs_tool("tclsh")
@pytest.mark.parametrize("shell, files", [
    ("opennic", ["tiny_opennic.fanout.xdc", "tiny_opennic.slr.xdc"]),
    ("vitis", ["tiny_vitis.fanout.xdc"])])
def test_the_shells_scripts_read_them(made, tmp_path, shell, files):
    top = f"tiny_{shell}"
    before, after = ({path.name for path in (made / f"{shell}-{timing}").iterdir()}
                     for timing in (False, True))
    assert after - before == {*files, f"{top}.timing.json"}
    for timing in (False, True):
        readme = (made / f"{shell}-{timing}" / "README.md").read_text()
        assert all((f"`{name}`" in readme) == timing for name in files)
    folder = tmp_path / "made"
    shutil.copytree(made / f"{shell}-True", folder)
    script = {"opennic": "build_box_250mhz.tcl", "vitis": "package_kernel.tcl"}[shell]
    done = run_tcl(folder / script, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    read = re.findall(r"^read_xdc (?:-ref (\w+) )?(\S+)$", done.stdout, re.MULTILINE)
    wanted = {"opennic": [(top, f"{top}.xdc"), *((top, name) for name in files)],
              "vitis": [("", f"{folder}/{files[0]}")]}[shell]
    assert read == wanted
    alone = run_tcl(folder / f"{top}.vivado.tcl", tmp_path)
    assert (alone.returncode, alone.stderr) == (0, "")
    steps = [line.replace(f"{folder}/", "") for line in alone.stdout.splitlines()]
    at = next(k for k, line in enumerate(steps) if line.startswith("synth_design"))
    # Synthesis duplicates registers. Without timing, a pblock keeps the design in the requested
    # die.
    assert f"read_xdc {top}.fanout.xdc" in steps[:at]
    assert not any("slr.xdc" in line for line in steps)


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("gen.timing.report.report_timing", _report)
    monkeypatch.setattr(command, "generate", lambda *arguments, **options: generate(
        *arguments, **options, build=lambda _config: Storing(())))
    assert command.main(["--config", "tiny", "--shell", "opennic", "--timing", "--output",
                         str(tmp_path)]) == 0
    assert "for the bare NIC, without shell opennic" in capsys.readouterr().out
    assert commands((tmp_path / "tiny_opennic.slr.xdc").read_text()) == [DIE]

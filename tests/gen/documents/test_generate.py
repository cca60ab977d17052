"""``python -m gen``: its output files and its error messages."""

import json
import re

import pytest

from gen import __main__ as command
from gen.documents.generate import generate
from rtl.config import POLICY_CODES, preset
from tests.gen.designs import Bank
from tests.gen.timing.reports import small_report


def build(config):
    return Bank(depth=config.local_cache_ways)


def test_files(tmp_path):
    done = generate(preset("tiny"), tmp_path / "new" / "folder", build=build)
    verilog, script, document = (
        tmp_path / "new" / "folder" / f"tiny.{kind}" for kind in ("v", "vivado.tcl", "json"))
    assert done["files"] == [str(verilog), str(script), str(document)]
    assert script.is_file()
    described = json.loads(document.read_text())
    assert described == {key: json.loads(json.dumps(done[key])) for key in described}
    assert described["configuration"]["local_cache_ways"] == 4
    assert described["registers"] == [{"name": "version", "address": 0, "access": "ro", "reset": 1,
                                       "description": "version of the design"}]
    assert {"name": "i__payload", "width": 16, "direction": "input"} in described["ports"]
    assert {"name": "tiny_unit", "instances": 3} in described["modules"]
    assert [m["depth"] for m in described["memories"]] == [4, 4]
    assert "module tiny(" in verilog.read_text()


def test_a_report_says_what_it_leaves_out(tmp_path, monkeypatch):
    monkeypatch.setattr("gen.netlist.report.report_resources",
                        lambda *_, **__: {"total": {"lut": 500_000}})
    done = generate(preset("tiny"), tmp_path, build=build, report=True)
    report = json.loads((tmp_path / "tiny.report.json").read_text())
    assert report == done["report"]
    left = report["not_estimated"]
    assert left["tool"] == "Vivado" and left["what"][:2] == ["timing", "placement"]
    assert str(tmp_path / left["script"]) in done["files"]
    assert done["warnings"] == [
        "the design uses 500,000 LUTs, 115.7% of the 432,000 of an SLR of the U280"]


def test_timing_of_the_bare_nic(tmp_path, monkeypatch):
    """Timing needs the lines of declarations; ports and resources are the same as without it."""
    def report(verilog, progress):
        assert all(module.source for module in verilog.modules.values())
        progress("timing")
        return small_report(verilog.name)

    monkeypatch.setattr("gen.timing.report.report_timing", report)
    lines: list[str] = []
    done = generate(preset("tiny"), tmp_path, build=build, timing=True, progress=lines.append)
    assert done["timing"] == json.loads((tmp_path / "tiny.timing.json").read_text())
    assert done["report"] is None and lines == ["elaborating tiny, about 15 s", "timing"]
    assert {path.name for path in tmp_path.iterdir()} == {
        "tiny.v", "tiny.json", "tiny.vivado.tcl", "tiny.timing.json"}
    generate(preset("tiny"), tmp_path / "without", build=build)
    for name in ("tiny.v", "tiny.json", "tiny.vivado.tcl"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "without" / name).read_bytes()


def test_same_bytes_each_time(tmp_path):
    for folder in ("a", "b"):
        generate(preset("tiny"), tmp_path / folder, build=build)
    for name in ("tiny.v", "tiny.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize("arguments, text", [
    (["--config", "huge"], "config must be one of tiny, .*, not 'huge'"),
    (["--set", "colour=red"], "no such field: colour"),
    (["--set", "nodes=many"], "nodes must be an integer, not 'many'"),
    (["--set", "max_dimension=20"], "max_dimension must be 4, 8 or a multiple of 16, not 20"),
    (["--set", "local_cache_ways=3"], "local_cache_ways must be a power of two, not 3"),
    (["--set", "policy=belady"], f"policy must be one of {', '.join(POLICY_CODES)}, not 'belady'"),
    (["--set", "name=two words"], "name must be an identifier, not 'two words': use 1 to 100 "),
    (["--set", f"name={'x' * 101}"], "name must be an identifier, not 'x*': use 1 to 100 "),
    *((["--set", f"name={name}"], f"name must not be '{name}', which is a module of emitted "
       f"designs: use another name, such as my_{name}$") for name in (
        "ember_ram", "ember_ram_async", "ember_ram_piped", "xpm_memory_sdpram")),
    *((["--set", f"name={name}"], f"name must not be '{name}', which is a keyword of Verilog: ")
      for name in ("module", "logic", "endmodule")),
    (["--colour"], "No such option: --colour")])
def test_bad_usage(tmp_path, capsys, arguments, text):
    assert command.main(["--output", str(tmp_path), *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert len(lines) == 1
    assert re.search(f"^error: {text}", lines[0])


def test_output_is_needed(capsys):
    assert command.main([]) == 2
    assert capsys.readouterr().err == "error: Missing option '--output'.\n"


def test_output_that_cannot_be_written(tmp_path, capsys):
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert command.main(["--config", "tiny", "--output", str(blocked)]) == 2
    assert capsys.readouterr().err == f"error: {blocked}: File exists\n"

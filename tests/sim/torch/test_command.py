"""Command ``sim torch``: output and results of an unedited script, and messages for errors."""

import csv
import json
import signal
import subprocess
import sys

import pandas
import pytest

from tests.optional import absent

pytest.importorskip("torch", reason=absent("torch"))

from sim import api
from sim.cli.main import main
from sim.torch.ends import ProgramError
from sim.torch.values.nics import LookupNics
from tests.sim.shown import complaints

SCRIPT = """
import sys, torch
print(__name__, sys.argv[1:])
bag = torch.nn.EmbeddingBag(100, 16, mode="sum")
for step in range(int(sys.argv[1])):
    out = bag(torch.arange(8) + step, torch.arange(8))
    assert torch.equal(out, bag.weight[torch.arange(8) + step])
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def ended(*arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as end:
        main(["torch", *arguments])
    return end.value.code


@pytest.mark.parametrize("fidelity", ["model", "rtl"])
def test_a_script_runs_as_it_is(script, tmp_path, capsys, fidelity):
    assert ended("--nodes", "2", "--fidelity", fidelity, "--config", "tiny",
                 "--json", str(tmp_path / "out.json"), str(script), "4", "--nodes=7") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("__main__ ['4', '--nodes=7']\n") and "bl-tuned" in shown
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["arguments"] == ["4", "--nodes=7"] and result["options"]["nodes"] == 2
    sums = result["mini_batches"]["inference"]
    cache = sums.pop("local_cache")
    assert result["mini_batches"] == {"inference": {
        "count": 4, "samples": 32, "bags": 32, "lookups": 32, "unique": 32, "bytes": 2048}}
    # Printed counts are sums over mini-batches, and equal the NICs' counters where NICs ran.
    assert cache["mini_batches"] == (4 if fidelity == "rtl" else 2)
    assert f"{cache['hits']} of {cache['accesses']}" in shown
    for name in ("hits", "accesses"):
        assert cache[name] == sum(step[f"local_cache_{name}"] or 0 for step in result["steps"])
        if fidelity == "rtl":
            assert cache[name] == result["nics"]["counts"][f"local_cache.{name}"]
    assert result["tables"] == [{"rows": 100, "dimension": 16, "padding": 0, "node": None,
                                 "place": f"{script}:6"}]
    values = result["values"]
    assert values["bit_identical"] is (True if fidelity == "rtl" else None)
    assert values["against_pytorch"]["one_key"] == {"bags": 32, "equal": 32, "most_ulp": 0}
    assert (result["nics"] is None) == (fidelity == "model")
    assert isinstance(api.frame(result), pandas.DataFrame) and len(api.frame(result)) == 4


def test_json_alone_goes_to_standard_output(script, capsys):
    assert ended("--json", "-", str(script), "2") == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["schema"] == "embernic/torch/1"
    assert shown.err.startswith("__main__ ['2']\n")


def test_the_page_of_a_script(script, tmp_path):
    result = api.torch(script, ["4"], nodes=2, report=tmp_path / "out")
    page = (tmp_path / "out/index.html").read_text()
    rows = result["systems"]["inference"]["rows"]
    assert "script.py on NICs" in page and all(
        f"<td>{row['system']}</td>" in page for row in rows)
    # The verdict, the timed model, and the tables.
    assert f"FS takes {rows[1]['interval_us']:,.0f} us" in page
    assert f"{rows[1]['samples_per_second']:,.0f}</td>" in page
    assert result["systems"]["inference"]["model"].startswith("1 tables of dimension 16, ")
    assert result["systems"]["inference"]["model"] in page and f"{script}:6" in page
    rows = list(csv.DictReader((tmp_path / "out/steps.csv").open()))
    assert [{name: "" if value is None else str(value) for name, value in step.items()}
            for step in result["steps"]] == rows
    cache = result["mini_batches"]["inference"]["local_cache"]
    assert f"{cache['hits']} of {cache['accesses']} keys hit the local caches in 2 mini" in page
    assert page.count('class="plot"') == 1  # the phases


@pytest.mark.parametrize(("options", "said"), [
    (["--system", "EN,FS"], "system must be one of en, fs, bl-tuned, bl-paper, not 'en,fs'"),
    (["--system", "en", "--system", "fs"],
     "system must be one of en, fs, bl-tuned, bl-paper, not 'en,fs'"),
    (["--nodes", "0"], "nodes must be between 1 and 16, not 0"),
    (["--json", "/proc/none/out.json"],
     "json cannot be written: /proc/none/out.json: No such file or directory"),
    (["--json", "/proc/out.json"],
     "json cannot be written: /proc/out.json: No such file or directory"),
    (["--report", "/proc"], "report cannot be written to: /proc: No such file or directory"),
    (["--system", "bl-paper", "--fidelity", "rtl"],
     "system must be one of en, fs with fidelity rtl, not 'bl-paper', which has no NIC"),
    (["--nodes", "17"], "nodes must be between 1 and 16, not 17"),
    (["--optimizer-on", "gpu"], "optimizer_on must be one of host, nic, not 'gpu'"),
    (["--optimizer-on", "nic", "--system", "bl-paper"],
     "system must be one of en, fs with optimizer_on nic, not 'bl-paper', which has no NIC"),
    (["--engine", "icarus"], "engine must be one of verilator, cxxrtl, pysim, not 'icarus'"),
    (["--threads", "0"], "threads must be at least 1, not 0"),
    (["--seed", "-1"], "seed must be at least 0, not -1"),
    (["--set", "colour=red"], None),
    *((["--set", "interaction=true", "--fidelity", fidelity],
       "interaction must be left to the systems, not set to 'true': a system decides whether its "
       "NICs compute it") for fidelity in ("fast", "rtl")),
    # Errors of the timing are reported before the script runs.
    (["--set", "step_timeout=5"], "step_timeout must be 0 with fidelity fast, not 5"),
    (["--set", "row_reads=true"], None),
    (["--report", __file__], f"report must be a folder, not the file {__file__!r}"),
])
def test_options_that_cannot_be(script, tmp_path, capsys, options, said):
    assert ended(*options, str(script), "1") == 2
    shown = complaints(capsys.readouterr().err)
    assert len(shown) == 1 and shown[0].startswith("sim: ")
    assert said is None or shown == [f"sim: {said}"]
    assert list(tmp_path.iterdir()) == [script]


def test_an_output_that_is_the_script(script, capsys):
    assert ended("--json", str(script), str(script), "1") == 2
    assert complaints(capsys.readouterr().err) == [
        f"sim: json must be another file than {str(script)!r}, which is given as script"]
    assert script.read_text() == SCRIPT


@pytest.mark.parametrize(("options", "said"), [
    ({"nodes": "4"}, "nodes must be an integer, not '4'"),
    ({"nodes": True}, "nodes must be an integer, not True"),
    ({"system": ["EN", "FS"]}, r"system must be a text, not \['EN', 'FS'\]"),
    ({"placement": 1}, "placement must be a text, not 1"),
    ({"seed": 1.5}, "seed must be an integer, not 1.5"),
    ({"set": "local_cache=false"},
     "set must be a sequence of field=value, not the text 'local_cache=false'"),
    ({"arguments": "4"}, "arguments must be a sequence of texts, not the text '4'"),
])
def test_options_of_a_wrong_type(script, options, said):
    with pytest.raises(TypeError, match=f"^{said}$"):
        api.torch(script, **options)


@pytest.mark.parametrize("fidelity", ["model", "rtl"])
def test_caches_may_be_off(script, fidelity):
    result = api.torch(script, ["4"], nodes=2, fidelity=fidelity, config="tiny",
                       set=["local_cache=false", "remote_cache=false"])
    rows = result["systems"]["inference"]["rows"]
    assert len(rows) == 4 and {row["hit_rate"] for row in rows} == {None}
    assert {row["saved"] for row in rows} == {0, None}
    assert {step["local_cache_hits"] for step in result["steps"]} == {
        0 if fidelity == "rtl" else None}


def test_a_setting_that_the_program_outgrows_leaves_its_counts(script, tmp_path):
    result = api.torch(script, ["4"], nodes=2, set=["max_dimension=4"], report=tmp_path / "out")
    times = result["systems"]["inference"]
    assert times["rows"] == []
    assert times["why"] == (
        "no system was timed: dimension must be at most 4 for config kaggle, not 16")
    assert times["why"] in (tmp_path / "out/index.html").read_text()
    assert len(result["steps"]) == 4 and f"inference: {times['why']}" in result["notes"]


def test_a_notebook_is_no_script(tmp_path, capsys):
    path = tmp_path / "model.ipynb"
    path.write_text('{"cells": []}')
    assert ended(str(path)) == 2
    assert complaints(capsys.readouterr().err) == [
        f"sim: script must be Python, not the notebook {str(path)!r}: use sim.api.attach in "
        f"a notebook"]


def test_a_script_that_is_not_there_or_looks_nothing_up(tmp_path, capsys):
    assert ended(str(tmp_path / "none.py")) == 2
    assert "does not exist or is not a file" in capsys.readouterr().err
    (tmp_path / "idle.py").write_text("import torch\n")
    assert ended(str(tmp_path / "idle.py")) == 2
    assert complaints(capsys.readouterr().err) == [
        f"sim: {tmp_path / 'idle.py'} must look up bags with torch.nn.EmbeddingBag, but no "
        f"lookup was caught"]


def test_a_script_that_is_a_folder_or_does_not_parse(tmp_path, capsys):
    assert ended(str(tmp_path)) == 2
    assert complaints(capsys.readouterr().err) == [
        f"sim: script {str(tmp_path)!r} does not exist or is not a file"]
    path = tmp_path / "script.py"
    path.write_text("import torch\ndef (\n")
    assert ended("--json", str(tmp_path / "out.json"), str(path)) == 1
    assert capsys.readouterr().err == (
        f'  File "{path}", line 2\n    def (\n        ^\nSyntaxError: invalid syntax\n'
        f"sim: {path} ended with SyntaxError: invalid syntax (script.py, line 2)\n")
    assert json.loads((tmp_path / "out.json").read_text())["ended"] == (
        f"{path} ended with SyntaxError: invalid syntax (script.py, line 2)")


def test_a_script_that_raises_has_a_report_of_what_it_did(tmp_path, capsys):
    path, out = tmp_path / "script.py", tmp_path / "out.json"
    path.write_text(SCRIPT + "raise ValueError('of mine')\n")
    assert ended("--json", str(out), "--report", str(tmp_path / "out"), str(path), "4") == 1
    said = f"{path} ended with ValueError: of mine"
    shown = capsys.readouterr()
    assert complaints(shown.err) == [
        "Traceback (most recent call last):", f'  File "{path}", line 8, in <module>',
        "    raise ValueError('of mine')", "ValueError: of mine", f"sim: {said}"]
    assert said in " ".join(shown.out.split())
    result = json.loads(out.read_text())
    assert result["ended"] == said and result["mini_batches"]["inference"]["count"] == 4
    assert said in (tmp_path / "out/index.html").read_text()


@pytest.mark.parametrize(("name", "fidelity"), [
    ("SIGINT", "fast"), ("SIGTERM", "fast"), ("SIGINT", "rtl")])
def test_a_script_that_is_interrupted(tmp_path, capsys, name, fidelity):
    path, out = tmp_path / "script.py", tmp_path / "out.json"
    path.write_text(SCRIPT + f"import os, signal, time\nos.kill(os.getpid(), signal.{name})\n"
                    "time.sleep(60)\n")
    status = ended("--nodes", "2", "--config", "tiny", "--fidelity", fidelity, "--json", str(out),
                   str(path), "4")
    assert status == 128 + getattr(signal, name)
    assert complaints(capsys.readouterr().err) == [
        f"sim: stopped by {name}; {out} contains the results until then"]
    result = json.loads(out.read_text())
    assert result["ended"] == f"stopped by {name}"
    # The current mini-batch is omitted.
    assert result["mini_batches"]["inference"]["count"] == 3


def test_an_interrupt_while_the_nics_look_up(tmp_path, capsys, monkeypatch):
    def interrupted(*_):
        signal.raise_signal(signal.SIGINT)

    path, out = tmp_path / "script.py", tmp_path / "out.json"
    path.write_text(SCRIPT)
    monkeypatch.setattr(LookupNics, "look_up", interrupted)
    assert ended("--nodes", "2", "--config", "tiny", "--fidelity", "rtl", "--json", str(out),
                 "--report", str(tmp_path / "out"), str(path), "4") == 130
    assert complaints(capsys.readouterr().err) == [
        f"sim: stopped by SIGINT; {out} contains the results until then; {tmp_path / 'out'} "
        f"contains the results until then"]
    assert json.loads(out.read_text())["steps"] == []


def test_a_script_may_catch_an_interrupt(tmp_path, capsys):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT + "import signal\ntry:\n    signal.raise_signal(signal.SIGINT)\n"
                    "except KeyboardInterrupt:\n    print('kept')\n")
    assert ended(str(path), "2") == 0
    assert "kept\n" in capsys.readouterr().out


def test_what_the_script_raises_is_its_own(tmp_path, capsys):
    path = tmp_path / "script.py"
    path.write_text("raise ValueError('of\\nmine')\n")
    assert ended(str(path)) == 1
    shown = capsys.readouterr().err
    assert f'File "{path}", line 1' in shown
    assert shown.endswith(f"sim: {path} ended with ValueError: of mine\n")
    with pytest.raises(ProgramError):
        api.torch(path)


@pytest.mark.parametrize(("end", "status"), [("sys.exit(3)", 3), ("sys.exit()", 0)])
def test_the_exit_status_is_that_of_the_script(tmp_path, end, status):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT + end)
    assert ended(str(path), "2") == status


def test_a_script_that_ends_before_it_looks_up_anything(tmp_path, capsys):
    path = tmp_path / "script.py"
    path.write_text("import sys; sys.exit(3)")
    assert ended("--json", str(tmp_path / "out.json"), str(path)) == 3
    found = json.loads((tmp_path / "out.json").read_text())
    assert (found["exit_status"], found["tables"], found["steps"]) == (3, [], [])


def test_the_files_lie_where_the_command_began_wherever_the_script_goes(tmp_path, monkeypatch):
    path, away = tmp_path / "script.py", tmp_path / "away"
    path.write_text(SCRIPT + f"import os\nos.mkdir({str(away)!r})\nos.chdir({str(away)!r})\n")
    monkeypatch.chdir(tmp_path)
    assert ended("--json", "out.json", "--report", "report", str(path), "2") == 0
    assert json.loads((tmp_path / "out.json").read_text())["ended"] is None
    assert (tmp_path / "report" / "index.html").exists() and not list(away.iterdir())


@pytest.mark.thorough
@pytest.mark.parametrize(("last", "status", "said"), [
    ("", 0, ""), ("print('x')\n", 1, "ended with ValueError: I/O operation on closed file.\n")])
def test_a_script_may_close_its_output(tmp_path, last, status, said):
    path, out = tmp_path / "script.py", tmp_path / "out.json"
    path.write_text(SCRIPT + "import sys\nsys.stdout.close()\n" + last)
    command = [sys.executable, "-m", "sim", "torch", "--json", str(out), str(path), "2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == status and done.stderr.endswith(said) and out.exists()
    assert status or not done.stderr

"""Commands with data from a pipe give the results of the file."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sim.cli.main import main
from tests.sim import inputs

SAMPLES = 20_000
_TRACE = [["run", "--fidelity", "fast", "--config", "tiny", "--nodes", "2", "--mini-batch",
           "2000", "--model", "trace"], ["hitrate", "--sizes", "64", "--model", "trace"]]
_CRITEO = [["hitrate", "--sizes", "64", "--placement", "lookups"], ["datasets", "describe"],
           ["batching", "--mini-batch", "64", "--window", "128", "--samples", "1024"]]


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("files")
    trace = folder / "trace.txt"
    trace.write_text("".join(f"0:{n % 997} 1:{n % 31}\n" for n in range(SAMPLES)))
    return {"trace": trace, "criteo": inputs.criteo(folder / "train.txt", 4000)}


def _piped(path: Path, arguments: list[str]) -> subprocess.CompletedProcess:
    """Run a command in which ``PIPE`` is a pipe with the contents of ``path``."""
    line = " ".join(f"<(cat {path})" if part == "PIPE" else part
                    for part in [sys.executable, "-m", "sim", *arguments])
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False,
                          timeout=120)


def _given(command: list[str], path: str) -> list[str]:
    return [*command, path] if command[0] == "datasets" else [*command, "--data", path]


_OWN = ("wall_seconds", "cpu_seconds", "node_cycles_per_second", "us_per_mini_batch",
        "options", "data", "files")
"""Members with times, or with the file's name."""


def _in_common(result):
    if isinstance(result, dict):
        return {name: _in_common(value) for name, value in result.items() if name not in _OWN}
    return [_in_common(value) for value in result] if isinstance(result, list) else result


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "command"), [
    *(("trace", command) for command in _TRACE), *(("criteo", command) for command in _CRITEO)])
def test_the_same_results(tmp_path, files, kind, command):
    path = files[kind]
    more = ["--format", kind]
    with pytest.raises(SystemExit) as end:
        main([*_given(command, str(path)), *more, "--json", str(tmp_path / "file.json")])
    done = _piped(path, [*_given(command, "PIPE"), *more, "--json", str(tmp_path / "pipe.json")])
    assert (end.value.code, done.returncode, done.stderr) == (0, 0, "")
    results = [json.loads((tmp_path / f"{name}.json").read_text()) for name in ("file", "pipe")]
    assert _in_common(results[0]) == _in_common(results[1])
    if kind == "trace":
        assert results[1]["samples"] == SAMPLES


def test_predictions(tmp_path, files):
    """Training in numpy writes predictions, and takes a second."""
    command = ["train", "--reference", "--epochs", "2", "--samples", "512", "--format",
               "criteo", "--json"]
    with pytest.raises(SystemExit) as end:
        main([*command, str(tmp_path / "file.json"), "--data", str(files["criteo"])])
    done = _piped(files["criteo"], [*command, str(tmp_path / "pipe.json"), "--data", "PIPE"])
    assert (end.value.code, done.returncode, done.stderr) == (0, 0, "")
    results = [json.loads((tmp_path / f"{name}.json").read_text()) for name in ("file", "pipe")]
    assert results[0]["samples"] == results[1]["samples"] == 1024
    assert results[0]["predictions_sha256"] == results[1]["predictions_sha256"] is not None


@pytest.mark.thorough
def test_what_is_read_more_than_once_is_refused(tmp_path, files):
    for command, why in ((["reproduce", "fig06", "--output", str(tmp_path / "new")],
                          " for the points, each of which reads it"),
                         (["run", "--fidelity", "fast"], ", or name the format with --format"),
                         (["run", "--fidelity", "fast", "--format", "trace"],
                          ", or name a model")):
        done = _piped(files["criteo"], _given(command, "PIPE"))
        assert done.returncode == 2 and done.stderr.count("\n") == 1
        assert done.stderr.startswith("sim: /dev/fd/")
        assert done.stderr.endswith(
            f": is a pipe, which can be read only once: write it to a file first{why}\n")
    assert not (tmp_path / "new").exists()


@pytest.mark.thorough
def test_a_mistake_in_a_pipe_has_its_place(tmp_path, files):
    path = tmp_path / "bad"
    path.write_text(files["trace"].read_text() + "0:1 x\n")
    done = _piped(path, ["hitrate", "--data", "PIPE", "--format", "trace", "--model", "trace"])
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert f":{SAMPLES + 1}:5: a key must be table:row, not 'x'" in done.stderr

"""No command writes to a file that it reads, nor two outputs to one file."""

import os
import shutil
from itertools import combinations
from pathlib import Path

import pytest

import host
from gen.base.distinct import same_file
from sim.cli.main import main
from sim.files.outputs import check_apart, check_earlier_results, check_outputs
from tests.sim import inputs

_HOST = Path(host.__file__).parent
_CLUSTER = _HOST / "clusters" / "paper.toml"
_PROFILES = {name: _HOST / "profiles" / f"{file}.toml" for name, file in (
    ("network", "ethernet_100g_switch"), ("gpu", "gpu_rtx8000"), ("pcie", "pcie_gen3x16"))}
_MODEL = 'name = "m"\nrows = [700, 9100]\ndimension = 16\ndense = 1\nbottom = [16]\ntop = [1]\n'

# Outputs with their required suffixes, and the inputs that are files.
COMMANDS = {
    "run": ({"json": "", "predictions": ".csv", "picture": ".png", "pcap": "", "waves": ".vcd"},
            ("data", "model", "cluster", *_PROFILES)),
    "train": ({"json": "", "checkpoint": "", "pcap": "", "waves": ".vcd"},
              ("data", "model", "cluster", *_PROFILES)),
    "hitrate": ({"json": "", "picture": ".png"}, ("data", "model", "cluster")),
    "plan": ({"json": "", "picture": ".png"}, ("data", "model", "cluster", *_PROFILES)),
    "batching": ({"json": ""}, ("data", "model")),
    "datasets describe": ({"json": ""}, ("files",)),
}
_INPUT_PAIRS = [(command, output, given) for command, (outputs, taken) in COMMANDS.items()
                for output in outputs for given in taken]
_OUTPUT_PAIRS = [(command, *pair) for command, (outputs, _) in COMMANDS.items()
                 for pair in combinations(outputs, 2)]


def _arguments(command: str, options: dict[str, str]) -> list[str]:
    return command.split() + [part for name, value in options.items()
                              for part in ([value] if name == "files" else [f"--{name}", value])]


def _refused(capsys, command: str, options: dict[str, str]) -> str:
    with pytest.raises(SystemExit) as end:
        main(_arguments(command, options))
    shown = capsys.readouterr()
    assert end.value.code == 2 and shown.out == ""
    assert shown.err.count("\n") == 1 and shown.err.startswith("sim: ")
    return shown.err


def _input(folder: Path, name: str) -> Path:
    """Create a valid file for the option ``name``."""
    folder.mkdir(exist_ok=True)
    if name in ("data", "files"):
        return inputs.movielens(folder / "in", 20)
    path = folder / f"{name}.toml"
    if name == "model":
        path.write_text(_MODEL)
    else:
        shutil.copy(_CLUSTER if name == "cluster" else _PROFILES[name], path)
    return path


def _symbolic(path: Path, folder: Path, end: str) -> Path:
    link = folder / f"link{end}"
    link.symlink_to(os.path.relpath(path, folder))
    return link


def _hard(path: Path, folder: Path, end: str) -> Path:
    link = folder / f"hard{end}"
    link.hardlink_to(path)
    return link


def _linked_folder(path: Path, folder: Path, end: str) -> Path:
    (folder / "elsewhere").symlink_to(path.parent, target_is_directory=True)
    return _symbolic(path, folder, end) if path.suffix != end else folder / "elsewhere" / path.name


def _opened(path: Path, folder: Path, end: str) -> Path:
    # A name in /proc cannot have a suffix: a link to it has one.
    name = Path(f"/proc/self/fd/{os.open(path, os.O_RDONLY)}")
    return _symbolic(name, folder, end) if end else name


@pytest.mark.parametrize("way", [_symbolic, _hard, _linked_folder, _opened])
@pytest.mark.parametrize(("command", "output", "given"), _INPUT_PAIRS)
def test_no_output_is_an_input(tmp_path, capsys, command, output, given, way):
    path = _input(tmp_path / "in", given)
    before, end = path.read_bytes(), COMMANDS[command][0][output]
    named = way(path, tmp_path, end)
    try:
        error = _refused(capsys, command, {given: str(path), output: str(named)})
    finally:
        if way is _opened:
            os.close(int(os.readlink(named).rsplit("/", 1)[1] if end else named.name))
    assert error == (f"sim: {output} must be another file than {str(path)!r}, which is given as "
                     f"{given}\n")
    assert path.read_bytes() == before


@pytest.mark.parametrize(("command", "first", "second"), _OUTPUT_PAIRS)
@pytest.mark.parametrize("there", [False, True])
def test_no_two_outputs_are_one_file(tmp_path, capsys, command, first, second, there):
    ends = COMMANDS[command][0]
    (tmp_path / "real").mkdir()
    (tmp_path / "folder").symlink_to(tmp_path / "real")
    paths = {}
    for name in (first, second):
        link = tmp_path / "folder" / f"{name}{ends[name]}"
        link.symlink_to(tmp_path / "real" / "out")
        paths[name] = str(link)
    if there:
        (tmp_path / "real" / "out").write_bytes(b"old")
    error = _refused(capsys, command, paths | (
        {"files": "none"} if command.startswith("datasets") else {}))
    assert "must be another file than" in error and "which is given as" in error
    assert (tmp_path / "real" / "out").exists() == there


def test_spellings(tmp_path, capsys, monkeypatch):
    path = _input(tmp_path, "data")
    monkeypatch.chdir(tmp_path)
    before = path.read_bytes()
    for named in ("in", "./in", str(path), "missing/../in"):
        for data in ("in", str(path), f"../{tmp_path.name}/in"):
            error = _refused(capsys, "hitrate", {"data": data, "json": named})
            assert error == (f"sim: json must be another file than {data!r}, which is given as "
                             "data\n")
    assert path.read_bytes() == before
    assert not (tmp_path / "missing").exists()


def test_a_folder_of_samples(tmp_path, capsys):
    days = tmp_path / "days"
    path = _input(days, "data")
    before = path.read_bytes()
    error = _refused(capsys, "hitrate", {"data": str(days), "json": str(path)})
    assert error == f"sim: json must be another file than {str(path)!r}, which is given as data\n"
    # Otherwise the next run would read the file as samples.
    error = _refused(capsys, "hitrate", {"data": str(days), "json": str(days / "new.json")})
    assert error == (f"sim: json must be outside the folder {str(days)!r}, which is given as "
                     "data\n")
    assert sorted(days.iterdir()) == [path] and path.read_bytes() == before
    check_outputs({"json": str(days / "_new.json")}, {"data": str(days)})
    check_outputs({"json": str(days / "results" / "new.json")}, {"data": [str(days)]})


def test_a_profile_that_a_cluster_names(tmp_path, capsys):
    shutil.copy(_PROFILES["network"], tmp_path / "net.toml")
    cluster = tmp_path / "cluster.toml"
    text = _CLUSTER.read_text().replace('"ethernet_100g_switch"', '"net.toml"')
    assert "net.toml" in text
    cluster.write_text(text)
    error = _refused(capsys, "plan", {"cluster": str(cluster), "json": str(tmp_path / "net.toml")})
    assert "json must be another file than" in error and "given as cluster" in error


def test_what_training_writes_beside_its_checkpoint_is_nothing_of_the_users(tmp_path):
    path = _input(tmp_path, "data").rename(tmp_path / "state.part")
    before = path.read_bytes()
    with pytest.raises(SystemExit) as end:
        main(_arguments("train", {"data": str(path), "checkpoint": str(tmp_path / "state"),
                                  "fidelity": "model"}))
    assert end.value.code == 0 and path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["state", "state.part"]


def test_figures_do_not_replace_data(tmp_path, capsys):
    path = _input(tmp_path / "out", "data").rename(tmp_path / "out" / "fig06.csv")
    before = path.read_bytes()
    for data, said in ((path, "must be another file than"),
                       (path.parent, "must be another file than")):
        error = _refused(capsys, "reproduce fig06", {
            "data": str(data), "model": "kaggle", "output": str(tmp_path / "out")})
        assert f"fig06.csv of output {said} {str(path)!r}, which is given as data" in error
    path.rename(tmp_path / "out" / "day_0")
    error = _refused(capsys, "reproduce fig06", {
        "data": str(path.parent), "model": "kaggle", "output": str(tmp_path / "out")})
    assert "fig06.png of output must be outside the folder" in error
    assert (tmp_path / "out" / "day_0").read_bytes() == before
    check_apart({"figure": str(tmp_path / "out" / "fig06.csv")},
                {"data": str(tmp_path / "out" / "day_0")})


@pytest.mark.parametrize(("to", "why"), [
    ("missing/out.json", "No such file or directory"), ("x" * 256, "File name too long"),
    ("link.json", "Too many levels of symbolic links"), ("file/out.json", "Not a directory")])
def test_a_link_to_nowhere_is_refused_before_the_work(tmp_path, to, why):
    (tmp_path / "file").touch()
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / to)
    with pytest.raises(ValueError, match=r"^json cannot be written: .*: " + why):
        check_outputs({"json": str(link)})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link.json"]


def test_a_pipe_of_a_shell_can_be_written():
    reading, writing = os.pipe()
    try:
        check_outputs({"json": f"/dev/fd/{writing}"})
    finally:
        os.close(reading)
        os.close(writing)


def test_a_file_that_is_no_result_is_no_earlier_result(tmp_path):
    path = tmp_path / "out.json"
    path.write_text("[" * 100_000)
    check_earlier_results(str(path), 8)


def test_a_file_too_large_for_results_is_named_and_stays(tmp_path):
    path = tmp_path / "rows.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ValueError, match=f"^{path}: must have at most .* bytes, not more$"):
        check_earlier_results(str(path), 8)
    assert path.stat().st_size == 1 << 40


def test_what_is_no_conflict(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = _input(tmp_path, "data")
    check_outputs({"json": "/dev/null", "pcap": "/dev/null", "picture": None}, {"data": "in"})
    check_outputs({"json": "-"}, {"data": str(path)})
    check_outputs({"json": "paper", "pcap": "kaggle"}, {"cluster": "paper", "model": "kaggle",
                                                        "gpu": "gpu_rtx8000", "data": None})
    os.mkfifo("pipe")
    assert not same_file("pipe", "pipe") and not same_file("/dev/null", "/dev/null")
    assert same_file("in", path) and not same_file("in", "none") and same_file("none", "./none")


def test_standard_output_may_be_a_file(tmp_path):
    path, kept = tmp_path / "both", os.dup(1)
    target = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        os.dup2(target, 1)
        with pytest.raises(ValueError, match="pcap must be another file than '/dev/stdout'"):
            check_apart({"json": "-", "pcap": str(path)})
        check_apart({"json": "-", "pcap": str(tmp_path / "other")})
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(target)

"""A user's error: one line that names it, exit status 2, and no traceback."""

import subprocess
import sys

import pytest

from rtl.config import POLICY_CODES
from sim.cli.main import main
from tests.sim import inputs


def _complaint(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as end:
        main(["run", *arguments])
    shown = capsys.readouterr()
    assert end.value.code == 2
    assert shown.out == ""
    assert shown.err.count("\n") == 1 and shown.err.startswith("sim: ")
    return shown.err


def _criteo_lines(tmp_path, count: int = 3) -> tuple:
    path = inputs.criteo(tmp_path / "train.txt", count)
    return path, path.read_text().splitlines()


def test_line_with_39_columns(tmp_path, capsys):
    path, lines = _criteo_lines(tmp_path)
    lines[1] = lines[1].rsplit("\t", 1)[0]
    path.write_text("\n".join(lines) + "\n")
    error = _complaint(capsys, "--data", str(path), "--format", "criteo")
    assert f"{path}:2:" in error and "39" in error and "40" in error


def test_category_that_is_not_hexadecimal(tmp_path, capsys):
    path, lines = _criteo_lines(tmp_path)
    columns = lines[2].split("\t")
    columns[20] = "xyzzy"
    lines[2] = "\t".join(columns)
    path.write_text("\n".join(lines) + "\n")
    error = _complaint(capsys, "--data", str(path), "--format", "criteo")
    assert f"{path}:3:" in error and "xyzzy" in error


@pytest.mark.parametrize("kind", ["criteo", "movielens", "trace"])
def test_empty_file(tmp_path, capsys, kind):
    path = tmp_path / "empty"
    path.write_bytes(b"")
    assert str(path) in _complaint(capsys, "--data", str(path), "--format", kind)


@pytest.mark.parametrize("kind", ["criteo", "movielens", "trace"])
def test_binary_data(tmp_path, capsys, kind):
    path = tmp_path / "binary"
    path.write_bytes(bytes(range(256)) * 64)
    assert f"{path}:1:" in _complaint(capsys, "--data", str(path), "--format", kind)


def test_wrong_format_names_the_right_one(tmp_path, capsys):
    path = inputs.movielens(tmp_path / "ratings.csv", 3)
    error = _complaint(capsys, "--data", str(path), "--format", "criteo")
    assert "movielens" in error
    path, _ = _criteo_lines(tmp_path)
    assert "criteo" in _complaint(capsys, "--data", str(path), "--format", "movielens")
    assert "format must be one of" in _complaint(
        capsys, "--data", str(path), "--format", "parquet")


@pytest.mark.parametrize(("arguments", "said"), [
    (("--nodes", "17"), "nodes must be at most 16 for config kaggle, not 17"),
    (("--config", "tiny", "--nodes", "9"), "nodes must be at most 8 for config tiny, not 9"),
    (("--nodes", "0"), "nodes must be at least 1, not 0"),
    (("--config", "huge"), "config must be one of tiny, kaggle, avazu, terabyte, not 'huge'"),
    (("--set", "max_dimension=20"), "max_dimension must be 4, 8 or a multiple of 16, not 20"),
    (("--set", "local_cache_ways=3"), "local_cache_ways must be a power of two, not 3"),
    (("--set", "hold_vectors=32"), "hold_vectors must be at least 52, twice the slots of a sample "
                                   "of 26 tables, not 32"),
    (("--set", "policy=belady"), f"policy must be one of {', '.join(POLICY_CODES)}, not 'belady'"),
    (("--set", "colour=red"), "no such field: colour"),
    (("--set", "local_cache"), "field=value"),
    (("--set", "pooling=max"), "pooling must be model, sum or mean, not 'max'"),
    (("--set", "local_cache=maybe"), "local_cache must be true or false, not 'maybe'"),
    (("--set", "local_cache_sets=5000"), "local_cache_sets must be between 0 (all) and 4096, "
                                         "not 5000"),
    (("--set", "net_framing=udp"), "net_framing must be ethernet where packets cross a network"),
    (("--data", "no/such/file.txt", "--format", "criteo"), "no/such/file.txt"),
    (("--data", "no/such/file.txt"), "no/such/file.txt"),
    (("--json", "/proc/none/run.json"), "json cannot be written: /proc/none/run.json"),
    (("--json", "."), "json must be a file, not the folder '.'"),
    (("--picture", "run.txt"), "picture must end in .png, .svg or .pdf, not 'run.txt'"),
    (("--mini-batch", "0"), "mini_batch must be at least 1, not 0"),
    (("--mini-batch", "many"), "--mini-batch"),
    (("--placement", "column"), "placement must be one of even, rows, lookups, row, not 'column'"),
    (("--engine", "spice"), "engine must be one of"),
    (("--model", "resnet"), "model must be one of"),
    (("--format", "criteo"), "format must go with data, not 'criteo' alone"),
    (("--gpu", "abacus"), "gpu must be one of"),
    (("--network", "abacus"), "network must be one of"),
    (("--engine", "abacus"), "engine must be one of verilator, cxxrtl, pysim, not 'abacus'"),
    (("--engine", "abacus", "--fidelity", "fast"),
     "engine must be one of verilator, cxxrtl, pysim, not 'abacus'"),
    (("--placement", "0," + 5000 * "9"), "placement must be one of even, rows, lookups, row, not"),
    (("--bogus",), "--bogus"),
    (("--nodes", "1_0"), "'--nodes': '1_0' is not an integer of decimal digits"),
    (("--nodes", "\uff18"), "'--nodes': '\uff18' is not an integer of decimal digits"),
    (("--nodes", " 8 "), "'--nodes': ' 8 ' is not an integer of decimal digits"),
    (("--nodes", "9" * 5000), "'--nodes': '9999"),
    (("--seed", "18446744073709551617"), "seed must be between 0 and 2^64 - 1, "
                                         "not 18446744073709551617"),
    (("--seed", "-1"), "seed must be between 0 and 2^64 - 1, not -1"),
    (("--data", ""), "data must name a file or a folder, not ''"),
    (("--model", ""), "model must be one of"),
    (("--data", "9" * 5000), "999: File name too long"),
])
def test_options(capsys, arguments, said):
    assert said in _complaint(capsys, *arguments)


def test_dimension_of_a_model_file(tmp_path, capsys):
    path = tmp_path / "model.toml"
    path.write_text('name = "odd"\nrows = [10]\ndimension = 20\ndense = 1\nbottom = [20]\n'
                    'top = [1]\n')
    assert "dimension must be at most 16 for config kaggle, not 20" in _complaint(
        capsys, "--model", str(path))


def test_sample_larger_than_half_the_hold_buffer(tmp_path, capsys):
    path = tmp_path / "bags.txt"
    path.write_text("0:1 1:1\n" + " ".join(f"0:{k}" for k in range(70)) + "\n")
    error = _complaint(capsys, "--config", "tiny", "--data", str(path), "--format", "trace")
    assert "hold_vectors must be at least 142, twice the slots of sample 1, not 128" in error


def test_status_of_the_process(tmp_path):
    done = subprocess.run([sys.executable, "-m", "sim", "run", "--data", str(tmp_path / "none")],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_standard_output_that_is_closed(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as end:
        main(["plan", "--json", "-"])
    assert end.value.code == 2
    assert capsys.readouterr().err == (
        "sim: json must be a file, not '-': standard output is closed\n")


@pytest.mark.parametrize("arguments", [
    ("train", "--learning-rate"), ("train", "--epsilon"), ("plan", "--hit-rate"),
    ("serve", "--burst-rate"), ("serve", "--burst-share"), ("serve", "--qps"),
    ("faults", "--output=o", "--jobs")])
@pytest.mark.parametrize("value", ["nan", "inf", "1_0", " 1 ", "\uff18"])
def test_numbers_that_are_none(capsys, arguments, value):
    with pytest.raises(SystemExit) as end:
        main([*arguments, value])
    shown = capsys.readouterr()
    assert end.value.code == 2 and shown.out == "" and shown.err.count("\n") == 1


@pytest.mark.parametrize(("arguments", "said"), [
    (("train", "--reference", "--fidelity", "rtl"),
     "fidelity must be left out with reference, not 'rtl'"),
    (("datasets", "describe", "x", "--most-keys", "0"), "most_keys must be at least 4096, not 0"),
    (("datasets", "describe", "x", "--samples", "0"), "samples must be at least 1, not 0")])
def test_options_of_other_commands(capsys, arguments, said):
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert ended.value.code == 2 and capsys.readouterr() == ("", f"sim: {said}\n")


@pytest.mark.parametrize("arguments", [[], ["datasets"]])
def test_without_a_command_the_help_is_shown_alone(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr()
    assert ended.value.code == 2 and said.err == ""
    assert "describe" in said.out or "datasets" in said.out

"""`python -m sim datasets describe`, and every format through the commands that read data."""

import gzip
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from host.data.datasets import FORMATS, guess_format
from sim.cli.main import main
from sim.offline.datasets import SCHEMA, describe, describe_tables
from tests.host.data.readers.files import avazu_lines, criteo_lines, npz_arrays, npz_bytes, write
from tests.host.data.readers.malformed import CASES


def _complaint(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    shown = capsys.readouterr()
    assert end.value.code == 2 and shown.out == ""
    assert shown.err.count("\n") == 1 and shown.err.startswith("sim: ")
    return shown.err.removeprefix("sim: ")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_malformed_file(tmp_path, capsys, case):
    path = str(write(tmp_path / "file", case.content))
    for command in (("run", "--data", path), ("hitrate", "--sizes", "1024", "--data", path),
                    ("datasets", "describe", path)):
        if case.name == "no counts" and command[0] == "datasets":
            continue  # the command needs no model
        said = _complaint(capsys, *command, "--format", case.format)
        assert said.startswith(f"{path}{case.said}")


def test_other_mistakes(tmp_path, capsys):
    path = str(write(tmp_path / "file", "hello\n"))
    none = str(tmp_path / "none")
    for command in (("run", "--data"), ("hitrate", "--sizes", "8", "--data"),
                    ("datasets", "describe")):
        assert _complaint(capsys, *command, path) == (
            f"{path}:1:1: the format is unknown; name it with --format\n")
        assert _complaint(capsys, *command, none) == f"{none}: No such file or directory\n"
        assert "format must be one of criteo, avazu, " in _complaint(
            capsys, *command, path, "--format", "parquet")
    trace = str(write(tmp_path / "trace", "0:1\n"))
    assert "samples must be at least 1, not 0" in _complaint(
        capsys, "datasets", "describe", trace, "--samples", "0")
    assert "most_keys must be at least 4096, not 5" in _complaint(
        capsys, "datasets", "describe", trace, "--most-keys", "5")


@pytest.mark.parametrize("command", [("run",), ("hitrate",), ("datasets", "describe")])
def test_help_names_every_format(capsys, command):
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in FORMATS)


def _hitrate(capsys, *arguments: str) -> dict:
    with pytest.raises(SystemExit) as end:
        main(["hitrate", "--sizes", "1024", "--json", "-", *arguments])
    assert end.value.code == 0
    return json.loads(capsys.readouterr().out)


def test_data_may_be_repeated_or_a_folder(tmp_path, capsys):
    lines = avazu_lines(600)
    whole = write(tmp_path / "whole", "\n".join(lines))
    days = tmp_path / "days"
    days.mkdir()
    write(days / "day_2", "\n".join(lines[:301]))
    write(days / "day_10", gzip.compress("\n".join([lines[0], *lines[301:]]).encode()))
    results = [_hitrate(capsys, *(part for path in paths for part in ("--data", str(path))))
               for paths in ([whole], [days], [days / "day_2", days / "day_10"])]
    assert [result["data"] for result in results] == [
        str(whole), str(days), [str(days / "day_2"), str(days / "day_10")]]
    for result in results:
        del result["data"]
    assert results[0]["samples"] == 600 and results[0]["format"] == "avazu"
    assert results[1] == results[2] == results[0]


def _plain(samples: list[list[list]], sizes=(128, 2048)) -> dict:
    """Return figures of samples as lists of bags, without numpy."""
    used = Counter((t, key) for bags in samples for t, bag in enumerate(bags) for key in bag)
    most = sorted(used.values(), reverse=True)
    batches = []
    for size in sizes:
        full = [samples[i:i + size] for i in range(0, len(samples) - size + 1, size)] or [samples]
        keys = [[(t, key) for bags in batch for t, bag in enumerate(bags) for key in bag]
                for batch in full]
        unique = sum(len(set(batch)) for batch in keys)
        batches.append({"size": size, "full": len(full), "unique": unique / len(full),
                        "accesses_per_unique": sum(map(len, keys)) / unique})
    return {"samples": len(samples), "mini_batches": batches,
            "keys": {"accesses": sum(most), "unique": len(most), "error": 0.0, "exact": True,
                     "top1": sum(most[:-(-len(most) // 100)]) / sum(most),
                     "top10": sum(most[:-(-len(most) // 10)]) / sum(most),
                     "accesses_per_unique": sum(most) / len(most)},
            "unique": [len({key for t, key in used if t == table})
                       for table in range(len(samples[0]))]}


def _check(result: dict, samples: list[list[list]]) -> None:
    expected = _plain(samples)
    unique = expected.pop("unique")
    assert {name: result[name] for name in expected} == expected
    assert [table["unique"] for table in result["tables"]] == unique
    for number, table in enumerate(result["tables"]):
        lengths = [len(bags[number]) for bags in samples]
        assert table["accesses"] == sum(lengths) and table["exact"]
        assert table["bags"] == {"min": min(lengths), "max": max(lengths),
                                 "mean": sum(lengths) / len(lengths), "empty": lengths.count(0)}


def test_describe_criteo(tmp_path, capsys):
    lines = criteo_lines(300)
    lines += lines[:100]
    path = str(write(tmp_path / "train.txt", "\n".join(lines)))
    with pytest.raises(SystemExit) as end:
        main(["datasets", "describe", path, "--json", "-"])
    assert end.value.code == 0
    result = json.loads(capsys.readouterr().out)
    fields = [line.split("\t") for line in lines]
    _check(result, [[[text and int(text, 16)] for text in line[14:]] for line in fields])
    assert (result["schema"], result["format"], result["files"]) == (SCHEMA, "criteo", [path])
    assert result["click_rate"] == sum(int(line[0]) for line in fields) / 400
    for feature, row in enumerate(result["dense"]):
        values = np.log1p([max(0, int(line[1 + feature] or 0)) for line in fields])
        assert row == pytest.approx({"min": values.min(), "mean": values.mean(),
                                     "max": values.max()}, rel=1e-6)
    assert [table["name"] for table in result["tables"]] == [f"C{i + 1}" for i in range(26)]
    assert describe(path, samples=7)["samples"] == 7


def test_describe_a_trace_with_bags(tmp_path):
    rng = np.random.default_rng(1)
    samples = [[rng.integers(0, 50, rng.integers(0, 5)).tolist() for _ in range(3)]
               for _ in range(300)]
    lines = [" ".join(f"{t}:{row}" for t, bag in enumerate(bags) for row in bag)
             for bags in samples]
    halves = [write(tmp_path / str(i), "\n".join(half) + "\n")
              for i, half in enumerate((lines[:140], lines[140:]))]
    result = describe(halves)
    _check(result, samples)
    assert result["click_rate"] is None and result["dense"] == []


@pytest.mark.parametrize("count, sizes", [
    (40, ["40"]), (128, ["128"]), (300, ["128", "300"]), (2100, ["128", "2,048"])])
def test_unique_keys_are_of_samples_that_the_files_have(tmp_path, count, sizes):
    path = write(tmp_path / "keys.txt", "0:1\n" * count)
    shown = [str(cell) for cell in describe_tables(describe(path))[0].columns[0].cells]
    assert [name for name in shown if name.startswith("unique keys of")] == [
        f"unique keys of {size} samples" for size in sizes]


@pytest.mark.parametrize("order", [[2, 9, 4, 7], [9, 2, 7, 4]])
def test_ranges_are_those_of_all_files(tmp_path, order):
    """Hours of the day; the minimum and maximum are first, last or in between."""
    header, line = avazu_lines(1)
    paths = [write(tmp_path / str(hour), f"{header}\n" + ",".join(
        [*line.split(",")[:2], f"1410210{hour}", *line.split(",")[3:]])) for hour in order]
    values = np.log1p(order)
    assert describe(paths)["dense"] == [pytest.approx(
        {"min": values.min(), "mean": values.mean(), "max": values.max()}, rel=1e-6)]


def test_describe_knows_each_format(tmp_path):
    arrays = npz_arrays(300)
    path = write(tmp_path / "data", npz_bytes(arrays))
    assert guess_format(path) == "dlrm-npz"
    result = describe(path)
    _check(result, [[[key] for key in row] for row in arrays["X_cat"].tolist()])
    del arrays["counts"]
    assert describe(write(path, npz_bytes(arrays)))["keys"] == result["keys"]
    result = describe(write(path, "\n".join(avazu_lines(50))))
    assert result["tables"][2]["name"] == "site_id" and result["samples"] == 50


def test_more_keys_than_are_held_are_estimated(tmp_path):
    rng = np.random.default_rng(2)
    rows = np.stack([(size ** rng.random(40_000)).astype(int) for size in (9, 1e6, 1e6)], axis=1)
    path = tmp_path / "keys.npy"
    np.save(path, rows)
    exact, got = describe(path), describe(path, most_keys=1 << 13)
    assert exact["keys"]["exact"] and not got["keys"]["exact"]
    assert got["keys"]["accesses"] == 120_000
    for one, true in zip([got["keys"], *got["tables"]], [exact["keys"], *exact["tables"]]):
        assert abs(one["unique"] - true["unique"]) <= 4 * one["error"]
    assert got["tables"][0]["exact"] and not got["tables"][1]["exact"]
    assert got["mini_batches"] == exact["mini_batches"]


_PEAK = """
import sys
from pathlib import Path
from host.data.datasets import open_samples
from host.model import MODELS
from sim.offline.datasets import describe
command, path = sys.argv[1:]
count = describe(path)["samples"] if command == "describe" else sum(
    map(len, open_samples(path, "criteo", MODELS["kaggle"])))
print(count, Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


def _peak(path: Path, command: str = "read") -> tuple[int, int]:
    """Return the samples of a Criteo file, and the peak KiB of a process that reads them.

    The kernel's VmHWM begins with the program; the ``ru_maxrss`` of a child also contains the peak
    of its parent.
    """
    done = subprocess.run([sys.executable, "-c", _PEAK, command, str(path)], capture_output=True,
                          text=True, check=True)
    count, peak = map(int, done.stdout.split())
    return count, peak


def _criteo_of(path: Path, rows: int) -> Path:
    """Write a file that repeats the same 2,000 lines, each repetition a separate gzip member."""
    block = "".join(line + "\n" for line in criteo_lines(100) * 20).encode()
    if path.suffix == ".gz":
        block = gzip.compress(block)
    with path.open("wb") as file:
        for _ in range(rows // 2000):
            file.write(block)
    return path


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["train.txt", "train.gz"])
def test_memory_does_not_grow_with_the_rows(tmp_path, name):
    few = _peak(_criteo_of(tmp_path / ("few_" + name), 10_000))
    many = _peak(_criteo_of(tmp_path / ("many_" + name), 200_000))
    assert (few[0], many[0]) == (10_000, 200_000)
    assert many[1] - few[1] < 16 << 10


@pytest.mark.slow
@pytest.mark.parametrize("command", ["read", "describe"])
def test_ten_million_rows_in_less_than_a_gigabyte(tmp_path, command):
    path = _criteo_of(tmp_path / "day_0.gz", 10_000_000)
    count, peak = _peak(path, command)
    path.unlink()  # pytest keeps its folders
    assert count == 10_000_000 and peak < 1 << 20

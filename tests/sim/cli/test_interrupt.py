"""Signals to running commands: finished results stay readable, and a later run continues them.

The tests do not wait for a time: a signal is sent after an output of the command, or when a file
exists.
"""

import csv
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import dpkt
import numpy as np
import pytest

from gen.base.signals import Interrupted, handling, interruptible
from gen.documents.generate import generate
from host.data.datasets import default_model, open_samples
from host.dlrm.dlrm import Dlrm
from rtl.config import preset
from sim.cli.main import main
from sim.files.outputs import LiveJson
from sim.files.stop import stoppable
from sim.job.options import RunOptions
from sim.offline.hitrate import hitrate
from sim.run.predictions import PredictionFile
from sim.run.run import Run, run
from sim.run.tally import Tally
from tests.sim import inputs
from tests.sim.shown import complaints

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

BATCH = 16
MANY = 20_000
"""More samples than a test lets a run finish."""


@pytest.fixture(scope="module")
def bags(tmp_path_factory) -> Path:
    return inputs.multi_hot_trace(tmp_path_factory.mktemp("data") / "bags.txt", MANY, longest=10)


@pytest.fixture(scope="module")
def expected(bags) -> np.ndarray:
    """Return the predictions of the first samples by the numpy model."""
    model = default_model(bags, "trace")
    return np.concatenate([Dlrm(model, 1).forward(part)
                           for part in open_samples(bags, "trace", model, 4000)])


def _command(bags: Path, *arguments: object, command: str = "run") -> list[str]:
    cluster = ("--nodes", 2, "--mini-batch", BATCH, "--data", bags)
    if command == "run":
        cluster += ("--config", "tiny", "--threads", 1)
    return [sys.executable, "-m", "sim", command, *map(str, (*cluster, *arguments))]


def _lively(command: list[str]) -> list[str]:
    """Return ``command``, which writes results while it runs, with a short interval."""
    python, *module = command[:3]
    assert module == ["-m", "sim"]
    return [python, "-c", "import sim.files.outputs; sim.files.outputs.LIVE_SECONDS = 0.5\n"
                          "from sim.cli.main import main; main()", *command[3:]]


@contextmanager
def _started(command: list[str]):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _wait_for_lines(process: subprocess.Popen, count: int) -> None:
    assert process.stdout
    for _ in range(count):
        line = process.stdout.readline()
        assert " samples, cycle " in line, (line, process.stderr.read())


def _wait_for_file(process: subprocess.Popen, path: Path, size: int = 1) -> None:
    deadline = time.monotonic() + 1500
    while not path.exists() or path.stat().st_size < size:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)


def _wait_for_samples(process: subprocess.Popen, path: Path) -> None:
    """Wait until the results that the command writes while it runs contain some samples."""
    _wait_for_file(process, path)
    deadline = time.monotonic() + 1500
    while not json.loads(path.read_text())["samples"]:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)


def _table(path: Path) -> tuple[list[int], np.ndarray]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return ([int(row["sample"]) for row in rows],
            np.array([row["prediction"] for row in rows], np.float32))


def _frames(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in dpkt.pcap.Reader(file))


def _sha(predictions: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(predictions, "<f4").tobytes()).hexdigest()


@pytest.mark.thorough
@pytest.mark.parametrize("number", [
    pytest.param(signal.SIGINT, id="SIGINT"),
    pytest.param(signal.SIGTERM, id="SIGTERM", marks=pytest.mark.slow),
    pytest.param(signal.SIGHUP, id="SIGHUP", marks=pytest.mark.slow)])
def test_a_run_stops_and_is_continued(tmp_path, bags, expected, number):
    first, second, table, frames = (
        tmp_path / name for name in ("a.json", "b.json", "p.csv", "a.pcap"))
    with _started(_command(bags, "--samples", 3000, "--json", first, "--predictions", table,
                           "--pcap", frames)) as process:
        _wait_for_lines(process, random.Random(number).randrange(1, 3))
        process.send_signal(number)
        out, err = process.communicate()
    assert process.returncode == 128 + number, err
    found = json.loads(first.read_text())
    done = found["next_sample"]
    assert found["complete"] is False and found["interrupted"] == number.name
    assert f"stopped by {number.name}" in err and f"--first-sample {done}" in err
    assert len(complaints(err)) == 1 and "bit-identical" in out
    # All measured results are there, over whole mini-batches.
    assert done > 0 and done % BATCH == 0 and done == found["samples"] < 3000
    assert found["bit_identical"] and found["results"]["equal"] == done
    assert found["results"]["unanswered"] == 0 and 0 < found["under_way"] <= 4 * BATCH
    assert len(found["latencies_us"]) == done // BATCH and found["simulated_seconds"] > 0
    assert found["local_cache"]["accesses"] > 0 and len(found["counters"]) == 2
    assert found["predictions_sha256"] == _sha(expected[:done])
    numbers, predictions = _table(table)
    assert numbers == list(range(done)) and (predictions == expected[:done]).all()
    assert _frames(frames) == found["network"]["packets"]

    end = done + 10 * BATCH
    rest = ("--samples", end, "--first-sample", done, "--predictions", table)
    refused = subprocess.run(_command(bags, *rest, "--json", first), capture_output=True, text=True,
                             check=False)
    assert refused.returncode == 2 and "contains the results of samples before" in refused.stderr
    subprocess.run(_command(bags, *rest, "--json", second), check=True, capture_output=True)
    numbers, predictions = _table(table)
    assert numbers == list(range(end)) and (predictions == expected[:end]).all()
    after = json.loads(second.read_text())
    assert after["complete"] is True and after["next_sample"] is None
    assert after["samples"] == after["results"]["equal"] == 10 * BATCH
    assert after["predictions_sha256"] == _sha(expected[done:end])
    whole = run(RunOptions.of(config="tiny", nodes=2, mini_batch=BATCH, data=str(bags),
                               samples=end))
    assert whole["predictions_sha256"] == _sha(predictions)


@pytest.mark.thorough
def test_a_killed_run_leaves_what_was_finished(tmp_path, bags, expected):
    result, table, frames = (tmp_path / name for name in ("a.json", "p.csv", "a.pcap"))
    with _started(_lively(_command(bags, "--json", result, "--predictions", table,
                                   "--pcap", frames))) as process:
        _wait_for_samples(process, result)
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    found = json.loads(result.read_text())
    done = found["next_sample"]
    assert found["complete"] is False and found["interrupted"] is None
    assert done > 0 and found["results"] == {
        "equal": done, "different": 0, "refused": 0, "unanswered": 0}
    # The NICs' own counters are read only at the end.
    assert found["counters"] is found["local_cache"] is found["dedupe"] is None
    assert found["network"]["packets"] > 0 and len(found["latencies_us"]) == done // BATCH
    assert found["predictions_sha256"] == _sha(expected[:done])
    numbers, predictions = _table(table)
    assert numbers == list(range(len(numbers))) and len(numbers) >= done
    assert (predictions == expected[:len(numbers)]).all()
    assert _frames(frames) >= found["network"]["packets"]
    # The prediction file may be ahead of the JSON: a run may continue from either.
    subprocess.run(_command(bags, "--samples", done + 64, "--first-sample", done,
                            "--predictions", table), check=True, capture_output=True)
    numbers, predictions = _table(table)
    assert numbers == list(range(done + 64)) and (predictions == expected[:done + 64]).all()


def test_hitrate_stops_with_what_it_counted(tmp_path, bags):
    path = tmp_path / "rates.json"
    sizes = [64 * k for k in range(1, 41)]  # long enough on any machine
    command = [sys.executable, "-m", "sim", "hitrate", "--data", str(bags), "--sizes",
               ",".join(map(str, sizes)), "--ways", "8", "--nodes", "2", "--mini-batch", "1",
               "--json", str(path)]
    with _started(_lively(command)) as process:
        _wait_for_samples(process, path)
        live = json.loads(path.read_text())
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130, err
    found = json.loads(path.read_text())
    assert (live["complete"], live["interrupted"]) == (False, None)
    assert (found["complete"], found["interrupted"]) == (False, "SIGINT")
    assert 0 < live["samples"] <= found["samples"] < MANY
    assert "stopped by SIGINT" in err and f"{found['samples']:,} samples" in err
    short = hitrate(sizes, data=str(bags), ways=8, nodes=2, mini_batch=1,
                    samples=found["samples"])
    assert found["rows"] == short["rows"] and short["complete"] is True


def test_hitrate_keeps_what_it_counted_from_the_first_write_on(tmp_path, bags):
    """The signal arrives while the counts of the first mini-batch are written."""
    class Signalled(LiveJson):
        def write(self, result):
            super().write(result)
            signal.raise_signal(signal.SIGINT)

    live = Signalled(str(tmp_path / "rates.json"), seconds=0)
    with stoppable() as stop:
        result = hitrate([64], data=str(bags), nodes=2, mini_batch=8, stop=stop, live=live)
    assert result["interrupted"] == "SIGINT" and result["samples"] == 16 and stop.status == 130


def test_hitrate_stopped_while_warming_up_counts_nothing(bags):
    result = hitrate([64], data=str(bags), nodes=2, mini_batch=8, warmup=5, stop=lambda: "SIGTERM")
    assert result["interrupted"] == "SIGTERM" and result["samples"] == result["lookups"] == 0
    assert result["rows"][0]["hit_rate"] is None


_BUILD = """
import sys, time
from pathlib import Path
from gen.base.signals import Interrupted, interruptible
from gen.base.cache import cached
from sim.engines.toolchain import compile_files

def build(folder: Path) -> None:
    sources = [folder / f"{name}.cpp" for name in "abc"]
    for source in sources:
        source.write_text("#include <regex>\\nbool f(const char *s) "
                          "{ return std::regex_match(s, std::regex(\\"a*b\\")); }\\n")
    print("building", flush=True)
    compile_files(sources, folder, (), ())
    print("compiled", flush=True)
    if len(sys.argv) > 1:
        time.sleep(600)

try:
    with interruptible():
        print(*sorted(path.name for path in cached("model", build).iterdir()))
except Interrupted as error:
    sys.exit(error.status)
"""


@pytest.mark.few(2)
@pytest.mark.parametrize(("number", "after"), [
    (signal.SIGINT, "building"), (signal.SIGTERM, "compiled"), (signal.SIGKILL, "building"),
    (signal.SIGKILL, "compiled")], ids=lambda value: getattr(value, "name", value))
def test_an_interrupted_build_leaves_no_entry(tmp_path, monkeypatch, number, after):
    cache = tmp_path / "cache"
    monkeypatch.setenv("EMBERNIC_CACHE", str(cache))
    monkeypatch.setenv("CXX", _compiler(tmp_path))
    with _started([sys.executable, "-c", _BUILD, "and wait"]) as process:
        assert process.stdout
        while (line := process.stdout.readline()) != f"{after}\n":
            assert line, process.stderr.read()
        process.send_signal(number)
        process.communicate()
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    left = {path.name for path in cache.iterdir()} - {"model.lock"}
    assert left == (set() if number != signal.SIGKILL else {"model.unfinished"})
    done = subprocess.run([sys.executable, "-c", _BUILD], check=True, capture_output=True,
                          text=True)
    assert done.stdout.splitlines()[-1] == "a.cpp a.o b.cpp b.o c.cpp c.o"
    assert {path.name for path in cache.iterdir()} == {"model", "model.lock"}


def _compiler(folder: Path) -> str:
    """Return a compiler that only copies: its output is not tested."""
    path = folder / "c++"
    path.write_text("#!/bin/sh\n[ \"$1\" = --version ] && exit 0\n"
                    "while [ \"$1\" != -o ]; do shift; done\nsleep 0.3\ncp \"$3\" \"$2\"\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("older", [False, True], ids=["new", "older"])
def test_an_interrupted_gen_leaves_the_folder_as_it_was(tmp_path, older):
    output = tmp_path / "out" / "tiny"
    if older:
        output.mkdir(parents=True)
        (output / "tiny.v").write_text("older")
    command = [sys.executable, "-m", "gen", "--config", "tiny", "--output", str(output)]
    with _started(command) as process:
        assert process.stderr
        assert process.stderr.readline() == "elaborating tiny, about 15 s\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130 and err == "error: stopped by SIGINT\n"
    if older:
        assert [path.name for path in output.iterdir()] == ["tiny.v"]
        assert (output / "tiny.v").read_text() == "older"
    else:
        assert list(tmp_path.iterdir()) == []


def test_gen_fails_before_anything_is_written(tmp_path):
    def build(config):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(preset("tiny"), tmp_path / "out" / "tiny", build=build)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("threads", [1, 2])
def test_a_signal_before_there_is_anything_to_keep(tmp_path, bags, threads):
    """The signal arrives while the run is set up: an older file stays."""
    path, fifo = tmp_path / "a.json", tmp_path / "samples.txt"
    path.write_text("older")
    os.mkfifo(fifo)  # the run waits for the first sample
    command = _command(fifo, "--format", "trace", "--model", "trace", "--json", path,
                       "--threads", threads)
    with _started(command) as process, open(fifo, "w"):
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
    assert process.returncode == 143 and err == "sim: stopped by SIGTERM\n"
    assert path.read_text() == "older"


def test_the_second_signal_ends_at_once():
    with stoppable() as stop:
        assert stop() is None and stop.status is None
        signal.raise_signal(signal.SIGTERM)
        assert stop() == "SIGTERM" and stop.status == 143
        with pytest.raises(Interrupted) as error:
            signal.raise_signal(signal.SIGINT)
    assert error.value.status == 130


def test_the_first_signal_ends_at_once_where_nobody_looks():
    with pytest.raises(Interrupted), stoppable():
        signal.raise_signal(signal.SIGTERM)


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_handlers_are_put_back():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with handling(lambda number, frame: None):
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_stop_that_is_asked_for_at_once_finishes_nothing(bags):
    result = Run(RunOptions.of(config="tiny", nodes=2, mini_batch=BATCH, data=str(bags))).execute(
        stop=lambda: "SIGINT")
    assert result["interrupted"] == "SIGINT" and result["next_sample"] == 0
    assert result["samples"] == result["cycles"] == result["under_way"] == 0
    assert result["predictions_sha256"] is None and result["latency_us"]["p50"] is None
    assert result["bit_identical"] is False


def test_a_run_stops_only_where_no_mini_batch_is_left_out(bags, monkeypatch):
    """The third mini-batch is late, and the signal arrives before it: the run waits for it."""
    asked: list[bool] = []
    late: list[tuple] = []
    real = Tally.add

    def add(self, step, verdict, predictions):
        if step.number == 2:
            late.append((self, step, verdict, predictions))
            return
        real(self, step, verdict, predictions)
        if asked and late:
            assert self.gap and self.next_sample == 2 * BATCH
            real(*late.pop())
        elif late:
            asked.append(True)

    monkeypatch.setattr(Tally, "add", add)
    result = Run(RunOptions.of(config="tiny", nodes=2, mini_batch=BATCH, data=str(bags))).execute(
        stop=lambda: "SIGINT" if asked else None)
    assert asked and not late
    assert 5 * BATCH <= result["next_sample"] == result["samples"] <= 8 * BATCH
    assert result["bit_identical"]


def test_live_results_change_nothing(tmp_path, bags):
    options = RunOptions.of(config="tiny", nodes=2, mini_batch=BATCH, data=str(bags), samples=160)
    live = LiveJson(str(tmp_path / "live.json"), seconds=0)
    results = [Run(options).execute(), Run(options).execute(live=live)]
    assert live.written
    for result in results:
        for name in ("wall_seconds", "cpu_seconds", "node_cycles_per_second"):
            del result[name]
    assert results[0] == results[1]


@pytest.mark.parametrize(("arguments", "said"), [
    (("--first-sample", "64", "--samples", "64"), "first_sample must be below samples (64)"),
    (("--first-sample", "-1"), "first_sample must be at least 0, not -1"),
    (("--first-sample", "20000"), "first_sample must be below the 20000 samples of the input, "
                                  "not 20000"),
    (("--first-sample", "99999"), "first_sample must be below the 20000 samples"),
    (("--predictions", "p.npy"), "predictions must end in .csv, not 'p.npy'"),
    (("--predictions", "/proc/none/p.csv"), "predictions cannot be written: /proc/none/p.csv"),
])
def test_mistakes_are_one_line(bags, capsys, arguments, said):
    _complaint(bags, capsys, arguments, said)


def _complaint(bags, capsys, arguments, said):
    with pytest.raises(SystemExit) as end:
        main(_command(bags, *arguments)[3:])
    shown = capsys.readouterr()
    line, = complaints(shown.err)
    assert end.value.code == 2 and shown.out == "" and said in line


def test_who_reads_a_pipe_gets_the_results_once(tmp_path):
    fifo = tmp_path / "out"
    os.mkfifo(fifo)
    for path in (fifo, "/dev/null", "-", None):
        assert not LiveJson(path and str(path), seconds=0).due()
    assert LiveJson(str(tmp_path / "new"), seconds=0).due()


def test_predictions_go_on_in_a_fifo_without_reading_it(tmp_path):
    fifo = tmp_path / "p.csv"
    os.mkfifo(fifo)
    with open(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        with PredictionFile(fifo, 16) as file:
            file(np.float32([0.5]))
        assert reader.read() == b"sample,prediction\n16,0.5\n"


@pytest.mark.parametrize(("text", "said"), [
    ("sample,prediction\n0,0.5\n1,0.5\n", "cannot continue at sample 16: it holds samples up to 1"),
    ("sample,prediction\n", "it holds no earlier sample"),
    ("sample,prediction\n20,0.5\n", "it holds no earlier sample"),
    ("user,click\n", "p.csv:1: is not the line 'sample,prediction'"),
    ("sample,prediction\n0,0.5\n2,0.5\n", "samples must follow one another, not '2' after 0"),
    ("sample,prediction\n15,high\n", "sample 15 must have a number, not 'high'"),
    ("sample,prediction\n" + "9" * 9999 + ",1\n", "it holds no earlier sample"),
    ("sample,prediction\n15,0.125\n", "belongs to another run: sample 15 is 0.125 in the file"),
])
def test_predictions_that_cannot_be_continued(tmp_path, bags, capsys, text, said):
    path = tmp_path / "p.csv"
    path.write_text(text)
    _complaint(bags, capsys, ("--first-sample", 16, "--samples", 32, "--predictions", path),
               said)
    assert path.read_text() == text


@pytest.mark.parametrize("before", ["", "nothing", "cut"])
def test_predictions_from_the_middle_on(tmp_path, bags, expected, before):
    """Write to a new file, an empty file, and a file with too many lines and a line cut short."""
    path = tmp_path / "p.csv"
    first = 20 if before == "cut" else 24
    if before == "nothing":
        path.write_text("")
    elif before == "cut":
        lines = "".join(f"{n},{expected[n]:.9g}\n" for n in range(10, 22))
        path.write_text("sample,prediction\n" + lines + "22,0.1")
    with pytest.raises(SystemExit) as end:
        main(_command(bags, "--first-sample", first, "--samples", 30, "--predictions", path)[3:])
    assert end.value.code == 0
    numbers, predictions = _table(path)
    begin = 10 if before == "cut" else 24
    assert numbers == list(range(begin, 30)) and (predictions == expected[begin:30]).all()

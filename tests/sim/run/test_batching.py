"""``--batching`` changes the mini-batches, but neither the predictions nor their order."""

import hashlib

import numpy as np
import pytest

from host.batching import ALGORITHMS, Batcher
from host.data.datasets import default_model, open_samples
from host.dlrm.dlrm import Dlrm
from host.samples import concatenate
from sim.cli.main import main
from sim.files.outputs import LiveJson
from sim.job.options import RunOptions
from sim.run.report import failures, stopped
from sim.run.run import Run, run
from tests.sim import inputs
from tests.sim.shown import complaints

BATCH, WINDOW, SAMPLES = 8, 24, 82
"""Three windows and a short window of 10."""


@pytest.fixture(scope="module")
def bags(tmp_path_factory):
    return inputs.multi_hot_trace(tmp_path_factory.mktemp("data") / "bags.txt", 400, longest=10)


@pytest.fixture(scope="module")
def samples(bags):
    return concatenate(open_samples(bags, "trace", default_model(bags, "trace"), SAMPLES))


@pytest.fixture(scope="module")
def expected(bags, samples):
    return Dlrm(default_model(bags, "trace"), 1).forward(samples)


def _options(bags, **changes):
    return RunOptions.of(**{
        "config": "tiny", "nodes": 2, "mini_batch": BATCH, "data": str(bags), "threads": 1,
        "samples": SAMPLES, "batching": "graph", "window": WINDOW, **changes})


def _sha(predictions):
    return hashlib.sha256(np.ascontiguousarray(predictions, "<f4").tobytes()).hexdigest()


@pytest.mark.parametrize("name", ["file", "greedy", "graph"])
def test_predictions_are_those_of_the_input(bags, samples, expected, name):
    window = None if name == "file" else WINDOW
    seen = []
    result = Run(_options(bags, batching=name, window=window)).execute(predictions=seen.append)
    assert result["bit_identical"] and not failures(result)
    assert (np.concatenate(seen) == expected).all()
    assert result["predictions_sha256"] == _sha(expected)
    formed = list(Batcher(ALGORITHMS[name], BATCH, window).form([samples]))
    said = result["batching"]
    assert (said["algorithm"], said["window"]) == (name, window)
    assert said["each"]["unique_keys"] == [batch.unique for batch in formed]
    assert said["each"]["similarity"] == [batch.similarity for batch in formed]
    if window is not None:
        assert said["each"]["downgrade"] == [batch.downgrade for batch in formed]
    assert said["unique_keys"] == np.mean(said["each"]["unique_keys"])
    assert said["similarity"] == pytest.approx(np.mean(said["each"]["similarity"]))
    assert len(result["latencies_us"]) == len(formed) and result["samples"] == SAMPLES
    assert result["lookups"] == len(samples.rows) and result["cpu_seconds"]["batching"] > 0


class _Stop:
    """A signal that arrives when a given number of samples is known to be finished."""

    def __init__(self, done):
        self.done, self.seen = done, 0

    def __call__(self):
        return "SIGINT" if self.seen >= self.done else None


@pytest.mark.parametrize("done", [1, 49])
def test_a_run_stops_where_a_window_ends_and_is_continued(bags, expected, done):
    stop = _Stop(done)
    seen = []

    def progress(samples, cycle):
        stop.seen = samples

    first = Run(_options(bags)).execute(progress, stop=stop, predictions=seen.append)
    end = first["next_sample"]
    assert first["interrupted"] == "SIGINT" and not first["complete"]
    assert 0 < end < SAMPLES and end % WINDOW == 0 and end >= done
    assert first["samples"] == end == first["results"]["equal"]
    assert f"--first-sample {end}" in stopped(first)
    second = Run(_options(bags, first_sample=end)).execute(predictions=seen.append)
    assert second["complete"] and (np.concatenate(seen) == expected).all()
    whole = run(_options(bags))
    for name, values in whole["batching"]["each"].items():
        assert first["batching"]["each"][name] + second["batching"]["each"][name] == values


class _Written(LiveJson):
    """A live JSON file that is always due and records its contents."""

    def __init__(self):
        super().__init__("none", 0)
        self.results = []

    def write(self, result):
        self.results.append(result)


def test_what_is_written_meanwhile_is_of_whole_windows(bags, expected):
    live = _Written()
    Run(_options(bags, in_flight=2)).execute(live=live)
    ends = [result["next_sample"] for result in live.results]
    assert set(range(WINDOW, SAMPLES, WINDOW)) <= set(ends) and all(
        end % WINDOW == 0 or end == SAMPLES for end in ends)
    for result in live.results:
        assert result["samples"] == result["next_sample"]
        if result["samples"]:
            assert result["predictions_sha256"] == _sha(expected[:result["next_sample"]])


def test_a_sample_that_is_too_large_has_its_own_number(tmp_path):
    lines = ["0:1 1:2"] * 20 + ["0:" + " 0:".join(map(str, range(100)))] + ["0:1 1:2"] * 20
    path = tmp_path / "large.txt"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match="twice the slots of sample 20, not"):
        steps = Run(_options(path, mini_batch=4, window=36, samples=None)).steps
        while steps.take() is not None:
            pass


@pytest.mark.parametrize(("arguments", "said"), [
    (("--batching", "best"), "batching must be one of file, sort, greedy, graph, graph-printed, "
                             "not 'best'"),
    (("--window", "256"), "window must go with a batching of sort, greedy, graph, graph-printed, "
                          "not 256 with file"),
    (("--batching", "graph", "--window", "7"), "window must be at least the 8 samples of a "
                                                "mini-batch, not 7"),
    (("--batching", "greedy", "--window", "-1"), "window must be at least the 8 samples"),
    (("--batching", "sort", "--window", "64", "--first-sample", "96"),
     "first_sample must be a multiple of the window (64), so that mini-batches are those of the "
     "whole input, not 96"),
    (("--batching", "graph", "--first-sample", "64"), "a multiple of the window (128)"),
])
@pytest.mark.parametrize("command", ["run", "train"])
def test_mistakes_are_one_line(bags, capsys, command, arguments, said):
    if command == "train" and "--first-sample" in arguments:
        return
    with pytest.raises(SystemExit) as end:
        main([command, "--config", "tiny", "--nodes", "2", "--mini-batch", str(BATCH), "--data",
              str(bags), *arguments])
    shown = capsys.readouterr()
    line, = complaints(shown.err)
    assert end.value.code == 2 and shown.out == "" and said in line

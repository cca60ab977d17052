"""Latencies exclude the warm-up: a run that consists of warm-up has no latencies and reports it."""

import json

import numpy as np
import pytest

from sim.cli.main import main
from sim.job.inputs import most_mini_batches
from sim.job.options import RunOptions
from sim.run.picture import draw_run
from sim.run.report import cold, table
from sim.run.run import Run, run
from tests.sim.inputs import multi_hot_trace

_NONE = {"p50": None, "p99": None, "max": None}
_FEW = {"config": "tiny", "nodes": 2, "fidelity": "model", "mini_batch": 16}


@pytest.fixture(scope="module")
def bags(tmp_path_factory) -> str:
    """Write a file of 8 mini-batches; return its path."""
    return str(multi_hot_trace(tmp_path_factory.mktemp("bags") / "bags", 120, longest=9))


def _run(capsys, tmp_path, *arguments: str) -> tuple[int, dict, str, str]:
    path = tmp_path / "run.json"
    with pytest.raises(SystemExit) as end:
        main(["run", "--config", "tiny", "--nodes", "2", "--fidelity", "fast", "--mini-batch",
              "16", "--json", str(path), *arguments])
    shown = capsys.readouterr()
    result = json.loads(path.read_text()) if path.exists() else {}
    return int(end.value.code or 0), result, shown.out, shown.err


@pytest.mark.parametrize(("options", "most"), [
    ({"samples": 64}, 4), ({"samples": 65}, 5), ({"samples": 64, "first_sample": 33}, 2), ({}, 64),
    ({"samples": 64, "data": "f"}, 4), ({"data": "f"}, None),
    ({"samples": 100, "batching": "graph", "window": 24}, 9),
    ({"samples": 96, "batching": "graph", "window": 48, "first_sample": 48}, 3)])
def test_mini_batches_that_are_known(options, most):
    asked = RunOptions.of(**(_FEW | options))
    assert most_mini_batches(asked.workload) == most
    if most and "data" not in options:
        assert len(run(asked)["latencies_us"]) == most


@pytest.mark.parametrize("more", [[], ["--data", "no/such/file"]])
def test_refused_before_the_run(capsys, tmp_path, more):
    for warmup, known in ((100, 4), (4, 4)):
        status, result, out, err = _run(capsys, tmp_path, "--samples", "64", "--warmup",
                                        str(warmup), *more)
        assert (status, result, out) == (2, {}, "")
        assert err == (f"sim: warmup must be below the {known} mini-batches of the run, "
                       f"not {warmup}\n")


def test_the_others_are_measured(bags):
    all_of_them = run(RunOptions.of(data=bags, **_FEW))["latencies_us"]
    assert len(all_of_them) == 8
    for warmup in (1, 7):
        result = run(RunOptions.of(data=bags, warmup=warmup, **_FEW))
        assert result["latencies_us"] == all_of_them[warmup:] and cold(result) is None
        assert result["latency_us"]["p50"] == float(np.median(all_of_them[warmup:]))


@pytest.mark.parametrize("more", [[], ["--samples", "1000"]])
def test_a_file_that_is_too_short(capsys, tmp_path, bags, more):
    drawn = tmp_path / "run.svg"
    status, result, out, err = _run(capsys, tmp_path, "--data", bags, "--warmup", "8", *more,
                                    "--picture", str(drawn))
    assert status == 0 and result["complete"] and result["samples"] == 120
    assert result["latency_us"] == _NONE and result["latencies_us"] == []
    assert err.startswith("sim: ") and err.count("\n") == 1
    assert "8 warm-up mini-batches" in err
    assert out.count("warm-up only") == 3 and drawn.stat().st_size


def test_a_run_that_is_stopped_early(bags, tmp_path):
    asked = []
    options = RunOptions.of(data=bags, warmup=6, in_flight=1, **_FEW)
    result = Run(options).execute(lambda done, cycle: asked.append(done),
                                  stop=lambda: "SIGINT" if asked and asked[-1] else None)
    assert result["interrupted"] == "SIGINT" and 0 < result["samples"] < 6 * 16
    assert result["latency_us"] == _NONE and result["latencies_us"] == []
    assert "warm-up" in str(cold(result)) and table(result).row_count
    draw_run(result, tmp_path / "run.png")

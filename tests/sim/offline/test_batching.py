"""``sim batching``: every algorithm on the same samples, as a table and as JSON."""

import json
import tracemalloc

import pytest

from host.batching import ALGORITHMS, HYPEREDGES, PRINTED_HYPEREDGES, Graph, compare
from host.data.generator import generate
from host.model import MODELS
from host.samples import concatenate
from sim.cli.main import main
from sim.offline.batching import batching
from tests.sim import inputs
from tests.sim.shown import complaints


def test_rows_are_those_of_the_comparison():
    result = batching(model="avazu", samples=500, mini_batch=16, window=128, hyperedges=(3, 16),
                      seed=2)
    samples = concatenate(generate(MODELS["avazu"], 500, 2))
    expected = {row["algorithm"]: row for row in compare(samples, 16, 128)}
    rows = result["rows"]
    assert [(row["algorithm"], row["hyperedges"], row["refill"]) for row in rows] == [
        ("file", None, "drained"), ("sort", None, "drained"), ("greedy", None, "drained"),
        ("graph", HYPEREDGES, "drained"), ("graph-printed", PRINTED_HYPEREDGES, "drained"),
        ("graph", 3, "drained"), ("graph-printed", 3, "drained"),
        ("graph-printed", 16, "drained"), ("graph", HYPEREDGES, "sliding")]
    for row in rows:
        assert (row["dataset"], row["samples"], row["mini_batch"], row["window"]) == (
            "avazu", 500, 16, 128)
    for row in rows[:len(ALGORITHMS)]:
        for name in ("unique_keys", "saved", "similarity", "mini_batches"):
            assert row[name] == expected[row["algorithm"]][name]
    other, = compare(samples, 16, 128, {"graph": Graph(3)})
    assert rows[5]["saved"] == other["saved"] != rows[3]["saved"]
    best = max(rows[:len(ALGORITHMS)], key=lambda row: row["saved"])
    assert result["winners"] == [best]


def test_a_file_of_any_model(tmp_path, capsys):
    path = inputs.multi_hot_trace(tmp_path / "bags.txt", 90)
    with pytest.raises(SystemExit) as end:
        main(["batching", "--data", str(path), "--mini-batch", "8", "--json", "-"])
    shown = capsys.readouterr()
    assert end.value.code == 0 and "of 8 from windows of 128, 90 samples" in shown.err
    rows = json.loads(shown.out)["rows"]
    assert {row["samples"] for row in rows} == {90} and {row["window"] for row in rows} == {128}
    greedy = [row for row in rows if row["algorithm"] == "greedy"]
    assert greedy and all(0 < row["saved"] < 1 and row["us_per_mini_batch"] > 0 for row in greedy)


@pytest.mark.thorough
def test_memory_is_bounded_by_the_windows(tmp_path):
    """The bound does not depend on the number of samples: 100,000 samples are 47 MB."""
    part = inputs.criteo(tmp_path / "part.txt", 4000)
    whole = tmp_path / "train.txt"
    peaks = []
    for times in (5, 25):
        whole.write_bytes(part.read_bytes() * times)
        tracemalloc.start()
        try:
            result = batching(data=str(whole), format="criteo", mini_batch=1024, window=2048)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert {row["samples"] for row in result["rows"]} == {4000 * times}
    assert peaks[1] < peaks[0] + 8e6


def test_without_data_three_shapes_are_generated():
    result = batching(samples=40, mini_batch=8, window=16)
    assert [row["dataset"] for row in result["winners"]] == ["kaggle", "terabyte", "avazu"]


@pytest.mark.slow
def test_what_is_compared_by_default():
    result = batching()
    assert [(row["dataset"], row["mini_batch"], row["window"]) for row in result["winners"]] == [
        ("kaggle", 128, 2048), ("terabyte", 128, 2048), ("terabyte", 2048, 32768),
        ("avazu", 128, 2048)]
    graphs = [row for row in result["rows"] if row["algorithm"] == "graph"]
    assert len(graphs) >= len(result["winners"])
    for row in graphs:
        assert row["saved"] >= 0.2, row


def test_real_samples(ratings):
    result = batching(data=str(ratings), format="movielens", samples=4096)
    rows = {row["algorithm"]: row for row in result["rows"] if row["refill"] == "drained"}
    assert rows["greedy"]["saved"] > 0 and rows["graph"]["saved"] > 0


@pytest.mark.parametrize(("arguments", "said"), [
    (("--window", "5"), "window must be at least the 128 samples of a mini-batch, not 5"),
    (("--mini-batch", "0"), "mini_batch must be at least 1, not 0"),
    (("--samples", "0"), "samples must be at least 1, not 0"),
    (("--hyperedges", "3,0"), "hyperedges must be at least 1, not 0"),
    (("--hyperedges", "many"), "hyperedges must be integers with commas between, not 'many'"),
    (("--data", "no/such/file.txt"), "no/such/file.txt"),
    (("--format", "criteo"), "format must go with data"),
])
def test_mistakes_are_one_line(capsys, arguments, said):
    with pytest.raises(SystemExit) as end:
        main(["batching", "--json", "-", *arguments])
    shown = capsys.readouterr()
    assert shown.out == "" and end.value.code == 2
    assert said in complaints(shown.err)[-1]

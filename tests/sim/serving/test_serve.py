"""The whole command on a small cluster, and its error messages."""

import json
from functools import cache

import pytest

from sim import api
from sim.cli.main import main
from sim.experiments.request import setting_of
from sim.serving import measured, setting
from sim.serving import serve as module
from sim.serving.measured import COSTS
from sim.serving.picture import chart_of, draw_serve
from sim.serving.request import request_of
from sim.serving.setting import candidates_of
from sim.serving.table import said_qps, said_us, serve_tables

OPTIONS = {"qps": [50_000.0, 3e7], "slo": ["50us", "300us"], "system": ["bl-tuned", "nic"],
           "sizes": [8, 32], "requests": 1000, "nodes": 2, "software": "tuned", "jobs": 1}
ARGUMENTS = [f"--{name}={','.join(map(str, value)) if isinstance(value, list) else value}"
             for name, value in OPTIONS.items()]


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Few mini-batches to measure, and few loads."""
    monkeypatch.setattr(measured, "_WARMUP_SAMPLES", 1)
    monkeypatch.setattr(measured, "_MEASURED", 16)
    for where in (setting, module):
        monkeypatch.setattr(where, "LADDER", (20_000.0, 200_000.0, 20e6))


@cache
def _kept(folder) -> dict:
    return api.serve(**OPTIONS, points=folder)


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    return tmp_path_factory.mktemp("points")


@pytest.mark.thorough
def test_a_result(points):
    result = _kept(points)
    assert result["schema"] == "embernic/serve/1" and not result["failed"]
    assert result["options"]["systems"] == ["bl-tuned", "nic"]
    assert all(len(found) == 64 for found in result["profiles"].values())
    assert [(row["system"], row["mini_batch"]) for row in result["mini_batches"]] == [
        ("bl-tuned", 8), ("bl-tuned", 32), ("nic", 8), ("nic", 32)]
    assert [(row["system"], row["qps"]) for row in result["loads"]] == [
        ("bl-tuned", 50_000.0), ("bl-tuned", 3e7), ("nic", 50_000.0), ("nic", 3e7)]
    assert [(row["system"], row["mini_batch"]) for row in result["systems"]] == [
        ("bl-tuned", 32), ("nic", 32)]
    for row in result["systems"]:
        assert row["why"] is None and row["options"][-1].startswith("placement ")
        assert not any(option in note for option in row["options"] for note in result["notes"])
    for row in result["loads"]:
        if row["saturated"]:
            assert row["p99_us"] is None is row["mini_batch"]
            continue
        assert row["qps"] == 50_000 and row["requests"] >= 1000
        assert 0 < row["p50_us"] <= row["p99_us"] <= row["p99_9_us"]
        assert row["mini_batch"] in (8, 32) and 1 <= row["mean_mini_batch"] <= row["mini_batch"]
        assert set(row["per_sample"]) == set(COSTS)
    assert {row["saturated"] for row in result["loads"]} == {True, False}


def test_what_is_served_within_a_bound(points):
    result = _kept(points)
    slos = {(row["system"], row["slo_us"]): row for row in result["slos"]}
    capacity = {name: max(row["samples_per_second"] for row in result["mini_batches"]
                          if row["system"] == name) for name in ("bl-tuned", "nic")}
    for system in capacity:
        assert slos[system, 50.0]["qps"] == 0 and slos[system, 50.0]["alone_us"] > 50
        found = slos[system, 300.0]
        assert 20_000 < found["qps"] < capacity[system] and found["p99_us"] <= 300
        assert not found["more"]


def _done_again(*arguments, **options):
    raise AssertionError("it was done before")


def test_finished_parts_are_not_done_again(points, monkeypatch):
    first = _kept(points)
    for name in ("chosen", "measured", "_at_load", "_within"):
        monkeypatch.setattr(module, name, _done_again)
    assert api.serve(**OPTIONS, points=points) == first


def test_the_number_of_processes_changes_nothing(points):
    assert api.serve(**OPTIONS | {"jobs": 2, "system": ["bl-tuned"]})["loads"] == [
        row for row in _kept(points)["loads"] if row["system"] == "bl-tuned"]


def test_the_command(points, capsys, tmp_path):
    with pytest.raises(SystemExit) as end:
        main(["serve", *ARGUMENTS, f"--points={points}", "--json=-",
              f"--picture={tmp_path / 'serve.png'}"])
    told = capsys.readouterr()
    assert end.value.code == 0
    assert json.loads(told.out) == json.loads(json.dumps(_kept(points)))
    assert "Requests per second within a p99" in told.err and "saturated" in told.err
    assert "bl-tuned: 16 in flight; 1 per graph; fastest with " in told.err
    assert (tmp_path / "serve.png").read_bytes().startswith(b"\x89PNG")
    assert api.frame(_kept(points))["system"].tolist() == ["bl-tuned"] * 2 + ["nic"] * 2


def test_a_system_whose_point_fails_is_left_out_and_said(monkeypatch, capsys, tmp_path):
    def broken(point, runs=None):
        if point.kind.name == "nic":
            raise RuntimeError("it burns")
        return measured.measured(point, runs)

    monkeypatch.setattr(module, "measured", broken)
    with pytest.raises(SystemExit) as end:
        main(["serve", *ARGUMENTS, "--sizes=8"])
    told = capsys.readouterr()
    assert end.value.code == 1
    assert "NIC alone, mini-batch 8: RuntimeError: it burns" in told.err
    assert "bl-tuned" in told.out


def test_a_model_of_bags_is_served():
    result = api.serve(**OPTIONS | {"model": "multi_hot", "system": ["bl-tuned", "fs"],
                                    "qps": [10_000.0], "sizes": [8]})
    assert {row["system"] for row in result["loads"]} == {"bl-tuned", "fs"}
    assert all(row["p99_us"] > 0 for row in result["loads"])


def test_a_cluster_of_several_gpus():
    result = api.serve(cluster="two_hosts", qps=[50_000.0], slo=["5ms"], sizes=[16], requests=1000,
                       system=["bl-tuned", "lc"], jobs=1)
    found = result["options"]
    assert (found["nodes"], found["gpus"], found["nics"], found["software"], found["gpu"]) == (
        2, 8, 1, "tuned", "gpu_a100")
    assert {"pcie_gen4x16", "topology_dgx_a100"} <= set(result["profiles"])
    assert [row["qps"] > 50_000 for row in result["slos"]] == [True, True]
    assert not result["failed"]


def test_sizes_that_a_short_file_does_not_fill_are_left_out(points, tmp_path):
    short = api.serve(**OPTIONS | {"system": ["bl-paper"], "qps": [50_000.0], "sizes": [8, 512]},
                      **_file(tmp_path, 300))
    assert [row["mini_batch"] for row in short["mini_batches"]] == [8]
    assert "bl-paper, mini-batches of 512: too few samples, left out" in short["notes"]


def _file(tmp_path, samples: int) -> dict:
    from tests.sim import inputs

    return {"data": inputs.criteo(tmp_path / "train.txt", samples), "format": "criteo"}


def test_the_picture_has_a_line_for_each_system(points, tmp_path):
    result = _kept(points)
    lines = {each.name: each for each in chart_of(result).panels[0].series}
    for system in ("bl-tuned", "nic"):
        assert len(lines[system].x) == 2  # a load, and the bound of 300 us
    assert lines["bound 50 us"].y == [50, 50] and lines["bound 300 us"].labels[1] == "300 us"
    draw_serve(result, tmp_path / "x.png")
    nothing = result | {"loads": [], "slos": []}
    draw_serve(nothing, tmp_path / "y.svg")
    assert (tmp_path / "x.png").exists() and (tmp_path / "y.svg").exists()


def test_tables_say_what_there_is(points):
    bounds, loads, costs = serve_tables(_kept(points))
    said = [cell for column in bounds.columns for cell in column.cells]
    assert "50 us" in said and "none" in said
    assert any("saturated" in column.cells for column in loads.columns)
    assert "mini-batches of 32" in str(costs.title) and costs.row_count == 2
    under = _kept(points)["slos"][0] | {"slo_us": 1e6}
    table = serve_tables(_kept(points) | {"slos": [under, under | {"system": "nic"}]})[0]
    assert "under 1 k/s" in [cell for column in table.columns for cell in column.cells]


def test_numbers_in_words():
    assert [said_us(us) for us in (7.4, 100, 999, 1000, 12_345)] == [
        "7 us", "100 us", "999 us", "1 ms", "12.3 ms"]
    assert [said_qps(qps) for qps in (12, 1000, 1_234_567, 24e6)] == [
        "12 /s", "1 k/s", "1.23 M/s", "24 M/s"]


@pytest.mark.parametrize(("options", "said"), [
    ({"system": ["gpu"]}, "system must be one of cpu-mpi, "),
    ({"system": ["fs", "fs"]}, "system must be given once, not 'fs' twice"),
    ({"qps": [0.0]}, "qps must be above 0 and finite, not 0.0"),
    ({"qps": [float("inf")]}, "qps must be above 0 and finite, not inf"),
    ({"slo": ["100"]}, "slo must be a string with a number and a unit"),
    ({"slo": ["0us"]}, "slo must be above 0, not '0us'"),
    ({"slo": ["1ms", "1000us"]}, "slo must be given once, not 1000.0 twice"),
    ({"slo": ["5GB"]}, "slo must have one of the units ns, us, ms, s, not "),
    ({"sizes": [8, 8]}, "sizes must differ, not 8, 8"),
    ({"sizes": [0]}, "sizes must be at least 1, not 0"),
    ({"qps": [1e-300]}, "qps must be between 0.001 and 1e+12, not 1e-300"),
    ({"qps": [1e300]}, "qps must be between 0.001 and 1e+12, not 1e+300"),
    ({"sizes": [1, 65_537]}, "sizes must be at most 65536, not 65537"),
    ({"requests": 10**12}, "requests must be at most 10000000, not 1000000000000"),
    ({"requests": 10}, "requests must be at least 1000, not 10"),
    ({"arrivals": "often"}, "arrivals must be one of poisson, bursts, not 'often'"),
    ({"arrivals": "bursts", "burst_rate": 20.0}, "burst_rate must be between 1 and 10, "),
    ({"burst_length": "soon"}, "burst_length must be a string with a number and a unit"),
    ({"nodes": 0}, "nodes must be at least 1, not 0"),
    ({"nodes": 1, "system": ["cpu-mpi"]}, "nodes must be at least 2 of cpu-mpi, not 1"),
    ({"software": "slow"},
     "software must be one of eager, eager_h100, tuned, tuned_h100, not 'slow'"),
    ({"model": "netflix"}, "model must be one of kaggle, terabyte, avazu, movielens"),
    ({"gpu": "gpu_none"}, "gpu must be one of "),
    ({"in_flight": 0}, "in_flight must be at least 1, not 0"),
    ({"jobs": 0}, "jobs must be at least 1, not 0"),
    ({"picture": "serve.txt"}, "picture must end in .png, .svg or .pdf, not 'serve.txt'"),
    ({"points": __file__}, "points must be a folder, not the file"),
    ({"seed": -1}, "seed must be between 0 and 2^64 - 1, not -1"),
])
def test_mistakes_are_one_line(options, said, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError) as error:
        api.serve(**options)
    assert str(error.value).startswith(said)
    with pytest.raises(SystemExit) as end:
        main(["serve", *(f"--{name.replace('_', '-')}={_text(value)}"
                         for name, value in options.items())])
    assert end.value.code == 2
    assert capsys.readouterr().err == f"sim: {error.value}\n"
    assert list(tmp_path.iterdir()) == []


def _text(value) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def test_numbers_of_the_command_line(capsys):
    for option, said in (("--qps=many", "qps must be auto or numbers with commas between, not "),
                         ("--sizes=8,x", "sizes must be integers with commas between, not '8,x'")):
        with pytest.raises(SystemExit) as end:
            main(["serve", option])
        assert end.value.code == 2 and capsys.readouterr().err.startswith(f"sim: {said}")


def test_a_single_node_has_no_mpi():
    _, systems, loads, slos = request_of(setting_of(), None, None, ["1ms"], None, "1ms", nodes=1)
    assert systems == ["bl-paper", "bl-tuned", "fs"] and loads is None and slos == [1000.0]


def test_help_has_every_option(capsys):
    with pytest.raises(SystemExit) as end:
        main(["serve", "--help"])
    assert end.value.code == 0
    said = capsys.readouterr().out
    for name in ("qps", "slo", "system", "arrivals", "burst-rate", "points", "picture", "json"):
        assert f"--{name}" in said


def test_requests_have_the_samples_of_the_model():
    def candidates(model: str, **own) -> tuple[int, ...]:
        found, *_ = request_of(setting_of(), model, [1.0], ["1ms"], ["bl-tuned"], "1ms", **own)
        return found.candidates

    assert candidates("kaggle") == (1,)
    assert (min(candidates("ranking")), max(candidates("ranking"))) == (100, 700)
    assert candidates("ranking", candidates=(5,)) == (5,)
    assert candidates_of("ranking", ("some.csv",)) == (1,)
    with pytest.raises(ValueError, match="candidates must be between 1 and 65536, not 0"):
        candidates("kaggle", candidates=(0,))
    with pytest.raises(ValueError, match="candidates must be at most 1000 with 20,000 requests"):
        candidates("kaggle", candidates=(1001,))

"""``reproduce results``: rows, ratios, changes, picture, answer and files, from made-up metrics."""

import csv
import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markupsafe import escape

from host.systems.devices import SMARTNIC_LINK
from sim import api
from sim.cli.main import main
from sim.evaluation.compared import METRICS
from sim.evaluation.fields import devices_of
from sim.evaluation.point import Point
from sim.evaluation.store import Store
from sim.evaluation.sweep import sweep
from sim.experiments.checks.every import comparisons
from sim.experiments.results.answer import answer_of
from sim.experiments.results.cases import MOST_KEYS, WORKLOADS, Case, Measured, cases_of
from sim.experiments.results.changes import CHANGES, FAIR, SAMPLES, UNMODELLED
from sim.experiments.results.page import page_of
from sim.experiments.results.picture import Line, chart_of, line_of
from sim.experiments.results.results import FILES, results
from sim.experiments.results.sensitivity import monte_carlo, section_of, strongest, tornado
from sim.experiments.results.serving import section_of as section_of_served
from sim.experiments.results.serving import served_of
from sim.experiments.sensitivity.kinds import width_of
from sim.experiments.sensitivity.spread import Spread
from sim.page.rows import COLUMNS
from tests.browser import looked, needs_chromium

MODELS = ("kaggle", "two_towers")


def metrics_of(task: Measured | Spread) -> dict:
    """Return made-up metrics: EN is twice as fast on Kaggle, and a third as fast on bags."""
    if isinstance(task, Spread):
        return spread_of(task)
    one_hot = task.point.workload.name == "kaggle"
    us = {"bl-tuned": 30.0, "fs": 60.0, "en": 15.0 if one_hot else 90.0}[task.system]
    if task.point.cluster.wire == "float16" and task.system == "bl-tuned":
        us /= 1.5
    if task.point.cluster.link == SMARTNIC_LINK and task.system == "bl-tuned":
        us *= 7
    if task.point.cluster.scaled and "kernel_us" in task.point.cluster.scaled[0][0] and \
            task.system == "en":
        us *= 3
    if task.system == "fs" and not one_hot:
        raise RuntimeError("the NIC is <away>")
    return {"system": task.system, "interval_us": us, "service_us": 2 * us,
            "bottleneck": "nic" if task.system == "en" else "link", "bottleneck_us": us,
            "network_bytes_per_sample": 100.0 * (1 if task.system != "en" or one_hot else 9),
            "gpu_memory_bytes": 10**9, "samples_per_second": 1e6 / us, "options": ["made up"],
            "why": None, "source": "made up", "notes": [],
            "counts": {"keys": 26.0, "bags": 26.0, "foreign_bags": 1000.0,
                       "foreign_rows": 500.0 if one_hot else 9000.0}}


def spread_of(task: Spread) -> dict:
    """Return made-up ratios: the draws are 0.01 to 1.01, doubled for EN; put_us matters most."""
    draws = {"fs": [each / 100 for each in range(1, 102)],
             "en": [each / 50 for each in range(1, 102)]}
    ends = {name: {constant: [0.9, 3.0] if constant == "nccl_network.put_us" else [1.9, 2.0]
                   for constant, _ in task.widths} for name in draws}
    return {"nominal": {}, "draws": draws, "ends": ends, "source": "", "notes": [],
            "held": {"fs": [], "en": ["gpu_h100.resident_multiprocessors"]}}


def served(case: Case, folder: Path, jobs: int | None, progress, **_) -> dict:
    """Return made-up latencies: EN serves twice the load of the others."""
    progress(1, 2, 0.5)
    return {"options": {"sizes": [32, 128], "candidates": [100, 700], "requests": 2000},
            "notes": [], "failed": [{"what": "fs at 2,000/s", "error": "OSError: full"}],
            "systems": [{"system": "en", "options": ["2 threads", "placement rows"], "why": None}],
            "loads": [{"system": name, "qps": qps, "saturated": name == "fs",
                       **dict.fromkeys(("p50_us", "p99_us", "p99_9_us"), None if name == "fs" else
                                       qps / 10)}
                      for name in ("bl-tuned", "fs", "en") for qps in (1000.0, 2000.0, 10_000.0)],
            "slos": [{"system": name, "slo_us": 60_000.0, "more": name == "fs",
                      "qps": 24_680.0 if name == "en" else 12_340.0}
                     for name in ("bl-tuned", "fs", "en")]}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    return folder, results(cases_of(MODELS), folder, jobs=1, how=metrics_of, command=" --model X")


def test_every_workload_has_a_row_for_each_mini_batch_and_cluster():
    cases = cases_of()
    assert len({(case.workload, case.cluster, case.mini_batch) for case in cases}) == len(cases)
    assert {case.workload for case in cases} == set(WORKLOADS)
    for name in WORKLOADS:
        sizes = {case.mini_batch for case in cases if case.workload == name}
        assert len(sizes) >= 2 and len([case for case in cases if case.workload == name]) == 2 * \
            len(sizes), name
    too_large = {(case.workload, case.mini_batch) for case in cases if case.why}
    assert too_large == {("production", 16384), ("production", 65536)}
    assert all(f"{MOST_KEYS // 10**6}" in case.why for case in cases if case.why)


@pytest.mark.thorough
def test_large_mini_batches_run_fewer_samples_on_nics():
    by = {(case.workload, case.mini_batch): case for case in cases_of(clusters=("h100x8",))}
    assert by["kaggle", 128].sampled is by["dcnv2", 2048].sampled is None
    large = by["dcnv2", 65536]
    assert (large.sampled, large.measured, large.warmup) == (2048, 2, 0)
    points = {each.system: each.point for each in large.systems}
    assert points["fs"].system.sampled == points["en"].system.sampled == 2048
    assert points["bl-tuned"].system.sampled is None


def test_rows_ratios_and_changes(made):
    folder, found = made
    assert [name for name in FILES if (folder / name).exists()] == list(FILES)
    assert json.loads((folder / "results.json").read_text()) == found
    assert found["schema"] and found["version"]
    assert all(len(digest) == 64 for digest in found["profiles"].values())
    row = found["rows"][0]
    assert (row["workload"], row["cluster"], row["mini_batch"]) == ("kaggle", "h100", 128)
    assert row["ratios"] == {"fs": 0.5, "en": 2.0} and row["bags_per_row"] == 2.0
    assert [each["change"] for each in row["changes"]] == [change.name for change in CHANGES]
    other = found["rows"][1]  # of the same workload: fair changes only
    assert [each["change"] for each in other["changes"]] == [
        change.name for change in CHANGES if change.kind == FAIR]
    after = {each["change"]: each["ratio"] for each in row["changes"]}
    assert after["16-bit values between nodes"] == pytest.approx(2 / 1.5)
    assert after["the GPU on the link of the SmartNIC"] == pytest.approx(14)
    assert row["largest"]["change"] == "16-bit values between nodes"  # the larger one is not fair


def test_ranges_of_the_ratios_are_percentiles_of_the_draws(made):
    folder, found = made
    row = found["rows"][0]
    assert [row["spread"]["en"][name] for name in ("low", "median", "high", "above")] == \
        pytest.approx([0.12, 1.02, 1.92, 51 / 101])
    assert row["spread"]["fs"]["high"] == pytest.approx(0.96)
    assert strongest(row["spread"]["en"])[0] == ("nccl_network.put_us", (0.9, 3.0))
    with open(folder / "results.csv", newline="") as file:
        values = {(each["system"], each["metric"]): each for each in csv.DictReader(file)
                  if each["workload"] == "kaggle"}
    own = values["en", "speedup_over_bl-tuned"]
    assert (own["value"], own["low"], own["high"]) == ("2.0", "0.12", "1.92")
    one = values["en", "speedup_over_bl-tuned over nccl_network.put_us"]
    assert (one["value"], one["low"], one["high"]) == ("2.0", "0.9", "3.0")
    # A system that is not measured has no range.
    assert found["rows"][-1]["spread"]["fs"] is None
    assert values["fs", "speedup_over_bl-tuned"]["low"]


def test_the_baseline_of_the_draws_has_every_option():
    for case in cases_of(("kaggle", "multi_hot")):
        points = {each.system: each.point for each in case.systems}
        assert case.spread.base == points["bl-tuned"] and not case.spread.base.system.fixed
        assert case.spread.base.cluster.rdma and case.spread.base.flights[-1] == (16, 8)
        assert dict(case.spread.others) == {name: points[name] for name in ("fs", "en")}
        widths = dict(case.spread.widths)
        assert widths["nccl_network.put_us"] == width_of("nccl_network.put_us")
        assert [name for name in widths if name.startswith("cpu_")] == [
            "cpu_xeon_6226r.graph_key_ns"]


def test_the_page_shows_uncertain_constants(made):
    folder, found = made
    page = (folder / "results.html").read_text()
    for said in ("0.12 to 1.92", "All uncertain constants drawn together",
                 "One uncertain constant at a time", "collectives over a network",
                 "kaggle, 128 samples, h100, EN: gpu_h100.resident_multiprocessors"):
        assert said in page, said
    both, one = monte_carlo(found["rows"]), tornado(found["rows"])
    bars = both.panels[0].series[0]
    assert (bars.base[0], bars.base[0] + bars.x[0]) == pytest.approx((0.12, 1.92))
    assert [panel.title for panel in one.panels] == [
        "kaggle, 128 samples, h100", "two_towers, 512 samples, h100"]
    least, largest = one.panels[0].series
    assert least.y[0] == "nccl_network.put_us" and least.x[0] == pytest.approx(0.9 - 2)
    assert largest.x[0] == pytest.approx(3.0 - 2) and len(least.y) == 5
    none = section_of([row | {"spread": {"en": None, "fs": None}} for row in found["rows"]], "")
    assert "Not measured" in none.parts[0].lines[0]


def test_csv_and_json_have_the_same_figures(made):
    folder, found = made
    with open(folder / "results.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS == (
        "workload", "cluster", "mini_batch", "profile", "fidelity", "system", "metric", "value",
        "low", "high", "unit")
    for row in found["rows"]:
        own = {(each["system"], each["metric"]): each["value"] for each in rows if [
            each["workload"], each["cluster"], int(each["mini_batch"])] == [
            row["workload"], row["cluster"], row["mini_batch"]]}
        assert float(own["en", "speedup_over_bl-tuned"]) == row["ratios"]["en"]
        for name, each in row["systems"].items():
            assert own[name, "interval_us"] == ("" if each["interval_us"] is None else
                                                str(each["interval_us"]))
        assert float(own["", "foreign_bags_per_distinct_foreign_row"]) == row["bags_per_row"]


def test_page_states_losses_failures_and_changes(made):
    folder, found = made
    page = (folder / "results.html").read_text()
    HTMLParser().feed(page)
    assert found["answer"] in page
    assert found["answer"].startswith("EN is slower than bl-tuned in 4 of 8 rows, and faster in 4.")
    assert "EN loses on two_towers, by at most 3.0 times" in found["answer"]
    assert "a pooled vector for each bag (two_towers)" in found["answer"]
    assert len(found["failed"]) == 4
    assert page.count("fs, RuntimeError: the NIC is &lt;away&gt;") == 4
    assert "python -m sim reproduce results --model X --output DIR" in page
    assert all(escape(change.name) in page for change in CHANGES)


def test_a_failed_baseline_has_its_reason(tmp_path):
    def broken(task: Measured) -> dict:
        if getattr(task, "system", "") == "bl-tuned":
            raise ValueError("bytes of a node must be at most 80 GB")
        return metrics_of(task)

    found = results(cases_of(("kaggle",), ("h100",)), tmp_path, jobs=1, how=broken)
    assert found["answer"] == "No row has a measurement of both EN and bl-tuned."
    assert "bytes of a node must be at most" in found["rows"][0]["why"]
    assert "bytes of a node must be at most" in (tmp_path / "results.html").read_text()
    assert "bytes of a node must be at most" in found["failed"][0]["error"]


@pytest.mark.parametrize("limit, status", [("GPU memory", 0), (None, 1)])
def test_the_command_fails_for_an_unexpected_error_but_not_for_a_limit(
        monkeypatch, tmp_path, capsys, limit, status):
    def measured(task: Measured, runs: Store | None) -> dict:
        if getattr(task, "system", "") != "en":
            return metrics_of(task)
        if limit is None:
            raise ValueError("it burns")
        return metrics_of(task) | dict.fromkeys(METRICS) | {"why": limit}

    for kind in (Measured, Spread):
        monkeypatch.setattr(kind, "measured", measured)
    with pytest.raises(SystemExit) as end:
        main(["reproduce", "results", "--model=kaggle", "--demo", "--jobs=1",
              f"--output={tmp_path}"])
    told = capsys.readouterr()
    assert end.value.code == status
    assert ("ValueError: it burns" in told.err) is (status == 1)
    assert f"kaggle, 128 samples, h100: en: {limit or 'ValueError: it burns'}" in told.out


def test_an_error_of_serving_is_a_failure(tmp_path):
    def broken(*_, **__) -> dict:
        raise ValueError("sizes must be at most 1")

    found = results(cases_of(("kaggle",), ("h100",)), tmp_path, jobs=1, how=metrics_of,
                    serve=broken)
    assert found["failed"] == [{"point": "serving, kaggle", "error": "sizes must be at most 1"}]
    assert found["serving"] == [] and found["rows"][0]["ratios"]["en"] == 2.0


def test_an_interrupted_run_keeps_its_points(tmp_path, made):
    cases = cases_of(MODELS)
    tasks = [task for case in cases for task in case.tasks()]
    sweep(tasks[::3], metrics_of, Store(tmp_path / "points"), jobs=1)
    results(cases, tmp_path, jobs=1, how=metrics_of, command=" --model X")
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (made[0] / name).read_bytes(), name


def test_a_changed_option_applies_to_systems_that_have_it():
    en, base = (Point.named(name) for name in ("en", "bl-tuned"))
    one = next(change for change in CHANGES if change.fixed == ("one_collective=false",))
    assert one.of(base).system.fixed == ("one_collective=false",) and one.of(en) == en


def test_costs_that_the_models_miss_have_the_factors_of_the_checks():
    """The factor is the error of the check; times grow by it, and rates shrink."""
    checks = {(each.name, check.name): check for each in comparisons() for check in each.checks}
    own = {change.name: change for change in CHANGES if change.kind == UNMODELLED}
    factors = {name: change.factor or 0.0 for name, change in own.items()}
    assert list(own) == ["slower kernels", "slower host software", "slower network"]
    point = cases_of(("kaggle",))[0].systems[0].point
    for name, of, check in (
            ("slower kernels", "H100 whole steps", "alone, terabyte, 512 samples, EN"),
            ("slower host software", "H100 whole steps",
             "launch of a graph of 1, terabyte, 512 samples, EN"),
            ("slower network", "100 Gb/s NIC", "drop of iterations a second")):
        missed = checks[of, check]
        assert factors[name] == pytest.approx(missed.theirs / missed.ours) and factors[name] > 1.3
    kernels, software, network = (devices_of(each.of(point).cluster) for each in own.values())
    plain = devices_of(point.cluster)
    slower = factors["slower kernels"]
    assert kernels.gpu.gpu.kernel_us == pytest.approx(slower * plain.gpu.gpu.kernel_us)
    assert kernels.gpu.gpu.memory_bandwidth_gb_s == pytest.approx(
        plain.gpu.gpu.memory_bandwidth_gb_s / slower)
    assert software.software.graph_us == pytest.approx(
        factors["slower host software"] * plain.software.graph_us)
    assert network.network.bandwidth_gbit_s == pytest.approx(
        plain.network.bandwidth_gbit_s / factors["slower network"])


def test_changes_have_the_kernel_level_and_other_samples():
    point = cases_of(("kaggle",))[0].systems[0].point
    level = next(change for change in CHANGES if "kernels" in change.fields)
    assert level.kind == FAIR and devices_of(level.of(point).cluster).kernels == 3
    seed, = (change for change in CHANGES if change.kind == SAMPLES)
    assert seed.of(point) == point.changed(seed=point.workload.seed + 1)
    assert not seed.applies(point.changed(data=("x.csv",), format="criteo"))
    first, other = cases_of(("kaggle",), ("h100", "h100x8"))[:2]
    assert (first.first, other.first) == (True, False)
    assert [change.name for change, *_ in first.changed] == [change.name for change in CHANGES]


def test_placement_is_searched_and_the_change_is_that_of_the_paper(made):
    case = cases_of(("kaggle",))[0]
    assert {each.point.cluster.placement for each in case.systems} == {None}
    assert case.spread.memory == case.systems[0].memory > 0
    placed, = ((change, *both) for change, *both in case.changed if "placement" in change.fields)
    assert placed[0].kind == FAIR
    assert {each.point.cluster.placement for each in placed[1:]} == {"even"}
    assert "Chosen placements (and points): bl-tuned: made up (8)" in (
        made[0] / "results.html").read_text()


def test_the_page_has_the_headlines_after_each_missed_cost(made):
    folder, found = made
    row = found["rows"][0]
    kernels = next(each for each in row["changes"] if each["change"] == "slower kernels")
    assert kernels["kind"] == UNMODELLED and kernels["factor"] == pytest.approx(1.39, abs=0.01)
    table = section_of(found["rows"], "").parts[-1]
    assert table.rows[0] == ["kaggle, 128 samples, h100", "none", None, 30.0, 15.0, 2.0]
    assert ["kaggle, 128 samples, h100", "slower kernels", kernels["factor"], 30.0, 45.0,
            pytest.approx(2 / 3)] in [list(each) for each in table.rows]
    with open(folder / "results.csv", newline="") as file:
        values = {(each["system"], each["metric"]): each["value"] for each in csv.DictReader(file)
                  if each["workload"] == "kaggle" and each["cluster"] == "h100"
                  and each["mini_batch"] == "128"}
    assert values["en", "interval_us with slower kernels"] == "45.0"


def test_rows_are_served_by_the_given_function(tmp_path):
    told, given, cases = [], [], cases_of(("kaggle", "two_towers"))
    search = replace(cases[0].spread, draws=1)

    def serve(*args, runs: Path, searched: dict) -> dict:
        given.append((runs, searched))
        return served(*args)

    found = results(cases, tmp_path, jobs=1, how=metrics_of, serve=serve,
                    progress=lambda *args: told.append(args), searches=lambda case: [search])
    assert given == [(tmp_path / "runs", {search: spread_of(search)})]
    assert found["points"] == len({task for case in cases for task in case.tasks()})
    row, = found["serving"]  # two_towers is not served
    assert (row["workload"], row["cluster"], row["mini_batch"]) == ("kaggle", "h100", 128)
    assert told[-1][0] == told[-1][1] and told[-1][2] == pytest.approx(1)
    assert [share for *_, share in told] == sorted(share for *_, share in told)
    assert {"point": "serving, kaggle, 128 samples, h100, fs at 2,000/s",
            "error": "OSError: full"} in found["failed"]
    page = (tmp_path / "results.html").read_text()
    assert all(text in page for text in (
        "24,680", "over 12,340", "100 to 700", "en: 2 threads; placement rows"))
    assert row["systems"][0]["options"] == ["2 threads", "placement rows"]
    assert "Not measured: --demo" not in page
    loads = section_of_served(found["serving"]).parts[1].rows
    assert [each[2] for each in loads] == [1000.0, 10_000.0]
    assert loads[0][3:] == [100.0] * 3 + [None] * 3 + [100.0] * 3
    with open(tmp_path / "results.csv", newline="") as file:
        found = {(each["system"], each["metric"]): each for each in csv.DictReader(file)}
    values = {key: each["value"] for key, each in found.items()}
    over = found["fs", "requests_per_second within p99 of 60000 us"]
    assert (over["value"], over["low"]) == ("", "12340.0")
    assert values["en", "requests_per_second within p99 of 60000 us"] == "24680.0"
    assert values["bl-tuned", "p99_us at 2000 requests/s"] == "200.0"
    assert values["fs", "p99_us at 2000 requests/s"] == ""


@pytest.mark.thorough
def test_other_models_are_served_on_their_first_row():
    assert [(case.workload, case.cluster) for case in served_of(cases_of())] == [
        ("kaggle", "h100"), ("multi_hot", "h100"), ("ranking", "h100")]
    case, = served_of(cases_of(("two_towers", "avazu")))
    assert (case.workload, case.mini_batch, case.cluster) == ("two_towers", 512, "h100")


def test_the_parts_of_the_page_are_in_order(made):
    titles = [section.title for section in page_of(made[1], "").sections]
    assert titles == ["When sending rows pays", "Where EN is faster", "Serving", "Sensitivity",
                      "Appendix: how the page is made"]
    assert page_of(made[1], "").picture is None


def test_the_line_is_where_the_fitted_ratio_is_1(made):
    points = [(x, y, x ** 2 / y) for x in (0.5, 1.0, 3.0) for y in (2.0, 8.0, 40.0)]
    line = Line(points)
    assert line.right == len(points)
    assert Line([*points, (3.0, 8.0, 0.9)]).right == len(points)
    ends = line.ends((0.5, 3.0), (0.1, 40.0))
    assert [x ** 2 / y for x, y in ends] == pytest.approx([1, 1]) and len(ends) == 2
    assert line.ends((0.5, 1.0), (2.0, 40.0)) == []
    assert line_of(made[1]["rows"][:2]) is None
    panel = chart_of(made[1]["rows"]).panels[0]
    assert list(panel.series[0].shades)[:1] == [1.0]


def test_the_answer_names_why_the_bottleneck_holds(made):
    row = json.loads(json.dumps(made[1]["rows"][-1]))
    row["ratios"]["en"] = 0.5
    row["systems"]["en"]["bottleneck"] = "cpu"
    assert "the bottleneck of EN is cpu" in answer_of([row])
    row["systems"]["en"] |= {"bottleneck": "nic", "network_bytes_per_sample": 1e9, "tables": []}
    assert "sends a vector for each row" in answer_of([row])
    row["systems"]["en"]["tables"] = [{"pool": "owner"}]
    assert "tables pool at their owner where that is faster" in answer_of([row])
    for share, said in ((0.81, True), (0.79, False)):
        row["systems"]["en"]["busiest"] = {"us": share * row["systems"]["en"]["interval_us"]}
        assert ("the bottleneck is the link of a NIC" in answer_of([row])) == said
    row["ratios"]["en"] = 0.995
    assert answer_of([row]).startswith("EN is slower than bl-tuned in 0 of 1 rows, and faster in 0")


@pytest.mark.parametrize("options, message", [
    ({"figures": ["results", "fig22"]}, "figure results must be given alone, not with fig22"),
    ({"gpu": "gpu_a100"}, "gpu must be left out with results"),
    ({"seeds": 3}, "seeds must be left out with results, not 3: use --seed"),
    ({"model": "nope"}, "model must be one of"),
    ({"data": "x.csv", "model": "kaggle,avazu"}, "model must be one model with data"),
    ({"format": "criteo"}, "format must go with data")])
def test_mistakes(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        api.reproduce(**{"figures": ["results"], "output": tmp_path} | options)


@needs_chromium
@pytest.mark.thorough
def test_the_page_in_a_browser(made, tmp_path):
    for look in looked(made[0] / "results.html", tmp_path):
        assert (look.wrong, look.overflow, look.wide) == ([], 0, [])
        assert look.plots == look.drawn >= 1
        assert "kaggle, 128 samples, h100: EN 2.00x" in look.hovers[0]

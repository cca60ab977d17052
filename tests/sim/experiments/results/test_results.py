"""``reproduce results``: rows, ratios, changes, picture, answer and files, from made-up metrics."""

import csv
import json
from html.parser import HTMLParser

import pytest
from markupsafe import escape

from host.systems.devices import SMARTNIC_LINK
from sim import api
from sim.evaluation.point import Point
from sim.evaluation.store import Store
from sim.evaluation.sweep import sweep
from sim.experiments.results.answer import answer_of
from sim.experiments.results.cases import MOST_KEYS, WORKLOADS, Measured, cases_of
from sim.experiments.results.changes import CHANGES
from sim.experiments.results.picture import Line, chart_of, line_of
from sim.experiments.results.results import FILES, results
from sim.experiments.results.sensitivity import monte_carlo, section_of, strongest, tornado
from sim.experiments.sensitivity.kinds import width_of
from sim.experiments.sensitivity.spread import Spread
from sim.page.rows import COLUMNS
from tests.browser import looked, needs_chromium

MODELS = ("kaggle", "two_towers")


def told(task: Measured | Spread) -> dict:
    """Return made-up metrics: EN is twice as fast on Kaggle, and a third as fast on bags."""
    if isinstance(task, Spread):
        return spread_of(task)
    one_hot = task.point.workload.name == "kaggle"
    us = {"bl-tuned": 30.0, "fs": 60.0, "en": 15.0 if one_hot else 90.0}[task.system]
    if task.point.cluster.wire == "float16" and task.system == "bl-tuned":
        us /= 1.5
    if task.point.cluster.link == SMARTNIC_LINK and task.system == "bl-tuned":
        us *= 7
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


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    return folder, results(cases_of(MODELS), folder, jobs=1, how=told, command=" --model X")


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
        assert not any(name.startswith("cpu_") for name in widths)


def test_the_page_shows_uncertain_constants(made):
    folder, found = made
    page = (folder / "results.html").read_text()
    for said in ("0.12 to 1.92", "All uncertain constants drawn together",
                 "One uncertain constant at a time", "collectives over a network",
                 "kaggle, h100, 128 samples, EN: gpu_h100.resident_multiprocessors"):
        assert said in page, said
    both, one = monte_carlo(found["rows"]), tornado(found["rows"])
    bars = both.panels[0].series[0]
    assert (bars.base[0], bars.base[0] + bars.x[0]) == pytest.approx((0.12, 1.92))
    assert [panel.title for panel in one.panels] == ["kaggle, 128, h100", "two_towers, 512, h100"]
    least, largest = one.panels[0].series
    assert least.y[0] == "nccl_network.put_us" and least.x[0] == pytest.approx(0.9 - 2)
    assert largest.x[0] == pytest.approx(3.0 - 2) and len(least.y) == 5
    none = section_of({"rows": [row | {"spread": {"en": None, "fs": None}}
                                for row in found["rows"]]}, "")
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
        return told(task)

    found = results(cases_of(("kaggle",), ("h100",)), tmp_path, jobs=1, how=broken)
    assert found["answer"] == "No row has a measurement of both EN and bl-tuned."
    assert "bytes of a node must be at most" in found["rows"][0]["why"]
    assert "bytes of a node must be at most" in (tmp_path / "results.html").read_text()


def test_an_interrupted_run_keeps_its_points(tmp_path, made):
    cases = cases_of(MODELS)
    tasks = [task for case in cases for task in case.tasks()]
    sweep(tasks[::3], told, Store(tmp_path / "points"), jobs=1)
    results(cases, tmp_path, jobs=1, how=told, command=" --model X")
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (made[0] / name).read_bytes(), name


def test_a_changed_option_applies_to_systems_that_have_it():
    en, base = (Point.named(name) for name in ("en", "bl-tuned"))
    one = next(change for change in CHANGES if change.fixed == ("one_collective=false",))
    assert one.of(base).system.fixed == ("one_collective=false",) and one.of(en) == en


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


def test_the_answer_names_a_bottleneck_that_a_nic_does_not_relieve(made):
    row = json.loads(json.dumps(made[1]["rows"][-1]))
    row["systems"]["en"]["bottleneck"] = "cpu"
    assert "the bottleneck of EN is cpu" in answer_of([row])
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

"""Claims judged on made-up results whose figures are known."""

import dataclasses

import pytest

from sim.experiments.claims import inference, system, training
from sim.experiments.claims.book import Book, mean
from sim.experiments.claims.judge import judge
from sim.experiments.claims.registry import CLAIMS
from sim.experiments.claims.verdict import Claim, factors, steps_of
from sim.experiments.figures.plots.plot import Plot
from sim.experiments.figures.registry import NAMES, exhibit
from sim.experiments.points.setting import Setting
from sim.experiments.sweep.sweep import Outcome, Results, sweep
from sim.files.store import Store
from tests.sim.experiments.measured import told

SETTING = Setting(datasets=("kaggle", "avazu"), scale_nodes=(2, 16), shares=(0.0, 0.1, 0.5),
                  mini_batches=(("kaggle", 32), ("avazu", 32)))
PLOTS = {name: found for name in NAMES if isinstance(found := exhibit(name), Plot)}
POINTS = list(dict.fromkeys(point for plot in PLOTS.values() for point in plot.points(SETTING)))


def _results(change=lambda point, metrics: metrics) -> Results:
    return Results({point: Outcome(point, change(point, told(point))) for point in POINTS})


@pytest.fixture(scope="module")
def verdicts() -> dict:
    return {row["claim"]: row for row in judge(SETTING, _results())}


def test_every_claim_is_registered_and_names_figures_that_are_there():
    defined = [value for module in (inference, system, training)
               for value in vars(module).values() if isinstance(value, Claim)]
    assert len(CLAIMS) == len(defined) and {claim.name for claim in CLAIMS} == {
        claim.name for claim in defined}
    assert {name for claim in CLAIMS for name in claim.figures} <= set(NAMES)


def test_every_claim_has_a_verdict_for_both_profiles_and_baselines(verdicts):
    assert list(verdicts) == [f"C{number}" for number in range(1, 25)]
    for row in verdicts.values():
        assert [(one["software"], one["base"]) for one in row["verdicts"]] == [
            ("eager", "bl-paper"), ("eager", "bl-tuned"),
            ("tuned", "bl-paper"), ("tuned", "bl-tuned")]
        assert row["agrees"] is row["verdicts"][0]["agrees"]


# Of the rules of `measured.told`: GA 1 / 0.8, NIC 2000 / 1600, RC 1 / 0.7, LC and SC about 1.
@pytest.mark.parametrize(("claim", "agrees", "said"), [
    ("C1", True, "mean 1.25x"), ("C2", True, "largest change over sizes: kaggle 0%"),
    ("C3", True, "kaggle 0.400 to 0.800"), ("C4", True, "over the NIC alone kaggle 1.43x"),
    ("C5", True, "kaggle 0.400 to 0.350"), ("C6", True, "kaggle 1.01x"),
    ("C8", True, "mean 2.30x"), ("C9", False, "lc 1.28x, sc 1.26x, ga 1.25x"),
    ("C10", False, "kaggle 1.00x"), ("C11", True, "mean 1.61x"), ("C12", True, "16 1.26x"),
    ("C13", False, "FS kaggle 2.83x"), ("C15", False, "all-to-all 25%"),
    ("C18", True, "bytes of all nodes kaggle 2.83x"), ("C19", False, "2.30x, sum 2.57x"),
    ("C20", False, "kaggle 1.00"), ("C21", False, "inference 1.25x, training 1.25x"),
    ("C22", True, "none"), ("C24", True, "ga 1.25x, rc 1.43x")])
def test_verdicts(verdicts, claim, agrees, said):
    row = verdicts[claim]
    assert (row["agrees"], said in row["ours"]) == (agrees, True), row["ours"]


@pytest.mark.parametrize(("slower", "agrees"), [(9, False), (1, None)])
def test_one_part_that_differs_settles_a_claim_whatever_was_not_measured(slower, agrees):
    def change(point, metrics):
        if point.system != "rc" or point.batching != "graph":
            return metrics
        if point.dataset == "avazu":
            return None
        return metrics | {"interval_us": slower * metrics["interval_us"]}

    row = next(row for row in judge(SETTING, _results(change)) if row["claim"] == "C4")
    assert row["agrees"] is agrees, row["ours"]


def test_a_claim_over_data_sets_that_are_not_there_is_not_judged(verdicts):
    assert verdicts["C7"]["agrees"] is None
    assert verdicts["C7"]["why"].startswith("not measured")


def test_what_failed_is_the_reason_why_a_claim_is_not_judged():
    def without(point, metrics):
        return None if point.label == "FS" and point.dataset == "avazu" else metrics

    results = Results({point: Outcome(point, metrics, None if metrics else "OSError: gone")
                       for point in POINTS for metrics in [without(point, told(point))]})
    row = next(row for row in judge(SETTING, results) if row["claim"] == "C8")
    assert row["agrees"] is None and "FS on avazu: OSError: gone" in row["why"]


def test_mini_batches_served_alone_that_give_another_verdict_are_named():
    def slow_alone(point, metrics):
        return metrics | {"service_us": 2000.0}

    row = next(row for row in judge(SETTING, _results(slow_alone)) if row["claim"] == "C8")
    assert row["agrees"] is True and "served alone give another verdict: 1.00x" in row["why"]


def test_factors_agree_at_one_decimal():
    assert factors(1.2, {"a": 1.16, "b": 1.15}).agrees is True
    assert factors(1.2, {"a": 1.14, "b": 1.14}).agrees is False
    assert factors(1.2, {"a": 1.3, "b": None}).agrees is None
    assert mean({"a": 1.0, "b": 2.0}) == 1.5 and mean({}) is mean({"a": None}) is None


def test_steps():
    assert steps_of([1, 2, 2]) == (True, False) and steps_of([3, 2, 1]) == (False, True)
    assert steps_of([1, 2, 1.99], slack=0.01) == (True, False)
    assert steps_of([1, None]) is None


def test_training_speedups_are_of_rates_and_inference_of_times():
    book = Book(SETTING, _results())
    assert book.speedups("ga")["kaggle"] == pytest.approx(1.25)
    assert book.speedups("ga", "training")["kaggle"] == pytest.approx(1.25)
    assert book.graph == "ga" and Book(SETTING, _results(), base="bl-tuned").graph == "bl-tuned+ga"


def test_rows_of_a_figure():
    rows = PLOTS["fig22"].rows(SETTING, _results())
    row = next(row for row in rows if (row.dataset, row.profile, row.system, row.metric) == (
        "avazu", "tuned", "RC", "interval_speedup_vs_bl-tuned"))
    assert row.value == pytest.approx(1000 / 1120) and row.unit == "x"
    assert (row.nodes, row.mini_batch, row.fidelity) == (4, 32, "model")
    size = next(row for row in PLOTS["fig20"].rows(SETTING, _results())
                if row.system == "GA+RC 50%" and row.metric == "saved_lookups")
    assert size.value == 500


def test_a_baseline_is_the_same_point_in_every_figure_and_fidelity(tmp_path):
    rtl = dataclasses.replace(SETTING, fidelity="rtl")
    assert rtl.point("kaggle", "bl-paper") == SETTING.point("kaggle", "bl-paper")
    assert rtl.point("kaggle", "lc").fidelity == "rtl"
    assert SETTING.point("kaggle", "lc") == SETTING.point("kaggle", "lc", remote_cache=0.5)
    figure = PLOTS["fig25"].points(SETTING)
    swept = sweep(figure, told, Store(tmp_path, "v"), jobs=1)
    assert len(swept) == len(set(figure)) < len(figure)


def test_sweeps_of_terabyte_are_shorter_but_drain_a_window():
    setting = Setting()
    assert setting.sizes("kaggle") == setting.shares
    assert setting.sizes("terabyte") == (0.0, 0.02, 0.1, 0.5)
    swept = setting.point("terabyte", "ga+lc", local_cache=0.5)
    assert (swept.warmup, swept.measured) == (16, 16)
    assert setting.point("terabyte", "fs").measured == 32
    assert setting.point("kaggle", "fs", nodes=8).measured == 32
    entry = next(entry for entry in PLOTS["fig16"].entries(setting)
                 if entry.point.dataset == "terabyte")
    assert dict(entry.bases)["bl-paper"].measured == entry.point.measured

"""The Monte Carlo as an exhibit, from made-up draws."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from sim.evaluation.setting import DEMO, Setting
from sim.experiments.figures.montecarlo import EXHIBIT, MOST_ERROR
from sim.experiments.figures.registry import HEAVY, chosen
from sim.experiments.reproduce import points_of, reproduce
from sim.experiments.sensitivity.cases import cases_of
from sim.experiments.sensitivity.nics import sets_of
from sim.experiments.sensitivity.tasks import Draws, LeftOut
from tests.sim.experiments.measured import told

SMALL = replace(DEMO, mini_batches=(("kaggle", 16),), draws=60, nic_sets=12)


def drawn_from(most: float):
    """Return a measure in which the n-th draw's speedup is n and the largest error is ``most``."""
    def how(point) -> dict:
        if isinstance(point, Draws):
            values = [float(number + 1) for number in range(point.first, point.first + point.count)]
            return {"speedups": {base.kind.name: values if base.kind.name == "bl-paper" else
                                 [1 / value for value in values] for base in point.bases},
                    "source": "generator", "notes": []}
        if isinstance(point, LeftOut):
            return {"sets": 6, "axes": ["gpu.launch_us"], "median": most / 3, "most": most,
                    "nics": {"interval_us": {"median": most / 2, "most": 2 * most}},
                    "source": "generator", "notes": []}
        return told(point)
    return how


def written(folder, system: str = "FS") -> dict[tuple[str, str], str]:
    with open(folder / "montecarlo.csv", newline="") as file:
        return {(row["profile"], row["metric"]): row["value"] for row in csv.DictReader(file)
                if row["system"] == system}


@pytest.mark.thorough
def test_percentiles_shares_and_errors_are_in_the_csv_and_on_the_page(tmp_path):
    found = reproduce(["montecarlo"], SMALL, tmp_path, jobs=1, how=drawn_from(0.012))
    assert not found["failed"] and (tmp_path / "montecarlo.png").exists()
    rows = written(tmp_path)
    for percentile in (5, 50, 95):
        assert float(rows["eager", f"inference_speedup_vs_bl-paper [percentile {percentile}]"]
                     ) == pytest.approx(np.percentile(np.arange(1, 61), percentile))
    assert float(rows["tuned", "training_speedup_vs_bl-paper [share of draws above 1]"]
                 ) == pytest.approx(59 / 60)
    assert float(rows["tuned", "training_speedup_vs_bl-tuned [share of draws above 1]"]) == 0
    assert float(rows["eager", "inference_speedup_vs_bl-paper [as it is]"]) > 1
    assert float(rows["eager", "inference_left_out_most"]) == 0.012
    assert float(rows["eager", "inference_left_out_most [interval_us of the NICs]"]) == 0.024
    own = written(tmp_path, "EN")
    assert float(own["tuned", "inference_speedup_vs_bl-tuned [percentile 50]"]) == pytest.approx(
        np.percentile(1 / np.arange(1, 61), 50))
    assert not any("training" in metric or profile == "eager" for profile, metric in own)
    page = (tmp_path / "index.html").read_text()
    for said in ("60 joint draws", "2026-11-23", "30.50x", "3.95x to 57.05x", "98%",
                 "median 0.40%, most 1.20%", "3%: held",
                 "interval_us 0.6% (2.4%)"):
        assert said in page, said
    assert "NOT held" not in page


def test_the_page_says_when_the_interpolation_is_not_good(tmp_path):
    reproduce(["montecarlo"], SMALL, tmp_path, jobs=1, how=drawn_from(MOST_ERROR * 1.01))
    page = (tmp_path / "index.html").read_text()
    assert "NOT held" in page and "3%: held" not in page


def test_a_chunk_that_failed_leaves_its_percentiles_empty(tmp_path):
    def how(point) -> dict:
        if isinstance(point, Draws) and point.first and point.full.cluster.software == "eager":
            raise RuntimeError("the machine is on fire")
        return drawn_from(0.01)(point)

    found = reproduce(["montecarlo"], SMALL, tmp_path, jobs=1, how=how)
    assert {each["point"] for each in found["failed"]} == {
        f"draws 50 to 59, kaggle, {workload}, eager" for workload in ("inference", "training")}
    rows = written(tmp_path)
    assert rows["eager", "inference_speedup_vs_bl-paper [percentile 50]"] == ""
    assert rows["tuned", "inference_speedup_vs_bl-paper [percentile 50]"] == "30.5"
    page = (tmp_path / "index.html").read_text()
    assert "n/a to n/a" in page and "the machine is on fire" in page


@pytest.mark.thorough
def test_there_are_a_thousand_draws_and_at_most_64_sets_of_runs_for_each_data_set():
    setting = Setting(datasets=("kaggle", "avazu"))
    points = EXHIBIT.points(setting)
    draws = {point for point in points if isinstance(point, Draws)}
    for dataset in setting.datasets:
        of = [each for each in draws if each.workload.dataset == dataset]
        for workload in ("inference", "training"):
            for software in ("eager", "tuned"):
                for system in ("lc+rc+sc" if workload == "inference" else "lc+sc", *(
                        ["en"] if (workload, software) == ("inference", "tuned") else [])):
                    chunks = sorted((each.first, each.count) for each in of if (
                        each.full.workload.workload, each.full.cluster.software,
                        each.full.kind.name) == (workload, software, system))
                    assert chunks == [(first, 50) for first in range(0, 1000, 50)]
        # Draws use only these NIC runs.
        sets = {workload: {point for each in of if each.full.workload.workload == workload
                           and each.full.kind.name != "en" for point in each.sets}
                for workload in ("inference", "training")}
        assert sum(map(sets_of, sets.values())) <= 64 == sum(map(len, sets.values()))
        assert len({point for each in of if each.full.kind.name == "en"
                    for point in each.sets}) == 24
    assert points_of(["montecarlo"], setting)[0] == next(iter(cases_of(setting))).sets[0]


def test_what_takes_hours_is_made_when_it_is_named():
    assert set(HEAVY) == {"tornado", "montecarlo", "phase_map", "en"}
    assert not set(HEAVY) & set(chosen([])) and not set(HEAVY) & set(chosen(["all"]))
    assert "montecarlo" in chosen(["montecarlo"]) and "phase_map" in chosen(["all", "phase_map"])

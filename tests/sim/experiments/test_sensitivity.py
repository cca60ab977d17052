"""The tornado: constants halved and doubled, and our choices changed."""

from dataclasses import replace

import pytest

from sim.evaluation.point import Point
from sim.evaluation.setting import DEMO
from sim.evaluation.store import Results, Store
from sim.evaluation.sweep import sweep
from sim.experiments.figures.registry import exhibit
from sim.experiments.figures.sensitivity import (
    FACTORS,
    knobs,
    sensitivity_points,
    sensitivity_rows,
    swings,
    width,
)
from tests.sim.experiments.measured import told

SMALL = replace(DEMO, mini_batches=(("kaggle", 16),))
CASE = ("kaggle", "eager", "inference")


def told_with_choices(point: Point) -> dict:
    """Made-up metrics that also depend on our choices; a longer trace slows all but the baseline.
    """
    metrics = told(point)
    us = metrics["interval_us"] * {"even": 1, "rows": 1.5, "row": 0.9}[point.cluster.placement]
    if point.kind.name != "bl-paper":
        us *= 4 / max(point.depths) * (1 + 0.01 * (point.workload.seed - 1))
        us *= 1.2 ** ((point.workload.window or 256) / 256 - 1)
        us *= 1.1 if point.workload.measured > 16 else 1
        us *= 0.9 ** (point.cluster.kernels or 0)
    return metrics | {"interval_us": us}


@pytest.fixture
def results(tmp_path) -> Results:
    points = [point for point in sensitivity_points(SMALL)
              if (point.cluster.software, point.workload.workload) == CASE[1:]]
    return sweep(points, told_with_choices, Store(tmp_path, "v"), jobs=1)


def test_constants_are_those_that_a_compared_system_is_charged():
    constants = [knob.name for knob in knobs(SMALL, *CASE) if knob.status]
    assert {"gpu_rtx8000.launch_us", "mpi_ethernet.message_us"} <= set(constants)
    assert not any(name.startswith(("cpu_", "nccl_")) for name in constants)
    tuned = [knob.name for knob in knobs(SMALL, "kaggle", "tuned", "training")]
    assert any(name.startswith("nccl_") for name in tuned) and "in flight" not in tuned


def test_every_choice_of_ours_has_its_other_values():
    found = {knob.name: [change.label for change in knob.changes]
             for knob in knobs(SMALL, *CASE) if not knob.status}
    assert found == {"placement": ["rows", "row"], "in flight": ["1", "4"],
                     "window": ["4", "64"], "kernels": ["L1", "L2", "L3"],
                     "seed": ["2", "3", "4", "5"]}
    levels = [knob for knob in knobs(SMALL, "kaggle", "tuned", "inference")
              if knob.name == "kernels"]
    assert [change.label for change in levels[0].changes] == ["L0", "L1", "L3"]
    assert {"threads", "communicators"} <= {
        knob.name for knob in knobs(SMALL, "kaggle", "tuned", "inference")}


def test_each_change_has_points_of_both_systems_on_every_data_set():
    setting = replace(SMALL, datasets=("kaggle", "avazu"))
    points = set(sensitivity_points(setting))
    for dataset in setting.datasets:
        own = [point for point in points
               if (point.workload.dataset, point.cluster.software, point.workload.workload) == (
                   dataset, *CASE[1:])]
        full = [point for point in own if point.label == "FS"]
        assert {point.kind.name for point in own if point not in full} == {"bl-paper"}
        changes = [change for knob in knobs(setting, *CASE) for change in knob.changes]
        # Nominal, the changes, and the longer trace on which windows are compared.
        assert len(full) == 1 + len(changes) + 1
        # The baseline forms no windows.
        assert len(own) - len(full) == len(full) - 2


def test_constants_are_halved_and_doubled(results):
    as_is, found = swings(SMALL, results, *CASE)
    launch = next(swing for swing in found if swing.name == "gpu_rtx8000.launch_us")
    assert as_is and list(launch.values) == list(FACTORS)
    assert launch.values["halved"] == pytest.approx(as_is * 2 ** 0.5)
    assert launch.values["doubled"] == pytest.approx(as_is / 2 ** 0.5)
    assert [width(swing, as_is) for swing in found] == sorted(
        (width(swing, as_is) for swing in found), reverse=True)


def test_choices_are_made_otherwise(results):
    as_is, found = swings(SMALL, results, *CASE)
    values = {swing.name: swing.values for swing in found}
    assert as_is is not None
    assert values["placement"] == {"rows": pytest.approx(as_is), "row": pytest.approx(as_is)}
    # Nominal is 16 in flight, four times as fast as four.
    assert values["in flight"]["4"] == pytest.approx(as_is / 4)
    assert values["kernels"]["L2"] == pytest.approx(as_is / 0.81)
    assert values["seed"]["5"] == pytest.approx(as_is / 1.04)
    # Compared with a window of 16 on the same trace: the length of the trace does not count.
    assert values["window"]["4"] == pytest.approx(as_is * 1.2 ** 0.75)
    assert values["window"]["64"] == pytest.approx(as_is / 1.2 ** 3)


def test_every_value_is_a_row_and_what_failed_is_empty(results):
    rows = {row.metric: row.value for row in sensitivity_rows(SMALL, results)}
    name = "inference_speedup_vs_bl-paper"
    assert rows[f"{name} [placement rows]"] == pytest.approx(rows[f"{name} [as it is]"])
    assert rows["training_speedup_vs_bl-tuned [seed 2]"] is None


def test_the_picture_has_what_was_measured_and_says_what_was_not(results, tmp_path):
    figure = exhibit("tornado")
    paths = figure.pictures(SMALL, results, [], tmp_path)
    assert paths == [tmp_path / "tornado.png"] and paths[0].stat().st_size > 10_000

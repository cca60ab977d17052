"""Means over seeds, and their intervals."""

from statistics import fmean

import numpy as np
import pytest

from sim.evaluation.point import Point
from sim.evaluation.store import Outcome, Results
from sim.experiments.figures.estimate import Estimate, combined, estimated, mean_of, student


def _of(*values: float) -> Estimate:
    return Estimate(tuple(enumerate(values, 1)))


@pytest.mark.parametrize(("freedom", "reach"), [
    (1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (5, 2.5706), (9, 2.2622), (30, 2.0423),
    (101, 1.9837)])
def test_student_is_that_of_the_tables(freedom, reach):
    assert student(freedom) == pytest.approx(reach, abs=6e-5)


def test_an_interval_holds_the_true_mean_in_nineteen_of_twenty():
    rng = np.random.default_rng(1)
    intervals = [_of(*rng.normal(3, 0.5, 5)).interval for _ in range(2000)]
    held = fmean(low <= 3 <= high for low, high in intervals)
    assert held == pytest.approx(0.95, abs=0.015)


def test_a_mean_with_its_interval():
    found = _of(2.0, 2.1, 2.2, 2.1, 2.1)
    assert found.value == pytest.approx(2.1) and found.deviation == pytest.approx(0.0707, abs=1e-4)
    low, high = found.interval
    assert (high - low) / 2 == pytest.approx(2.7764 * 0.070711 / 5 ** 0.5, abs=1e-5)
    assert f"{found:.2fx}" == "2.10x [2.01, 2.19]" and f"{found:.1f}" == "2.1 [2.0, 2.2]"
    assert found.to_json() == {"value": found.value, "low": low, "high": high}


def test_one_seed_has_no_interval():
    found = _of(2.0)
    assert found.interval is None and found.deviation == 0 and f"{found:.2fx}" == "2.00x"
    assert found.to_json() == {"value": 2.0, "low": None, "high": None}


def test_ratios_are_taken_seed_by_seed():
    own, other = _of(1.0, 2.0, 4.0), _of(2.0, 4.0, 8.0)
    ratio = combined(lambda a, b: b / a, own, other)
    # The seeds move both alike: of the ratio there is no doubt.
    assert ratio.interval == pytest.approx((2, 2))
    assert combined(lambda a, b: b / a, own, None) is None
    assert combined(lambda a, b: None, own, other) is None
    first = combined(lambda a, b: b / a, own, Estimate(((1, 3.0),)))
    assert first == Estimate(((1, 3.0),))


def test_a_mean_over_data_sets_needs_all_of_them():
    assert mean_of({"a": _of(1.0, 2.0), "b": _of(3.0, 6.0)}) == _of(2.0, 4.0)
    assert mean_of({"a": _of(1.0), "b": None}) is None and mean_of({}) is None


def test_seeds_that_were_not_measured_are_left_out():
    points = [Point.named("bl-paper", seed=seed) for seed in (1, 2, 3)]
    results = Results({points[0]: Outcome(points[0], {"x": 1.0}),
                       points[1]: Outcome(points[1], None, "OSError: gone"),
                       points[2]: Outcome(points[2], {"x": 3.0})})
    assert estimated(results, points[0], "x", (1, 2, 3, 4)) == Estimate(((1, 1.0), (3, 3.0)))
    assert estimated(results, points[2], "x", ()) == Estimate(((3, 3.0),))
    assert estimated(results, points[0], "y", (1,)) is None

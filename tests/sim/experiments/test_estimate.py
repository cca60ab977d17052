"""Means over seeds."""

import pytest

from sim.evaluation.point import Point
from sim.evaluation.store import Outcome, Results
from sim.experiments.figures.estimate import Estimate, combined, estimated, mean_of


def _of(*values: float) -> Estimate:
    return Estimate(tuple(enumerate(values, 1)))


def test_a_mean_over_seeds():
    found = _of(2.0, 2.1, 2.2, 2.1, 2.1)
    assert found.value == pytest.approx(2.1) and found.deviation == pytest.approx(0.0707, abs=1e-4)
    assert f"{found:.2fx}" == "2.10x" and f"{found:.1f}" == "2.1"
    assert _of(2.0).deviation == 0


def test_ratios_are_taken_seed_by_seed():
    own, other = _of(1.0, 2.0, 4.0), _of(2.0, 4.0, 8.0)
    ratio = combined(lambda a, b: b / a, own, other)
    # The seeds change both values equally, so the ratio has no spread.
    assert ratio == _of(2.0, 2.0, 2.0)
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

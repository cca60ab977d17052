"""Predictions match the numpy model over the run-time settings, pairwise and in full."""

from collections import Counter
from itertools import combinations, product

import pytest

from tests.sim.interacting import good, job_of, model_of, predictions_sha, write_model

AXES = {
    "nodes": (1, 2, 4, 8),
    "remote_cache": (True, False),
    "requester_merge": (True, False),
    "interaction": ("off", "dot", "cat"),
    "dimension": (4, 16, 64, 128),
    "bags": ("one-hot", "to 100"),
    "placement": ("even", "row"),
}

WHOLE = [dict(zip(AXES, values)) for values in product(*AXES.values())]


def _pairs(case: dict) -> set:
    """Return the pairs of (axis, value) that ``case`` covers."""
    return set(combinations(case.items(), 2))


def covering(cases: list[dict]) -> list[dict]:
    """Return a small subset of ``cases`` that covers every pair of values.

    The search is greedy: it takes the first case that adds the most uncovered pairs; ties go to the
    case whose values were used least.
    """
    pairs = {index: _pairs(case) for index, case in enumerate(cases)}
    left, used, chosen = set().union(*pairs.values()), Counter(), []
    while left:
        best = max(pairs, key=lambda index: (
            len(pairs[index] & left), -sum(used[item] for item in cases[index].items())))
        chosen.append(cases[best])
        used.update(cases[best].items())
        left -= pairs[best]
    return chosen


def _samples(case: dict) -> int:
    """Return enough samples for every node; long bags have as many keys in total as one-hot
    bags."""
    return 40 if case["bags"] == "to 100" else 80


def _check(tmp_path, case: dict) -> None:
    kind = "cat" if case["interaction"] == "cat" else "dot"
    model = model_of(case["dimension"], case["bags"], kind)
    on = case["interaction"] != "off"
    samples = _samples(case)
    result = good(job_of(
        write_model(tmp_path / "model.toml", model),
        *(f"{name}={str(value).lower()}" for name, value in (
            ("interaction", on), ("remote_cache", case["remote_cache"]),
            ("requester_merge", case["requester_merge"]))),
        nodes=case["nodes"], placement=case["placement"], samples=samples,
        mini_batch=samples // 4))
    assert result["predictions_sha256"] == predictions_sha(model, samples)
    assert (result["interaction"] is not None) == on


SOME = covering(WHOLE)


def test_every_pair_is_there():
    assert set().union(*map(_pairs, SOME)) == set().union(*map(_pairs, WHOLE))
    # Four nodes by four dimensions take equally many.
    assert len(WHOLE) == 768 and len(SOME) == 16
    assert sum(map(_samples, SOME)) <= 1024


@pytest.mark.parametrize("case", SOME, ids=lambda case: "-".join(map(str, case.values())))
def test_pairs(tmp_path, case):
    _check(tmp_path, case)


@pytest.mark.slow
@pytest.mark.parametrize("case", WHOLE, ids=lambda case: "-".join(map(str, case.values())))
def test_the_whole_product(tmp_path, case):
    _check(tmp_path, case)

"""Weights after training under settings that must not change them, and settings that may."""

from itertools import pairwise

import numpy as np
import pytest

from host.dlrm.row_store import RowStore
from tests.sim.training.compiled_nics import NIC, ROOMY, trained, write

ADAGRAD = {"optimizer": "rowwise-adagrad", "learning_rate": 0.2}
NO_CACHE = "local_cache=false", "dedupe=false"
ONE_SET = "local_cache_sets=1",
ALL_TO_OWNERS = "local_reduction=false",


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    return write(tmp_path_factory.mktemp("model"))


def reference(path: str, **given) -> tuple[str, RowStore]:
    """Return the weights' hash and the rows of the numpy reference without NICs."""
    result, rows = trained(path, fidelity="model", **given)
    return result["weights_sha256"], rows


def check_exact(path: str, variants, **given) -> None:
    expected, _ = reference(path, **given)
    for variant in variants:
        result, _ = trained(path, **given, **variant)
        assert result["weights_sha256"] == expected, variant
        small = variant.get("nic", NIC) is NIC
        through = "local_reduction=false" not in variant.get("settings", ())
        local = {name: sum(node[f"local_reducer.{name}"] for node in result["counters"])
                 for name in ("keys", "passed")}
        assert (local["keys"] > 0) == through, variant
        # With more nodes, each has only a few keys.
        many = variant.get("nodes", 2) <= 2
        assert not many or (local["passed"] > 0) == (small or not through), variant
        assert not many or (result["spilled"]["global"] > 0) == small, variant


def ulps(rows: RowStore, others: RowStore) -> tuple[float, int, int]:
    """Return the largest difference of two sets of rows, absolute and in ulp, and the number of
    different values."""
    (keys, ours, _), (same, theirs, _) = rows.written(), others.written()
    assert np.array_equal(keys, same)
    ordered = [np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)
               for bits in (values.view(np.int32).astype(np.int64) for values in (ours, theirs))]
    apart = np.abs(ordered[0] - ordered[1])
    return float(np.abs(ours - theirs).max()), int(apart.max()), int((apart > 0).sum())


def check_rounded(path: str, variants, **given) -> None:
    rounded = ("gradient_partials=rounded",)
    found = {count: reference(path, nodes=count, settings=rounded, **given)
             for count in (1, 2, 4, 8)}
    assert found[1][0] == reference(path, **given)[0]
    for variant in variants:
        nodes = variant.get("nodes", 2)
        result, _ = trained(path, **given, **variant | {
            "settings": (*rounded, *variant.get("settings", ()))})
        assert result["weights_sha256"] == found[nodes][0], variant
        small = variant.get("nic", NIC) is NIC
        assert (result["spilled"]["local"] > 0) == small or nodes > 2, variant
    for one, other in pairwise(found):
        most, ulp, values = ulps(found[one][1], found[other][1])
        print(f"rounded, {one} and {other} nodes: {values} of {found[one][1].written()[1].size} "
              f"values differ, by {most:.3g} and {ulp} ULP at most")
        assert most < 1e-4
    assert len({digest for digest, _ in found.values()}) > 1


@pytest.mark.thorough
def test_exact_partials(path):
    check_exact(path, (
        {"nodes": 1, "settings": ONE_SET}, {"settings": NO_CACHE, "threads": 2},
        {"nodes": 4, "settings": ("local_cache_sets=3",)},
        {"nodes": 8, "settings": ALL_TO_OWNERS, "threads": 2}))


@pytest.mark.thorough
def test_rounded_partials(path):
    check_rounded(path, ({}, {"nodes": 4, "settings": NO_CACHE, "threads": 2}), **ADAGRAD)


# 200 steps, each choice separately; full-size tables and CXXRTL need their own builds.

@pytest.mark.slow
@pytest.mark.parametrize("variant", [
    {"nodes": 1}, {"threads": 2}, {"settings": NO_CACHE}, {"settings": ALL_TO_OWNERS},
    {"engine": "cxxrtl"}, *({"settings": (f"local_cache_sets={sets}",)} for sets in (1, 2, 3)),
    {"nodes": 4}, {"nodes": 8, "threads": 2}, {"nic": ROOMY}], ids=str)
def test_exact_partials_for_long(path, variant):
    check_exact(path, (variant,), samples=1600, mini_batch=8)


@pytest.mark.slow
@pytest.mark.parametrize("variant", [
    {}, {"settings": NO_CACHE, "threads": 2}, {"settings": ONE_SET}, {"engine": "cxxrtl"},
    {"nodes": 4}, {"nodes": 8, "threads": 2}, {"nic": ROOMY}], ids=str)
def test_rounded_partials_for_long(path, variant):
    check_rounded(path, (variant,), samples=3200, mini_batch=16, **ADAGRAD)

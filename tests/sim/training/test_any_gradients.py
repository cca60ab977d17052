"""Any keys and gradients: whole NICs compute the same rows as the numpy reference."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn

from host.samples import Samples
from tests.sim.training.compiled_nics import DIMENSIONS, ROWS, Given, samples_of, write

SPECIAL = (0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF,
           0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF, 0x7F800001)
"""Zeros, subnormals, the largest, infinities, NaN of three kinds."""
MOST = 3
"""Keys of a bag, of 4 tables, fit a sample of 16 slots."""


class Case(NamedTuple):
    """Steps of training, and the settings of the nodes."""

    dimension: int
    nodes: int
    optimizer: str
    settings: tuple[str, ...]
    steps: list[tuple[Samples, np.ndarray]]


@st.composite
def keys(draw) -> Samples:
    """Return samples with a single key, a few keys, or more keys than any table holds; some bags
    are empty."""
    few = draw(st.sampled_from((1, 4, 1 << 20)))
    tables = [st.integers(0, min(few, rows) - 1) for rows in ROWS]
    if few == 1:
        tables = [st.nothing(), st.nothing(), st.just(2), st.nothing()]
    bags = [st.lists(rows, max_size=0 if rows.is_empty else MOST) for rows in tables]
    samples = draw(st.lists(st.tuples(*bags), min_size=1, max_size=10 if few > 4 else 5))
    return samples_of(samples)


@st.composite
def cases(draw) -> Case:
    dimension = draw(st.sampled_from(DIMENSIONS))
    steps = []
    for _ in range(draw(st.integers(1, 3))):
        samples = draw(keys())
        shape = (len(samples), len(ROWS), dimension)
        values = st.one_of(st.sampled_from(SPECIAL), st.integers(0, (1 << 32) - 1))
        bits = draw(stn.arrays(np.uint32, shape, elements=values, fill=st.sampled_from(
            (0x3DCCCCCD, 0x80000000, 0x00000003, 0x7F7FFFFF))))
        steps.append((samples, bits.view(np.float32)))
    changes = tuple(draw(st.sampled_from(choice)) for choice in (
        ("gradient_partials=exact", "gradient_partials=rounded"), ("pooling=sum", "pooling=mean"),
        ("local_cache=true", "local_cache=false", "local_cache_sets=1"),
        ("local_reduction=true", "local_reduction=false")))
    return Case(dimension, draw(st.integers(1, 3)),
                draw(st.sampled_from(("sgd", "rowwise-adagrad"))), changes, steps)


@pytest.fixture(scope="module")
def paths(tmp_path_factory) -> dict[int, str]:
    folder = tmp_path_factory.mktemp("models")
    return {dimension: write(folder, dimension) for dimension in DIMENSIONS}


def lanes_of(samples: Samples, gradients: np.ndarray) -> dict[int, np.ndarray]:
    """Return the gradients ``[n, d]`` of each key; for the mean, up to their scale."""
    each = np.repeat(gradients.reshape(-1, gradients.shape[-1]), samples.bag_lengths.reshape(-1),
                     axis=0)
    return {key: each[samples.keys == key] for key in set(samples.keys.tolist())}


def check(path: str, case: Case) -> None:
    nics = Given(path, nodes=case.nodes, optimizer=case.optimizer, settings=case.settings)
    for samples, gradients in case.steps:
        mine = lanes_of(samples, gradients)
        own = np.array(sorted(mine), np.int64)
        before, _ = nics.rows.read(own)
        nics.step(samples, gradients)
        after, states = nics.rows.read(own)
        if case.optimizer == "sgd":
            assert not states.any()
            check_lanes(mine, before, after)
    result = nics.result()
    assert result["rows_compared"]["different"] == result["rows_compared"]["extra"] == 0, (
        result["rows_compared"]["first"])
    assert result["results"] == {"equal": result["results"]["equal"], "different": 0, "refused": 0}
    assert result["bit_identical"] and not result["errors"]


def check_lanes(gradients: dict[int, np.ndarray], before: np.ndarray, after: np.ndarray) -> None:
    """Check that NaN and infinities are exactly in the lanes that got them."""
    for key, old, new in zip(sorted(gradients), before, after):
        terms = gradients[key]
        both = np.isposinf(terms).any(axis=0) & np.isneginf(terms).any(axis=0)
        assert np.isnan(new[np.isnan(terms).any(axis=0) | both | np.isnan(old)]).all()
        assert not np.isfinite(new[np.isinf(terms).any(axis=0)]).any()
        with np.errstate(over="ignore", invalid="ignore"):
            small = np.abs(terms.astype(np.float64)).sum(axis=0) < 1e37
        assert np.isfinite(new[small & np.isfinite(old)]).all()
        assert (new.view(np.uint32)[np.isnan(new)] == 0x7FC00000).all()


COMMON = dict(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)


@pytest.mark.thorough
@settings(max_examples=6, derandomize=True, database=None, **COMMON)
@given(case=cases())
def test_a_few(paths, case):
    check(paths[case.dimension], case)


@pytest.mark.slow
@settings(max_examples=300, **COMMON)
@given(case=cases())
def test_many(paths, case):
    check(paths[case.dimension], case)


EVERYTHING = np.array(SPECIAL, np.uint32).view(np.float32)


@pytest.mark.thorough
@pytest.mark.parametrize("settings", [("gradient_partials=rounded", "pooling=mean"), ()])
def test_everything_at_once(paths, settings):
    """All samples with the same key, more keys than tables hold, and empty bags, in turn; every
    special value meets every other in some lane."""
    rng = np.random.default_rng(3)
    crowd = [[[n, n + 20], [0, 0], [] if n % 4 else [n], [n * 1000, 7, n]] for n in range(8)]
    steps = []
    for bags in ([[[], [], [2, 2], []]] * 4, crowd, [[[], [], [], []]] * 3, crowd[::-1]):
        samples = samples_of(bags)
        steps.append((samples, rng.choice(EVERYTHING, (len(samples), len(ROWS), 16))))
    check(paths[16], Case(16, 2, "sgd" if settings else "rowwise-adagrad", settings, steps))

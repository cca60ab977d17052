"""RowUpdater against the host's optimizer and rows: bit for bit, whatever comes when."""

import random
from itertools import pairwise

import numpy as np
import pytest

from host.optimizer import Optimizer
from rtl.config import preset

from .updating import Pass, SwiftHost, World, run, some_keys


def config(dimension: int, **fields):
    return preset("tiny").with_fields(
        **{"max_dimension": max(16, dimension), "local_cache_rows": 24, "update_rows": 16}
        | fields)


def passes(keys: list[int], dimension: int, seed: int, cuts: tuple[int, ...] = ()) -> list[Pass]:
    """Return the keys in passes that end at ``cuts`` and at the end, with random gradients."""
    rng = np.random.default_rng(seed)
    bounds = [0, *cuts, len(keys)]
    return [Pass(keys[start:end], rng.standard_normal((end - start, dimension)).astype(np.float32),
                 passed=len(keys) - end)
            for start, end in pairwise(bounds)]


@pytest.mark.parametrize("name, dimension, largest, cuts", [
    ("rowwise-adagrad", 8, 16, (5,)),
    *(pytest.param(*case, marks=pytest.mark.slow)
      for case in (("sgd", 16, 16, ()), ("rowwise-adagrad", 48, 64, (5,))))])
def test_rows_and_states_are_those_of_the_host(name, dimension, largest, cuts):
    """Two steps of the same keys in part, half of them in the cache."""
    rng = random.Random(dimension)
    keys = some_keys(30, rng)
    world = World(config(largest), dimension, Optimizer(name, 0.05, 1e-6), keys[::2],
                  seed=dimension)
    counters = run(world, [passes(keys[:20], dimension, 1, cuts),
                           passes(keys[10:], dimension, 2)])
    assert counters["stall_rows"]


@pytest.mark.parametrize("name, dimension, largest, stall, cuts", [
    ("sgd", 16, 16, 0.0, ()), ("rowwise-adagrad", 4, 16, 0.3, (20,)),
    ("rowwise-adagrad", 48, 64, 0.1, (0, 30, 35)), ("sgd", 32, 32, 0.5, (39,))])
def test_whatever_comes_when(name, dimension, largest, stall, cuts):
    """More keys than places, several passes, states that nobody asked for."""
    rng = random.Random(dimension)
    keys = some_keys(60, rng)
    world = World(config(largest), dimension, SwiftHost(name), keys[::3], seed=dimension,
                  stall=stall, bad_states=0.3)
    counters = run(world, [passes(keys[:40], dimension, 1, cuts),
                           passes(keys[:10] + keys[40:], dimension, 2)])
    assert counters["stall_places"] and counters["stall_rows"] and counters["stall_written"]
    assert world.bad > 10 and bool(counters["stall_states"]) == world.adagrad

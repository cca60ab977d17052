"""Each algorithm against its definition in plain Python."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host.batching import ALGORITHMS, Graph, algorithm_of, file_order, greedy_order, key_order
from host.samples import Samples
from tests.host.batching.plain import few_samples, key_lists, plain_graph, plain_greedy, plain_sort
from tests.host.test_samples import random_samples


def formed(algorithm, samples, size):
    return [chosen.tolist() for chosen in algorithm(samples, size)]


def paper_samples():
    """Figure 7: T0i0 is looked up by samples 0, 1, 4, 5, 7 and T1i0 by 0, 1, 3, 4."""
    rows = np.array([[0, 0], [0, 0], [1, 1], [2, 0], [0, 0], [0, 2], [3, 3], [0, 4]])
    return Samples.one_hot(np.zeros((8, 1)), np.zeros(8), rows)


def test_the_graph_of_figure_7():
    assert formed(Graph(2, 0), paper_samples(), 3)[0] == [0, 1, 4]
    # Of the remaining keys, only T0i0 joins several samples.
    assert formed(Graph(2, 0), paper_samples(), 3)[1] == [5, 7, 2]


@settings(max_examples=150, deadline=None)
@given(few_samples(), st.integers(1, 12), st.integers(1, 20), st.integers(0, 3))
def test_graph_is_the_definition(samples, size, hyperedges, refinements):
    assert formed(Graph(hyperedges, refinements), samples, size) == plain_graph(
        key_lists(samples), size, hyperedges, refinements)


@pytest.mark.parametrize("hyperedges, refinements", [(3, 0), (24, 0), (24, 1), (500, 3)])
def test_graph_of_larger_windows(hyperedges, refinements):
    for longest in (1, 3):
        samples = random_samples(200, 6, seed=hyperedges, longest=longest)
        assert formed(Graph(hyperedges, refinements), samples, 16) == plain_graph(
            key_lists(samples), 16, hyperedges, refinements)


@settings(max_examples=80, deadline=None)
@given(few_samples(), st.integers(1, 12))
def test_greedy_and_sort_are_their_definitions(samples, size):
    keys = key_lists(samples)
    assert formed(greedy_order, samples, size) == plain_greedy(keys, size)
    assert formed(key_order, samples, size) == plain_sort(keys, size)


@pytest.mark.parametrize("longest", [1, 3])
def test_greedy_and_sort_of_larger_windows(longest):
    samples = random_samples(120, 4, seed=longest, longest=longest)
    keys = key_lists(samples)
    assert formed(greedy_order, samples, 16) == plain_greedy(keys, 16)
    assert formed(key_order, samples, 7) == plain_sort(keys, 7)


@settings(max_examples=60, deadline=None)
@given(few_samples(), st.integers(1, 50), st.sampled_from(list(ALGORITHMS)))
def test_every_algorithm_gives_a_permutation(samples, size, name):
    batches = formed(algorithm_of(name), samples, size)
    assert sorted(chain(*batches)) == list(range(len(samples)))
    assert [len(batch) for batch in batches[:-1]] == [size] * (len(batches) - 1)
    assert 1 <= len(batches[-1]) <= size


@pytest.mark.parametrize("name", ALGORITHMS)
def test_equal_samples_keep_their_order(name):
    rows = np.tile([[1, 2, 3]], (10, 1))
    samples = Samples.one_hot(np.zeros((10, 1)), np.zeros(10), rows)
    assert formed(algorithm_of(name), samples, 4) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    empty = Samples(np.zeros((3, 0), np.float32), np.zeros(3, np.float32),
                    np.zeros((3, 2), np.int32), np.zeros(0, np.int32), np.zeros(0, np.int64))
    assert formed(algorithm_of(name), empty, 2) == [[0, 1], [2]]
    assert formed(algorithm_of(name), samples.slice(0, 0), 2) == []


@pytest.mark.parametrize("algorithm", [key_order, greedy_order, Graph(3)])
def test_two_kinds_are_told_apart(algorithm):
    rows = np.tile([[1, 2, 3], [4, 5, 6]], (8, 1))
    samples = Samples.one_hot(np.zeros((16, 1)), np.zeros(16), rows)
    assert formed(algorithm, samples, 8) == [[*range(0, 16, 2)], [*range(1, 16, 2)]]
    assert formed(file_order, samples, 8) == [[*range(8)], [*range(8, 16)]]


def test_a_mini_batch_is_there_before_the_next_is_looked_for():
    """A refresh can save the remaining work only if mini-batches are made one by one."""
    for algorithm in (Graph(4), greedy_order):
        choices = algorithm(random_samples(50, 3), 5)
        assert len(next(choices)) == 5


def test_bad_values_are_refused():
    with pytest.raises(ValueError, match="hyperedges must be at least 1, not 0"):
        Graph(0)
    with pytest.raises(ValueError, match="refinements must be at least 0, not -1"):
        Graph(4, -1)
    with pytest.raises(ValueError, match="batching must be one of file, sort, greedy, graph, "
                                         "graph-printed, not 'x'"):
        algorithm_of("x")

"""Bags that repeat in a share, against a search bag by bag."""

import numpy as np
import pytest

from host.batching.repeats import REPEATS, first_bags, repeated_bags, sent_bags
from host.samples import Samples, share_sizes
from tests.host.test_samples import bags


def few_bags(count: int, tables: int, seed: int, rows: int = 2, longest: int = 3,
             weighted: bool = False) -> Samples:
    """Return samples whose bags often repeat, in the same order of keys or in another order.

    weighted: whether keys have one of two weights, which are equal numbers of different bits.
    """
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, longest + 1, (count, tables)).astype(np.int32)
    of = np.repeat(np.tile(np.arange(tables), count), lengths.reshape(-1)).astype(np.int32)
    return Samples(np.zeros((count, 1), np.float32), np.zeros(count, np.float32), lengths, of,
                   rng.integers(0, rows, len(of)) << 35,
                   rng.choice(np.array([0.0, -0.0], np.float32), len(of)) if weighted else None)


def searched(samples: Samples, nodes: int, found: str) -> np.ndarray:
    """Return :func:`first_bags`, searched bag by bag."""
    every, first, expected = bags(samples), 0, []
    for size in share_sizes(len(samples), nodes):
        for at in range(first, first + size):
            row = []
            for table, bag in enumerate(every[at]):
                earliest = {"send": at, "neighbours": max(first, at - 1), "indices": first}[found]
                equal = [other for other in range(earliest, at) if bag == every[other][table]]
                row.append(at if not bag or not equal else
                           expected[equal[0]][table])
            expected.append(row)
        first += size
    return np.array(expected, np.int64).reshape(samples.bag_lengths.shape)


@pytest.mark.parametrize("found", REPEATS)
@pytest.mark.parametrize("nodes", [1, 2, 3, 90])
@pytest.mark.parametrize("weighted", [False, True])
def test_first_bags_against_a_search(found, nodes, weighted):
    counts = set()
    for seed, count in enumerate((0, 1, 2, 7, 90)):
        samples = few_bags(count, 3, seed, weighted=weighted)
        first = first_bags(samples, nodes, found)
        assert first.dtype == np.int64
        assert np.array_equal(first, searched(samples, nodes, found))
        counts.add(int((first != np.arange(count)[:, None]).sum()))
    assert (max(counts) > 2) == (found != "send" and nodes < 90)


def test_tables_whose_bags_do_not_repeat():
    samples, tables = few_bags(60, 3, 5), np.array([True, False, True])
    first = first_bags(samples, 2, "neighbours", tables)
    assert np.array_equal(first[:, tables], first_bags(samples, 2, "neighbours")[:, tables])
    assert (first[:, 0] < np.arange(60)).any() and np.array_equal(first[:, 1], np.arange(60))


def test_keys_in_another_order_are_another_bag():
    samples = Samples(np.zeros((4, 1), np.float32), np.zeros(4, np.float32),
                      np.full((4, 1), 2, np.int32), np.zeros(8, np.int32),
                      np.array([1, 2, 2, 1, 1, 2, 1, 1]))
    assert first_bags(samples, 1, "indices").reshape(-1).tolist() == [0, 1, 0, 3]
    assert first_bags(samples, 1, "neighbours").reshape(-1).tolist() == [0, 1, 2, 3]


def test_keys_with_other_weights_are_another_bag():
    weights = np.array([1, 2, 1, 2, 2, 1, 1, np.nextafter(np.float32(2), 3)], np.float32)
    samples = Samples(np.zeros((4, 1), np.float32), np.zeros(4, np.float32),
                      np.full((4, 1), 2, np.int32), np.zeros(8, np.int32), np.full(8, 5), weights)
    for found in ("indices", "neighbours"):
        assert first_bags(samples, 1, found).reshape(-1).tolist() == [0, 0, 2, 3]


def test_repeats_of_the_sample_before():
    samples = few_bags(60, 3, 5)
    same = repeated_bags(samples, 2)
    first = first_bags(samples, 2, "neighbours")
    own = first == np.arange(60)[:, None]
    assert np.array_equal(own, ~same | (samples.bag_lengths == 0))
    assert (same & (samples.bag_lengths == 0)).any()


@pytest.mark.parametrize("found", REPEATS)
@pytest.mark.parametrize("weighted", [False, True])
def test_bags_that_repeat_are_not_sent(found, weighted):
    samples = few_bags(40, 3, 5, weighted=weighted)
    sent = bags(sent_bags(samples, 3, found))
    assert sent == [
        [bag if standing == number else [] for bag, standing in zip(sample, row)]
        for number, (sample, row) in enumerate(zip(bags(samples), searched(samples, 3, found)))]
    assert (sent == bags(samples)) == (found == "send")

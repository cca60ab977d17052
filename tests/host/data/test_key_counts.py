from collections import Counter

import numpy as np
import pytest

from host.data.key_counts import KeyCounts
from host.data.similarity import skew
from host.samples import Samples
from tests.host.test_samples import bags, random_samples

SIZES = (4, 1000, 300_000, 3_000_000)


def stream(chunks=60, seed=5):
    """Return samples whose keys are skewed like the keys of click logs: row = size ^ uniform."""
    rng = np.random.default_rng(seed)
    for _ in range(chunks):
        rows = np.stack([(size ** rng.random(2000)).astype(np.int64) for size in SIZES], axis=1)
        yield Samples.one_hot(np.zeros((2000, 1)), np.zeros(2000), rows)


def counted(most):
    counts = KeyCounts(most)
    for samples in stream():
        counts.add(samples)
    return counts


def test_counts_are_those_of_a_plain_counter():
    counts, plain, tables = KeyCounts(), Counter(), 4
    for seed in range(5):
        samples = random_samples(300, tables, seed=seed, longest=4)
        counts.add(samples)
        plain.update(key for one in bags(samples) for bag in one for key in bag)
        got = counts.skew()
        most = sorted(plain.values(), reverse=True)
        assert (got.accesses, got.unique, got.error) == (sum(most), len(most), 0)
        assert got.top1 == sum(most[:-(-len(most) // 100)]) / sum(most)
        assert got.top10 == sum(most[:-(-len(most) // 10)]) / sum(most)
    of_table = [[n for key, n in plain.items() if key[0] == table] for table in range(tables)]
    assert [(t.accesses, t.unique, t.error) for t in counts.tables()] == [
        (sum(found), len(found), 0) for found in of_table]


@pytest.fixture(scope="module")
def exact():
    return counted(None)


@pytest.mark.parametrize("most", [1 << 16, 1 << 14, 1 << 12])
def test_estimates_in_bounded_memory(exact, most):
    counts = counted(most)
    got, whole = counts.skew(), exact.skew()
    assert len(counts._keys) <= most
    assert got.accesses == whole.accesses
    assert 0 < got.error < 4 * whole.unique / most ** 0.5
    assert abs(got.unique - whole.unique) < 4 * got.error
    assert abs(got.top1 - whole.top1) < 2 / most ** 0.5
    assert abs(got.top10 - whole.top10) < 2 / most ** 0.5
    for one, true in zip(counts.tables(), exact.tables()):
        assert one.accesses == true.accesses
        assert abs(one.unique - true.unique) <= 4 * one.error
    small = counts.tables()[0]
    assert small.error == 0 and small.unique == exact.tables()[0].unique


def test_estimates_are_unbiased_in_the_order_of_keys(exact):
    """A table that is first used after thinning is not counted too low."""
    counts = KeyCounts(1 << 12)
    rows = np.arange(100_000).reshape(-1, 1)
    for part in np.split(np.concatenate([rows, rows[::-1]]), 100):
        counts.add(Samples.one_hot(np.zeros((len(part), 1)), np.zeros(len(part)), part))
        counts.skew()  # counts pending accesses
    got = counts.skew()
    assert got.accesses == 200_000 and abs(got.unique - 100_000) < 4 * got.error
    # A dropped key stays dropped: held keys have both of their accesses.
    assert (counts._counts == 2).all()


def test_an_empty_stream_and_a_bound_too_low():
    assert KeyCounts().skew().unique == 0 and KeyCounts().tables() == []
    assert skew(random_samples(0, 2)).top1 == 0
    with pytest.raises(ValueError, match="most must be at least 4096, not 4095"):
        KeyCounts(4095)

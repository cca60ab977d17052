import numpy as np
import pytest

from host.data.similarity import BatchUniques, skew, uniques_per_batch
from host.samples import Samples, rechunk
from tests.host.test_samples import bags, random_samples


def key_sets(samples):
    return [{key for bag in one for key in bag} for one in bags(samples)]


def test_skew_counts_keys_of_all_tables_apart():
    rows = np.zeros((100, 2), np.int64)
    rows[:, 1] = np.arange(100)  # table 0: one key 100 times; table 1: 100 keys once
    got = skew(Samples.one_hot(np.zeros((100, 1)), np.zeros(100), rows))
    assert (got.accesses, got.unique) == (200, 101)
    assert got.top1 == pytest.approx(101 / 200)  # 2 of 101 keys
    assert got.top10 == pytest.approx(110 / 200)  # 11 of 101 keys


def test_uniques_in_file_order_end_in_a_short_batch():
    samples = random_samples(10, 2, longest=1)
    sets = key_sets(samples)
    expected = [len(set().union(*sets[i:i + 4])) for i in (0, 4, 8)]
    assert uniques_per_batch(samples, 4).tolist() == expected


def test_bad_sizes_are_refused():
    samples = random_samples(4, 2)
    with pytest.raises(ValueError, match="batch must be at least 1, not 0"):
        uniques_per_batch(samples, 0)


@pytest.mark.parametrize("batch", [1, 4, 16, 50])
def test_uniques_of_a_stream_are_those_of_the_whole(batch):
    samples = random_samples(83, 4, seed=3, longest=3)
    stream = BatchUniques(batch)
    for part in rechunk([samples], 2 * batch):
        stream.add(part)
    full = samples.slice(0, 83 // batch * batch)
    assert (stream.batches, stream.lookups) == (83 // batch, len(full.rows))
    assert stream.unique == uniques_per_batch(full, batch).sum()


def test_the_only_mini_batch_may_be_short():
    samples = random_samples(5, 2)
    stream = BatchUniques(8)
    stream.add(samples)
    assert (stream.batches, stream.unique) == (1, uniques_per_batch(samples, 8).sum())


def test_many_small_mini_batches():
    rows = np.random.default_rng(1).integers(0, 3, (90_000, 2))
    samples = Samples.one_hot(np.zeros((90_000, 1)), np.zeros(90_000), rows)
    expected = [len(set(pair[:, 0])) + len(set(pair[:, 1]))
                for pair in rows.reshape(-1, 2, 2)]
    assert uniques_per_batch(samples, 2).tolist() == expected

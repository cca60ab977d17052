import numpy as np
import pytest

from host.samples import Samples, concatenate, rechunk, segment_indices


def random_samples(n, tables, seed=0, longest=4, weighted=()):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, longest + 1, (n, tables)).astype(np.int32)
    key_tables = np.repeat(np.tile(np.arange(tables), n), lengths.reshape(-1)).astype(np.int32)
    return Samples(rng.random((n, 3), np.float32), rng.integers(0, 2, n).astype(np.float32),
                   lengths, key_tables, rng.integers(0, 100, len(key_tables)),
                   np.where(np.isin(key_tables, weighted), rng.standard_normal(len(key_tables)),
                            1).astype(np.float32) if weighted else None)


def bags(samples):
    """Return the bags of each sample as plain lists, read key by key."""
    keys = iter(zip(samples.tables.tolist(), samples.rows.tolist()))
    if samples.weights is not None:
        keys = iter(zip(keys, samples.weights.view(np.uint32).tolist()))
    return [[[next(keys) for _ in range(length)] for length in lengths]
            for lengths in samples.bag_lengths.tolist()]


def test_segment_indices_against_loops():
    starts, lengths = [5, 0, 9, 2], [2, 0, 3, 1]
    assert segment_indices(starts, lengths).tolist() == [5, 6, 9, 10, 11, 2]
    assert segment_indices([], []).tolist() == []


def test_one_hot_orders_keys_by_sample_then_table():
    samples = Samples.one_hot(np.zeros((2, 1)), np.array([0, 1]), np.array([[7, 8, 9], [1, 2, 3]]))
    assert samples.tables.tolist() == [0, 1, 2, 0, 1, 2]
    assert samples.rows.tolist() == [7, 8, 9, 1, 2, 3]
    assert samples.keys.tolist() == [7, 8 | 1 << 36, 9 | 2 << 36, 1, 2 | 1 << 36, 3 | 2 << 36]
    assert samples.slots.tolist() == [3, 3]


def test_offsets_and_slots_count_bags():
    samples = random_samples(40, 5)
    expected = bags(samples)
    assert samples.slots.tolist() == [sum(max(1, len(bag)) for bag in one) for one in expected]
    sizes = [sum(map(len, one)) for one in expected]
    assert samples.key_offsets.tolist() == [sum(sizes[:i]) for i in range(41)]
    assert np.diff(samples.bag_offsets).tolist() == [len(bag) for one in expected for bag in one]


@pytest.mark.parametrize("weighted", [(), (1, 4)])
def test_take_and_slice_pick_whole_samples(weighted):
    samples = random_samples(40, 5, weighted=weighted)
    expected = bags(samples)
    picked = samples.take([7, 3, 3, 39])
    assert bags(picked) == [expected[i] for i in (7, 3, 3, 39)]
    assert picked.labels.tolist() == samples.labels[[7, 3, 3, 39]].tolist()
    assert bags(samples.slice(11, 29)) == expected[11:29]
    assert len(samples.slice(5, 5)) == 0
    assert bags(samples.slice(35, 99)) == expected[35:]
    kept = np.array([True, True, False, True, False])
    assert bags(samples.of_tables(kept)) == [
        [bag for bag, here in zip(one, kept) if here] for one in expected]


@pytest.mark.parametrize("size", [1, 7, 32, 100, 1000])
@pytest.mark.parametrize("weighted", [(), (2,)])
def test_rechunk_keeps_the_stream(size, weighted):
    chunks = [random_samples(n, 4, seed=n, weighted=weighted) for n in (13, 1, 60, 26)]
    whole = concatenate(chunks)
    cut = list(rechunk(iter(chunks), size))
    assert [len(c) for c in cut[:-1]] == [size] * (len(cut) - 1)
    assert 0 < len(cut[-1]) <= size
    assert bags(concatenate(cut)) == bags(whole)
    assert np.array_equal(concatenate(cut).dense, whole.dense)


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match=r"tables must have the 2 entries .*, not shape \(1,\)"):
        Samples(np.zeros((1, 1), np.float32), np.zeros(1, np.float32),
                np.array([[2]], np.int32), np.zeros(1, np.int32), np.zeros(2, np.int64))
    with pytest.raises(ValueError, match=r"weights must have the 2 entries .*, not shape \(1,\)"):
        Samples(np.zeros((1, 1), np.float32), np.zeros(1, np.float32), np.array([[2]], np.int32),
                np.zeros(2, np.int32), np.zeros(2, np.int64), np.ones(1, np.float32))
    with pytest.raises(ValueError, match="at least one chunk"):
        concatenate([])
    with pytest.raises(ValueError, match="size must be at least 1, not 0"):
        list(rechunk([], 0))

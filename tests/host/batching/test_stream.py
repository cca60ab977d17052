"""Windows, refreshes, and the statistics of each mini-batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host.batching import ALGORITHMS, Batcher, Graph, Refresh, file_order, greedy_order
from host.data.generator import generate
from host.model import MODELS
from host.samples import Samples, concatenate, rechunk
from tests.host.batching.plain import few_samples, key_lists
from tests.host.test_samples import bags, random_samples

REFRESHES = [Refresh(), Refresh(downgrade=0.8), Refresh(sliding=True),
             Refresh(sliding=True, wait=2), Refresh(sliding=True, downgrade=0.9)]


def check(batches, samples):
    """Check that every sample appears once and unchanged, and every statistic against a plain
    count."""
    numbers = np.concatenate([batch.numbers for batch in batches]).tolist()
    assert sorted(numbers) == list(range(len(samples)))
    keys, whole = key_lists(samples), bags(samples)
    given_, first = 0, None
    for batch in batches:
        numbers = batch.numbers.tolist()
        assert bags(batch.samples) == [whole[i] for i in numbers]
        assert batch.samples.dense.tolist() == samples.dense[numbers].tolist()
        flat = [key for i in numbers for key in keys[i]]
        assert batch.unique == len(set(flat))
        assert batch.similarity == (1 - len(set(flat)) / len(flat) if flat else 0)
        if batch.fresh:
            assert min(numbers) >= given_
            first = batch.similarity
        assert batch.downgrade == (batch.similarity / first if first else None)
        given_ += len(numbers)


@settings(max_examples=100, deadline=None)
@given(few_samples(most=60), st.integers(1, 9), st.integers(0, 20), st.integers(1, 60),
       st.sampled_from(list(ALGORITHMS)), st.sampled_from(REFRESHES))
def test_always_a_permutation(samples, size, more, chunk, name, refresh):
    batcher = Batcher(ALGORITHMS[name], size, size + more, refresh)
    batches = list(batcher.form(rechunk([samples], chunk)))
    check(batches, samples)
    assert batches[0].fresh and batcher.formed == len(batches)
    if refresh.sliding:
        return
    # A window is empty before the next window is loaded.
    window = size + more
    fresh = [at for at, batch in enumerate(batches) if batch.fresh]
    for nth, (at, end) in enumerate(zip(fresh, [*fresh[1:], len(batches)])):
        numbers = np.concatenate([batch.numbers for batch in batches[at:end]])
        first = nth * window
        assert sorted(numbers) == list(range(first, min(first + window, len(samples))))
        assert [len(batch.numbers) for batch in batches[at:end - 1]] == [size] * (end - at - 1)


def test_file_order_is_the_stream():
    samples = random_samples(83, 4, seed=3)
    batches = list(Batcher(file_order, 8, 8).form(rechunk([samples], 13)))
    assert [batch.numbers.tolist() for batch in batches] == [
        list(range(at, min(at + 8, 83))) for at in range(0, 83, 8)]
    assert all(batch.fresh and batch.downgrade == (1 if batch.similarity else None)
               for batch in batches)


def test_a_window_is_16_mini_batches_by_default():
    samples = random_samples(70, 2, longest=1)
    fresh = [batch.fresh for batch in Batcher(Graph(4), 2).form([samples])]
    assert [at for at, is_fresh in enumerate(fresh) if is_fresh] == [0, 16, 32]


def test_similarity_falls_as_a_window_is_used_and_a_refresh_restores_it():
    """See figure 8 of the paper."""
    samples = concatenate(generate(MODELS["kaggle"], 4096, 3))
    for algorithm in (Graph(16), Graph(128, 0), greedy_order):
        batches = list(Batcher(algorithm, 128, 2048).form([samples]))
        alike = np.array([batch.similarity for batch in batches]).reshape(2, 16)
        assert [batch.fresh for batch in batches] == ([True] + [False] * 15) * 2
        for window in alike:
            parts = window.reshape(4, 4).mean(axis=1)
            assert (np.diff(parts) < 0).all() and parts[0] > parts[3] + 0.2
        # The first mini-batch after the refresh resembles the very first, not the previous one.
        assert alike[0, 0] > 0.75 and alike[1, 0] > 0.75 and alike[0, -1] < 0.5
        assert batches[15].similarity < 0.6 * batches[0].similarity
        assert batches[16].downgrade == 1
    plain = [batch.similarity for batch in Batcher(file_order, 128, 2048).form([samples])]
    assert np.ptp(np.reshape(plain, (8, 4)).mean(axis=1)) < 0.1


def as_samples(rows):
    return Samples.one_hot(np.zeros((len(rows), 1)), np.zeros(len(rows)), np.array(rows))


def test_a_low_similarity_gives_the_rest_in_the_order_of_arrival():
    alike = [1, 2, 3]
    rows = [[10, 11, 12], [5, 20, 21], alike, [30, 31, 32], [7, 40, 41], alike, [5, 50, 51], alike,
            [60, 61, 62], [7, 70, 71], [5, 80, 81], [90, 91, 92]]
    kept = [batch.numbers.tolist() for batch in Batcher(Graph(3), 3, 12).form([as_samples(rows)])]
    assert kept == [[2, 5, 7], [1, 6, 10], [4, 9, 0], [3, 8, 11]]
    batches = list(Batcher(Graph(3), 3, 12, Refresh(downgrade=0.5)).form([as_samples(rows)]))
    assert [batch.similarity for batch in batches] == [1 - 3 / 9, 1 - 7 / 9, 0, 0]
    assert [batch.numbers.tolist() for batch in batches] == [
        [2, 5, 7], [1, 6, 10], [0, 3, 4], [8, 9, 11]]


def test_a_sliding_window_is_filled_after_each_mini_batch():
    # A sample that resembles no other sample, then two kinds by turns: the first waits.
    rows = [[7, 8, 9]] + [[1, 2, 3], [4, 5, 6]] * 20
    samples = as_samples(rows)
    batches = list(Batcher(Graph(3), 2, 6, Refresh(sliding=True, wait=4)).form([samples]))
    check(batches, samples)
    turn = next(at for at, batch in enumerate(batches) if 0 in batch.numbers)
    # After four mini-batches the four remaining samples are given, the samples of one kind first.
    assert turn == 5 and [batch.fresh for batch in batches].index(True, 1) == 6
    # If each window is drained, the first sample waits for only two mini-batches.
    batches = list(Batcher(Graph(3), 2, 6).form([samples]))
    assert next(at for at, batch in enumerate(batches) if 0 in batch.numbers) == 2


def test_a_sliding_window_is_not_drained_while_no_sample_waits_long():
    samples = random_samples(200, 3, longest=1)
    for wait, refreshed in ((3, True), (5, False)):
        refresh = Refresh(sliding=True, wait=wait)
        batches = list(Batcher(file_order, 5, 20, refresh).form([samples]))
        assert any(batch.fresh for batch in batches[1:]) is refreshed


@pytest.mark.parametrize("wait", [1, 3, 7])
def test_no_sample_waits_longer_than_a_sliding_window_may_take(wait):
    samples = random_samples(400, 3, seed=wait, longest=1)
    batches = list(Batcher(greedy_order, 5, 20, Refresh(sliding=True, wait=wait)).form([samples]))
    check(batches, samples)
    loaded = {}
    given_ = 0
    for turn, batch in enumerate(batches):
        # When this mini-batch was chosen, at most a full window had been loaded.
        for number in range(given_ + 20):
            loaded.setdefault(number, turn)
        given_ += len(batch.numbers)
        assert all(turn - loaded[number] < wait + 4 for number in batch.numbers)


def test_bad_values_are_refused():
    for arguments, message in (((0, 4), "mini_batch must be at least 1, not 0"),
                               ((8, 7), "window must be at least the 8 samples of a mini-batch, "
                                        "not 7")):
        with pytest.raises(ValueError, match=message):
            Batcher(file_order, *arguments)
    for given_, message in (({"downgrade": 1.5}, "downgrade must be between 0 and 1, not 1.5"),
                            ({"wait": 3}, "wait must go with a sliding window, not 3 alone"),
                            ({"sliding": True, "wait": 0}, "wait must be at least 1, not 0")):
        with pytest.raises(ValueError, match=message):
            Refresh(**given_)

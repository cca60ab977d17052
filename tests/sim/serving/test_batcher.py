import numpy as np
import pytest

from sim.serving.batcher import Batcher, form


def _formed(times, *fields):
    formed = form(np.array(times, float), Batcher(*fields))
    return formed.ready.tolist(), formed.size.tolist(), formed.of.tolist()


def test_a_full_mini_batch_goes_when_its_last_request_comes():
    assert _formed([0, 1, 2, 3, 4, 5], 3, 100) == ([2, 5], [3, 3], [0, 0, 0, 1, 1, 1])


def test_a_time_out_ends_after_the_first_request():
    assert _formed([0, 4, 11, 12], 3, 10) == ([10, 21], [2, 2], [0, 0, 1, 1])


def test_a_request_at_the_end_of_the_time_out_still_goes_along():
    assert _formed([0, 10, 10.5], 8, 10) == ([10, 20.5], [2, 1], [0, 0, 1])


def test_full_at_the_end_of_the_time_out():
    assert _formed([0, 10, 30], 2, 10) == ([10, 40], [2, 1], [0, 0, 1])


def test_the_last_mini_batch_is_short_and_waits_for_its_time_out():
    assert _formed([0, 1, 2, 3], 3, 50) == ([2, 53], [3, 1], [0, 0, 0, 1])


def test_no_time_out_is_no_waiting():
    assert _formed([0, 1, 1, 2], 4, 0) == ([0, 1, 2], [1, 2, 1], [0, 1, 1, 2])


def test_mini_batches_of_one():
    assert _formed([0, 1, 1], 1) == ([0, 1, 1], [1, 1, 1], [0, 1, 2])


def test_nothing():
    assert _formed([], 4, 5) == ([], [], [])


def test_a_full_window_is_dealt_and_a_short_one_is_not():
    times = np.arange(20.0)
    formed = form(times, Batcher(4, 100, 3), seed=5)
    assert formed.ready.tolist() == [11, 11, 11, 112, 112]
    assert formed.size.tolist() == [4, 4, 4, 4, 4]
    assert formed.place.tolist() == [0, 1, 2, -1, -1]
    assert np.bincount(formed.of).tolist() == [4, 4, 4, 4, 4]
    assert formed.of[:12].tolist() != sorted(formed.of[:12]) and set(formed.of[:12]) == {0, 1, 2}
    assert formed.of[12:].tolist() == [3] * 4 + [4] * 4
    assert np.array_equal(formed.of, form(times, Batcher(4, 100, 3), seed=5).of)
    assert not np.array_equal(formed.of, form(times, Batcher(4, 100, 3), seed=6).of)


def test_the_last_of_a_short_window_is_short():
    formed = form(np.arange(6.0), Batcher(4, 100, 3))
    assert formed.size.tolist() == [4, 2] and formed.ready.tolist() == [100, 100]


def test_every_request_is_in_one_mini_batch_that_is_ready_after_it_came():
    draw = np.random.default_rng(2)
    times = np.cumsum(draw.exponential(1.0, 5000))
    for batcher in (Batcher(1), Batcher(8, 3), Batcher(8, 30), Batcher(64, 20), Batcher(4, 40, 4)):
        formed = form(times, batcher)
        assert np.array_equal(np.bincount(formed.of), formed.size)
        assert formed.size.max() <= batcher.mini_batch
        assert (np.diff(formed.ready) >= 0).all()
        waits = formed.ready[formed.of] - times
        assert waits.min() >= 0 and waits.max() <= batcher.timeout_us + 1e-9


@pytest.mark.parametrize(("fields", "said"), [
    ((0,), "mini_batch must be at least 1, not 0"),
    ((4, -1.0), "timeout_us must be at least 0, not -1.0"),
    ((4, float("nan")), "timeout_us must be at least 0, not nan"),
    ((4, 1.0, 0), "window must be at least 1, not 0")])
def test_mistakes(fields, said):
    with pytest.raises(ValueError, match=f"^{said}$"):
        Batcher(*fields)

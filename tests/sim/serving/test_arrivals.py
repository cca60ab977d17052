import numpy as np
import pytest

from sim.serving.arrivals import Arrivals


def test_a_poisson_process_has_its_rate_and_no_memory():
    gaps = np.diff(Arrivals().times(0.2, 100_000))
    assert gaps.mean() == pytest.approx(5, rel=0.02)
    assert gaps.std() == pytest.approx(5, rel=0.02)
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 0.02


@pytest.mark.parametrize("kind", ["poisson", "bursts"])
def test_processes_are_repeatable_and_begin_alike(kind):
    process = Arrivals(kind, seed=3)
    times = process.times(0.1, 5000)
    assert np.array_equal(times, Arrivals(kind, seed=3).times(0.1, 5000))
    assert np.array_equal(times[:700], process.times(0.1, 700))
    assert not np.array_equal(times, Arrivals(kind, seed=4).times(0.1, 5000))
    assert (np.diff(times) >= 0).all() and len(times) == 5000


def test_twice_the_rate_runs_twice_as_fast():
    process = Arrivals()
    assert process.times(0.2, 1000) * 2 == pytest.approx(process.times(0.1, 1000))


def test_bursts_have_the_mean_rate_and_their_share_of_requests():
    process = Arrivals("bursts", burst_rate=5, burst_share=0.1, burst_us=100)
    per_us, count = 1.0, 2_000_000
    times = process.times(per_us, count)
    assert count / times[-1] == pytest.approx(per_us, rel=0.03)
    # Windows much shorter than a burst have 5 requests per microsecond, or 5 / 9.
    each = np.bincount((times / 10).astype(int))
    assert (each > 27).mean() == pytest.approx(0.1, abs=0.015)
    assert each[each > 27].sum() / count == pytest.approx(0.5, abs=0.03)


def test_on_and_off():
    times = Arrivals("bursts", burst_rate=10, burst_share=0.1, burst_us=100).times(1.0, 100_000)
    gaps = np.diff(times)
    assert np.median(gaps) == pytest.approx(0.1 * np.log(2), rel=0.05)
    assert gaps.max() > 500


def test_a_run_has_many_bursts():
    process = Arrivals("bursts", burst_share=0.1, burst_us=1000)
    times = process.times(0.5, process.least(0.5))
    assert times[-1] > 20 * 1000 / 0.1
    assert Arrivals().least(0.5) == 0
    assert process.least(50.0) == 4_000_000  # limited by memory


@pytest.mark.parametrize(("fields", "said"), [
    ({"kind": "often"}, "arrivals must be one of poisson, bursts, not 'often'"),
    ({"seed": -1}, r"seed must be between 0 and 2\^64 - 1, not -1"),
    ({"burst_share": 1.0}, "burst_share must be above 0 and below 1, not 1.0"),
    ({"burst_rate": 11.0}, "burst_rate must be between 1 and 10, 1 / burst_share, not 11.0"),
    ({"burst_rate": float("nan")}, "burst_rate must be between 1 and 10, "),
    ({"burst_us": 0.0}, "burst_us must be above 0, not 0.0"),
])
def test_mistakes(fields, said):
    with pytest.raises(ValueError, match=f"^{said}"):
        Arrivals(**fields)

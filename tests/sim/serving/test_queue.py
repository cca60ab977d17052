"""Queues with a known latency, and queues without one."""

import numpy as np
import pytest

from host.systems import schedule
from sim.serving.arrivals import Arrivals
from sim.serving.batcher import Batcher, form
from sim.serving.queue import Load, serve_at
from sim.serving.system import System
from tests.sim.serving.fakes import COST, mini_batches, server, step


def _waits(system: System, batcher: Batcher, per_us: float, count: int) -> np.ndarray:
    """Return latencies without warm-up, as the queue computes them."""
    times = Arrivals().times(per_us, count)
    formed = form(times, batcher)
    return (system.run(formed, 1).finished[formed.of] - times)[count // 10:]


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_mean_wait_of_m_d_1(share):
    """Pollaczek and Khinchine: one server, constant service, Poisson arrivals."""
    waits = _waits(server({1: 10.0}), Batcher(1), share / 10, 40_000) - 10
    assert waits.mean() == pytest.approx(10 * share / (2 * (1 - share)), rel=0.05)


def test_waits_follow_lindley():
    """Equal except for rounding, also with mini-batches: each starts when it is ready and the
    previous one has ended."""
    times = Arrivals(seed=4).times(0.5, 3000)
    formed = form(times, Batcher(4, 6.0))
    done = server({4: 7.5}).run(formed, 1).finished
    at = -np.inf
    for ready, end in zip(formed.ready, done):
        at = max(at, ready) + 7.5
        assert end == pytest.approx(at)


def test_percentiles_are_those_of_an_exponential_time_out():
    """An idle system: a request alone waits for the timeout, then for its mini-batch."""
    served = serve_at(server({8: 1.0}, latency_us=30.0), Batcher(8, 5.0), Load(Arrivals(), 100.0))
    assert not served.saturated
    assert served.p50_us == pytest.approx(36) == served.p99_us


def test_percentiles_of_m_d_1_at_a_load():
    """P(W = 0) = 1 - rho: at a load of 0.4 the median does not wait."""
    served = serve_at(server({1: 10.0}), Batcher(1), Load(Arrivals(), 40_000.0))
    assert served.p50_us == pytest.approx(10)
    assert 10 < served.p99_us < served.p99_9_us
    # The tail of M/D/1 falls by exp(-theta t), 1 = rho (exp(theta d) - 1) / (theta d).
    assert (served.p99_9_us - served.p99_us) == pytest.approx(10 * np.log(10) / 1.55, rel=0.25)


def test_requests_before_the_warm_up_do_not_count():
    served = serve_at(server({1: 10.0}), Batcher(1), Load(Arrivals(), 50_000.0, 2000))
    waits = _waits(server({1: 10.0}), Batcher(1), 0.05, 2000 + 201 + 1)
    assert served.requests == 2000
    assert served.p99_us == pytest.approx(np.percentile(waits, 99), rel=0.1)


@pytest.mark.parametrize("kind", ["poisson", "bursts"])
def test_the_same_seed_gives_the_same(kind):
    system = server({1: 10.0, 8: 20.0}, 5.0)
    loads = [Load(Arrivals(kind, seed, burst_us=200.0), 100_000.0, 4000) for seed in (1, 1, 2)]
    first, again, other = (serve_at(system, Batcher(8, 50.0), load) for load in loads)
    assert first == again != other


@pytest.mark.parametrize("share", [1.001, 1.05, 1.5, 20.0])
def test_a_system_that_cannot_keep_up_is_saturated(share):
    served = serve_at(server({1: 10.0}), Batcher(1), Load(Arrivals(), share * 1e5, 5000))
    assert served.saturated and served.p99_us is served.per_sample is None
    assert served.utilisation == pytest.approx(share, rel=0.05)


@pytest.mark.parametrize("share", [0.5, 0.8, 0.9])
def test_a_system_that_keeps_up_is_not(share):
    served = serve_at(server({1: 10.0}), Batcher(1), Load(Arrivals(), share * 1e5, 20_000))
    assert not served.saturated and served.utilisation == pytest.approx(share, rel=0.03)


def test_a_queue_that_grows_is_seen_where_the_interval_is_wrong():
    """The interval claims twice the rate at which the system processes mini-batches."""
    each = mini_batches(1, 10.0)
    wrong = type(each)(1, False, each.steps, 10.0, 5.0, COST)
    served = serve_at(System([wrong], 64), Batcher(1), Load(Arrivals(), 120_000.0, 4000))
    assert served.utilisation < 1 and served.saturated


def test_at_most_so_many_are_in_flight():
    """With one in flight, latency without a resource counts as service."""
    formed = form(np.arange(40.0) * 10, Batcher(1))
    for in_flight, last in ((1, 40 * 25), (4, 39 * 10 + 25)):
        system = server({1: 5.0}, 20.0, in_flight)
        assert system.run(formed, 1).finished[-1] == pytest.approx(last)


def test_a_short_mini_batch_takes_the_steps_of_the_next_size():
    system = server({2: 10.0, 8: 30.0})
    formed = form(np.array([0, 100, 101, 102, 200, 201]), Batcher(8, 10.0))
    work = system.run(formed, 1)
    assert formed.size.tolist() == [1, 3, 2]
    assert (work.finished - formed.ready).tolist() == [10, 30, 10]
    assert work.costs["gpu_us"] == pytest.approx(COST["gpu_us"] * (2 + 8 + 2))


def test_a_full_window_takes_the_steps_of_a_measured_one():
    """Each measured mini-batch of the graph algorithm has its own time."""
    graph = mini_batches(2, 1.0, graph=True, steps=[step(us) for us in (1.0, 2, 3, 11, 12, 13)])
    system = System([mini_batches(2, 50.0), graph], 64)
    formed = form(np.arange(0.0, 1300, 10), Batcher(2, 55.0, 3))
    took = np.diff(system.run(formed, 1).finished.reshape(-1), prepend=0)
    assert set(formed.place) == {0, 1, 2, -1}
    for ready in np.unique(formed.ready[formed.place >= 0]):
        own = took[formed.ready == ready]
        assert own[1:].tolist() in ([2, 3], [12, 13])
    assert took[formed.place < 0][1:] == pytest.approx(50)


def test_what_a_request_costs_has_the_padding_in_it():
    served = serve_at(server({8: 10.0}), Batcher(8, 5.0), Load(Arrivals(), 1000.0, 1000))
    # Nearly every request is alone in a mini-batch of eight.
    assert served.mini_batch == pytest.approx(1, rel=0.02)
    assert served.per_sample and served.per_sample["gpu_us"] == pytest.approx(
        8 * COST["gpu_us"] / served.mini_batch)


def test_the_schedule_is_that_of_the_systems():
    steps, ready = [step(4.0, 3.0)] * 5, [0.0, 1, 2, 30, 31]
    system = server({1: 4.0}, 3.0, 2)
    formed = form(np.array(ready), Batcher(1))
    assert np.array_equal(system.run(formed, 1).finished, schedule(steps, 2, ready).finished)


def test_a_request_of_many_samples_ends_with_its_last_sample():
    """An idle system without a timeout: full mini-batches and a rest, one after the other."""
    served = serve_at(server({4: 10.0}), Batcher(4), Load(Arrivals(), 10.0, 200, (10,)))
    assert (served.p50_us, served.p99_us) == pytest.approx((30.0, 30.0))
    assert served.mini_batch == pytest.approx(10 / 3)


def test_requests_of_several_sizes_have_the_latency_of_their_size():
    load = Load(Arrivals(), 10.0, 4000, (100, 700))
    served = serve_at(server({100: 10.0}), Batcher(100), load)
    assert load.samples == 400
    assert (served.p50_us, served.p99_us) in [(10.0, pytest.approx(70.0)), (70.0, 70.0)]
    sizes = load.sizes(4000)
    assert set(sizes) == {100, 700} and sizes.mean() == pytest.approx(400, rel=0.05)


@pytest.mark.parametrize("share", [0.8, 1.1])
def test_samples_saturate_a_system(share):
    served = serve_at(server({8: 10.0}), Batcher(8), Load(
        Arrivals(), share * 8e5 / 80, 2000, (80,)))
    assert served.saturated is (share > 1)


def test_mistakes():
    with pytest.raises(ValueError, match=r"^qps must be above 0 and finite, not 0"):
        Load(Arrivals(), 0.0)
    with pytest.raises(ValueError, match=r"^qps must be above 0 and finite, not inf"):
        Load(Arrivals(), float("inf"))
    with pytest.raises(ValueError, match=r"^requests must be at least 1, not 0"):
        Load(Arrivals(), 1.0, 0)
    with pytest.raises(ValueError, match=r"^measured must contain mini-batches in order"):
        System([mini_batches(8, 1.0, graph=True)], 4)

"""A system's choice, and its highest load within a p99."""

from dataclasses import replace
from math import exp

import pytest

from sim.serving import search as module
from sim.serving.arrivals import Arrivals
from sim.serving.batcher import Batcher
from sim.serving.queue import Load, Served, serve_at
from sim.serving.search import TIMEOUTS_US, Choice, Search
from sim.serving.system import System
from tests.sim.serving.fakes import mini_batches, server, step

REQUESTS = 1000


def _search(system: System, kind: str = "poisson") -> Search:
    return Search(system, Arrivals(kind), REQUESTS)


@pytest.fixture
def launched() -> System:
    """A system with a constant time, and little time per request."""
    return server({1: 20.5, 8: 24.0, 64: 52.0}, latency_us=40.0, in_flight=8)


def test_an_idle_system_takes_requests_one_by_one(launched):
    best = _search(launched).best(100.0)
    assert best.batcher == Batcher(1) and best.served.p50_us == pytest.approx(60.5)


def test_a_busy_system_takes_larger_mini_batches(launched):
    sizes = [_search(launched).best(qps).batcher.mini_batch for qps in (1e3, 2e5, 1e6)]
    assert sizes[0] < sizes[1] < sizes[2] == 64


def test_the_choice_is_the_best_of_all_within_the_noise_of_a_trial(launched):
    search = _search(launched)
    for qps in (20_000.0, 700_000.0):
        best = search.best(qps)
        every = [serve_at(launched, Batcher(size, timeout), Load(Arrivals(), qps, REQUESTS))
                 for size in (1, 8, 64) for timeout in (TIMEOUTS_US[:14] if size > 1 else (0.0,))]
        least = min(served.p99_us for served in every if served.p99_us is not None)
        assert best.served.p99_us and best.served.p99_us <= 1.1 * least


def test_above_the_capacity_there_is_no_choice(launched):
    search = _search(launched)
    assert search.best(64 / 52 * 1e6 * 1.001) is None
    assert search.within(2e6, 1e9) is None


def test_what_does_in_trials_alone_keeps_no_other_size_from_being_found(monkeypatch, launched):
    """Close to the capacity, a mini-batch may pass a trial and fail in full."""
    def shortsighted(system: System, batcher: Batcher, load: Load, share: float = 1.0) -> Served:
        served = serve_at(system, batcher, load, share)
        if batcher.mini_batch != 8:
            return served
        return replace(served, saturated=share == 1, p99_us=None if share == 1 else 65.0)

    monkeypatch.setattr(module, "serve_at", shortsighted)
    for found in (_search(launched).within(6e5, 400.0), _search(launched).best(6e5)):
        assert found and found.batcher.mini_batch == 64
        assert found.served.p99_us and 92 < found.served.p99_us < 400


def test_what_is_served_is_served_and_what_is_over_is_not(launched):
    search = _search(launched)
    for slo in (100.0, 400.0):
        found = search.most_within(slo, 20_000.0, 1.3e6)
        assert found.served.p99_us and found.served.p99_us <= slo
        again = serve_at(launched, found.batcher, Load(Arrivals(), found.qps, REQUESTS))
        assert again == found.served
        assert search.within(1.15 * found.qps, slo) is None


def test_more_time_serves_more(launched):
    search = _search(launched)
    served = [search.most_within(slo, 20_000.0, 1.3e6).qps for slo in (100.0, 200.0, 800.0)]
    assert served == sorted(served) and served[0] < served[-1]


def test_a_known_load_of_m_d_1():
    """Erlang's closed form of M/D/1's waiting time, at two services d:
    P(W <= 2 d) = (1 - rho) (exp(2 rho) - rho exp(rho))."""
    low, high = 0.0, 0.9
    while high - low > 1e-9:
        rho = (low + high) / 2
        inside = (1 - rho) * (exp(2 * rho) - rho * exp(rho)) >= 0.99
        low, high = (rho, high) if inside else (low, rho)
    found = Search(server({1: 10.0}), Arrivals(), 20_000).most_within(30.0, 28_000.0, 36_000.0)
    assert found.qps == pytest.approx(low * 1e5, rel=0.05)


def test_nothing_is_served_within_less_than_a_mini_batch_takes(launched):
    assert _search(launched).most_within(60.0, 1000.0, 1.3e6) is None


def test_bisection_ends_between_a_load_that_is_served_and_one_that_is_not(monkeypatch, launched):
    """With a known bound, and the number of steps that the width requires."""
    asked = []

    def within(self, qps, slo_us):
        asked.append(qps)
        return Choice(qps, Batcher(1), None) if qps <= 3456 else None

    monkeypatch.setattr(Search, "within", within)
    found = _search(launched).most_within(100.0, 1000.0, 64_000.0)
    assert 3456 / module._CLOSE <= found.qps <= 3456
    assert len(asked) <= 1 + 8 and found.qps == max(qps for qps in asked if qps <= 3456)


def test_bursts_cost_load(launched):
    processes = [Arrivals(), Arrivals("bursts", burst_us=100.0)]
    calm, bursts = (Search(launched, process, REQUESTS).most_within(150.0, 1e5, 1.3e6)
                    for process in processes)
    assert bursts.qps < 0.8 * calm.qps


def test_the_graph_algorithm_is_chosen_where_it_pays():
    """Windows cost time: only an otherwise overloaded system chooses them."""
    graph = mini_batches(8, 5.0, graph=True, steps=[step(5.0)] * 32)
    system = System([mini_batches(8, 20.0), graph], 64)
    search = _search(system)
    assert search.best(100_000.0).batcher.window == 1
    assert search.best(1e6).batcher.window == 16


def test_the_same_search_gives_the_same(launched):
    first, again = (_search(launched).most_within(150.0, 3e5, 6e5) for _ in range(2))
    assert first == again


def test_requests_of_many_samples_use_the_capacity_in_samples():
    """A load that single samples leave idle saturates the system."""
    system = server({64: 100.0})
    single, many = (Search(system, Arrivals(), 300, candidates) for candidates in ((1,), (640,)))
    assert single.best(900.0) is not None and many.best(900.0) is not None
    assert many.best(1100.0) is None and single.best(1100.0) is not None
    found = many.most_within(20_000.0, 100.0, 2000.0)
    assert found is not None and 600 < found.qps < 1000

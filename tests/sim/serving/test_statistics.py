"""Statistics of `serve` on queues with known latencies: percentiles, counted requests, growth."""

from dataclasses import dataclass

import numpy as np
import pytest

from sim.serving.batcher import Batcher
from sim.serving.measured import COSTS
from sim.serving.queue import REQUESTS, Load, _grows, _utilisation, serve_at
from sim.serving.system import Work


@dataclass(frozen=True)
class Regular:
    """Requests 10 microseconds apart."""

    seed: int = 5
    fewest: int = 0

    def least(self, per_us: float) -> int:
        assert per_us == 0.1  # 100,000 per second
        return self.fewest

    def times(self, per_us: float, count: int) -> np.ndarray:
        assert per_us == 0.1
        return 10.0 * np.arange(count)


@dataclass(frozen=True)
class Known:
    """A system whose mini-batch ``k`` takes ``waits(k)`` microseconds, with a utilisation of
    ``share``."""

    waits: object
    share: float = 0.5

    def needed_us(self, formed) -> float:
        return self.share * 10.0 * len(formed.ready)

    def run(self, formed, seed) -> Work:
        assert seed == 5
        waits = self.waits(np.arange(len(formed.ready)))
        return Work(formed.ready + waits, {name: 2.0 * len(formed.of) for name in COSTS})


def served(waits, requests=1000, share=0.5, fewest=0, mini_batch=1, **given):
    return serve_at(Known(waits, share), Batcher(mini_batch), Load(Regular(fewest=fewest), 1e5,
                                                                   requests), **given)


def steady(numbers):
    return np.full(len(numbers), 7.0)


def test_percentiles_are_of_the_requests_that_count():
    """A hundred requests and the first one warm up the queue; one more arrives at the end."""
    def waits(numbers):
        assert numbers[-1] == 1101  # 1 + 0.1 x 1000 before, 1 behind
        found = (numbers - 101.0) * 7919 % 1000  # 0 to 999, in no order
        found[:101] = found[1101:] = 1e9
        return found

    found = served(waits)
    assert (found.p50_us, found.p99_us, found.p99_9_us) == pytest.approx((499.5, 989.01, 998.001))
    assert not found.saturated and found.requests == 1000 and found.mini_batch == 1
    assert found.per_sample == dict.fromkeys(COSTS, 2.0)


@pytest.mark.parametrize("given, count", [
    ({"requests": 1}, 1), ({"requests": 1000, "share": 0.25}, 250),
    ({"requests": 1000, "fewest": 1600}, 1600), ({"requests": 1000, "fewest": 1600, "share": 0.5},
                                                 800),
    ({"requests": 100, "mini_batch": 20}, 100), ({"requests": 100, "mini_batch": 60}, 300),
    ({"requests": 1, "share": 1e-6}, 1)])
def test_so_many_requests_count(given, count):
    """At least one mini-batch per 20 requests, enough requests to average over bursts, and a share
    of that for a trial."""
    share = given.pop("share", 1.0)
    found = serve_at(Known(steady), Batcher(given.pop("mini_batch", 1), 1e3), Load(
        Regular(fewest=given.pop("fewest", 0)), 1e5, **given), share)
    assert found.requests == count
    assert REQUESTS == 20_000


@pytest.mark.parametrize("share, saturated", [(0.5, False), (0.999, False), (1.0, True)])
def test_a_system_is_saturated_from_a_utilisation_of_one_on(share, saturated):
    """There is one interval less than there are mini-batches."""
    found = served(steady, share=share)
    assert found.saturated == saturated
    assert found.utilisation == pytest.approx(share)
    assert (found.p50_us is None) == (found.p99_us is None) == (found.p99_9_us is None) == (
        found.per_sample is None) == saturated


def test_utilisation_of_mini_batches_that_are_ready_at_once():
    """No time passes between them, so the utilisation is 0."""
    @dataclass(frozen=True)
    class Formed:
        ready: np.ndarray

    assert _utilisation(Known(steady), Formed(np.array([3.0, 3.0]))) == 0
    assert _utilisation(Known(steady), Formed(np.array([3.0, 23.0]))) == 0.5 * 20 * 0.5 / 20


TIMES = 10.0 * np.arange(400)


@pytest.mark.parametrize("before, after, grows", [
    (10.0, 20.0, False), (40.0, 80.0, False), (10.0, 40.0, False), (10.0, 20.1, False),
    (10.0, 39.9, False), (10.0, 40.1, True),
    (29.0, 58.9, False), (29.0, 59.1, True), (40.0, 79.0, False), (40.0, 81.0, True),
    (40.0, 10.0, False)])
def test_a_queue_grows_at_twice_the_latency_and_a_hundredth_of_the_time(before, after, grows):
    """The quarters' means are 3,000 us apart. Latencies must rise by more than 30 us, and to more
    than twice the value. Values between the quarters do not count."""
    waits = np.concatenate([np.full(100, before), np.full(200, 1e6), np.full(100, after)])
    assert _grows(TIMES, waits) == grows


@pytest.mark.filterwarnings("error")
def test_too_few_requests_for_quarters_show_no_growth():
    assert _grows(TIMES[:3], np.array([1.0, 1e3, 1e6])) is False
    assert _grows(TIMES[:4], np.array([1.0, 1e3, 1e4, 1e6]))


def test_a_growing_queue_has_no_latency():
    found = served(lambda numbers: numbers * 1.0)
    assert found.saturated and found.p50_us is found.p99_us is found.p99_9_us is None
    assert found.per_sample is None and found.utilisation == pytest.approx(0.5)
    # Growth before or after the measured requests does not count.
    assert not served(lambda numbers: np.where(numbers < 101, numbers * 9.0, 1000.0)).saturated
    assert not served(lambda numbers: np.where(numbers > 1100, 1e9, 1000.0)).saturated

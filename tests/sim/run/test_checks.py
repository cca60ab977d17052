"""The check queue: results in order, a bounded number pending, errors passed on."""

import threading
from types import SimpleNamespace

import pytest

from sim.job.options import RunOptions
from sim.run.checks import CheckQueue
from sim.run.run import Run


def _checks(check, *, background, max_pending=2):
    taken = []
    checks = CheckQueue(check, lambda step, verdict, predictions: taken.append(
        (step, verdict, predictions, threading.get_ident())),
        background=background, max_pending=max_pending)
    return checks, taken


@pytest.mark.parametrize("background", [False, True])
def test_all_are_taken_in_order_by_the_one_who_checks(background):
    checks, taken = _checks(lambda step: (step, threading.get_ident()), background=background)
    with checks:
        for step in range(50):
            checks.add(step)
        checks.drain()
        assert [(step, verdict) for step, verdict, _, _ in taken] == [(n, n) for n in range(50)]
    assert len({by for _, _, by, _ in taken}) == 1
    assert all((by != threading.get_ident()) == background and who == by for _, _, by, who in taken)
    assert checks.seconds > 0


def test_no_more_wait_than_may():
    go, begun = threading.Event(), threading.Semaphore(0)

    def check(step):
        begun.release()
        assert go.wait(20)
        return step, None

    checks, taken = _checks(check, background=True, max_pending=2)
    with checks:
        checks.add(0)
        checks.add(1)
        assert begun.acquire(timeout=20) and taken == []
        threading.Timer(0.05, go.set).start()
        checks.add(2)  # has to wait for the first
        assert [step for step, *_ in taken][:1] == [0]
        checks.drain()
        assert [step for step, *_ in taken] == [0, 1, 2]


@pytest.mark.parametrize("background", [False, True])
def test_what_a_check_raises_comes_out(background):
    def check(step):
        raise ZeroDivisionError(step)

    checks, taken = _checks(check, background=background)
    with pytest.raises(ZeroDivisionError, match="7"), checks:
        checks.add(7)
        checks.drain()
    assert taken == []


@pytest.mark.parametrize("background", [False, True])
def test_nothing_is_handed_on_after_what_could_not_be(background):
    """A disk that is full for a moment must not cause a gap in a file."""
    taken = []

    def take(step, *checked):
        if step == 2:
            raise OSError("full")
        taken.append(step)

    checks = CheckQueue(lambda step: (step, None), take, background=background, max_pending=9)
    with pytest.raises(OSError, match="full"), checks:
        for step in range(6):
            checks.add(step)
        checks.drain()
    assert taken == [0, 1]


def test_live_results_count_every_mini_batch():
    """Live results are written only after pending checks, however slow, are done."""
    job = Run(RunOptions.of(config="tiny", samples=64, mini_batch=16, in_flight=2, nodes=2,
                            threads=2))
    check, seen = job.checks.check, []

    def slow(step):
        threading.Event().wait(0.2)
        return check(step)

    def write(result):
        handed_out = job._next.number if job._next else 4
        seen.append((result["samples"], result["samples"] + result["under_way"], 16 * handed_out))

    job.checks.check = slow
    result = job.execute(live=SimpleNamespace(due=lambda: True, write=write),
                         stop=lambda: "SIGINT" if seen and seen[-1][0] else None)
    assert all(counted == handed_out for _, counted, handed_out in seen)
    assert result["interrupted"] == "SIGINT" and result["samples"] == result["next_sample"] > 0

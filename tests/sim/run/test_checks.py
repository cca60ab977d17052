"""Checks beside the nodes: the same order, whatever takes long; nothing waits without end."""

import threading
from types import SimpleNamespace

import pytest

from sim.job.options import RunOptions
from sim.run.checks import Checks
from sim.run.run import Run


def _checks(check, *, beside, most=2):
    taken = []
    checks = Checks(check, lambda step, verdict, predictions: taken.append(
        (step, verdict, predictions, threading.get_ident())), beside=beside, most=most)
    return checks, taken


@pytest.mark.parametrize("beside", [False, True])
def test_all_are_taken_in_order_by_the_one_who_checks(beside):
    checks, taken = _checks(lambda step: (step, threading.get_ident()), beside=beside)
    with checks:
        for step in range(50):
            checks.add(step)
        checks.settle()
        assert [(step, verdict) for step, verdict, _, _ in taken] == [(n, n) for n in range(50)]
    assert len({by for _, _, by, _ in taken}) == 1
    assert all((by != threading.get_ident()) == beside and who == by for _, _, by, who in taken)
    assert checks.seconds > 0


def test_no_more_wait_than_may():
    go, begun = threading.Event(), threading.Semaphore(0)

    def check(step):
        begun.release()
        assert go.wait(20)
        return step, None

    checks, taken = _checks(check, beside=True, most=2)
    with checks:
        checks.add(0)
        checks.add(1)
        assert begun.acquire(timeout=20) and taken == []
        threading.Timer(0.05, go.set).start()
        checks.add(2)  # has to wait for the first
        assert [step for step, *_ in taken][:1] == [0]
        checks.settle()
        assert [step for step, *_ in taken] == [0, 1, 2]


@pytest.mark.parametrize("beside", [False, True])
def test_what_a_check_raises_comes_out(beside):
    def check(step):
        raise ZeroDivisionError(step)

    checks, taken = _checks(check, beside=beside)
    with pytest.raises(ZeroDivisionError, match="7"), checks:
        checks.add(7)
        checks.settle()
    assert taken == []


@pytest.mark.parametrize("beside", [False, True])
def test_nothing_is_handed_on_after_what_could_not_be(beside):
    """A disk that was full for a moment must not leave a gap in a file."""
    taken = []

    def take(step, *checked):
        if step == 2:
            raise OSError("full")
        taken.append(step)

    checks = Checks(lambda step: (step, None), take, beside=beside, most=9)
    with pytest.raises(OSError, match="full"), checks:
        for step in range(6):
            checks.add(step)
        checks.settle()
    assert taken == [0, 1]


def test_live_results_count_every_mini_batch():
    """A check that takes long is waited for before results are written."""
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

"""Sweeps: every point once, stored at once, the same bytes with every backend."""

import json
import multiprocessing
import os
import signal
import sys

import pytest

from gen.base.signals import Interrupted
from host.errors import InputError
from sim.evaluation.store import Store
from sim.evaluation.sweep import check_backend, each, sweep
from tests.sim.experiments import fakes
from tests.sim.experiments.fakes import Spot, third

SPOTS = [Spot("a", number) for number in (1, 2, 13, 7, 0.1)]


def _dump(results) -> str:
    return json.dumps([[outcome.point.number, outcome.metrics, outcome.error]
                       for outcome in results.values()])


def test_results_are_in_the_order_asked_for_and_failures_keep_their_reason(tmp_path):
    seen = []
    results = sweep([*SPOTS, SPOTS[0]], third, Store(tmp_path, "v"), jobs=1,
                    progress=lambda *told: seen.append(told), effort=lambda spot: spot.number)
    assert [point.number for point in results] == [1, 2, 13, 7, 0.1]
    assert results.value(SPOTS[3], "third") == 7 / 3
    assert results.value(SPOTS[3], "inside.deep") == [1, None]
    assert results.value(SPOTS[3], "inside.none") is None
    assert results.value(SPOTS[2], "third") is results.value(Spot("b"), "third") is None
    assert [outcome.error for outcome in results.failed] == ["ValueError: number must not be 13"]
    assert [told[:2] for told in seen] == [(done, 5) for done in range(6)]
    assert [share for *_, share in seen] == pytest.approx(
        [done / 23.1 for done in (0, 1, 3, 16, 23, 23.1)])
    again = []
    sweep(SPOTS, third, Store(tmp_path, "v"), jobs=1, progress=lambda *told: again.append(told))
    assert again == [(4, 5, 0.8), (5, 5, 1.0)]


def test_the_order_in_which_points_are_begun_is_not_that_of_the_results(tmp_path):
    begun = []

    def count(spot: Spot) -> dict:
        begun.append(spot.number)
        return third(spot)

    results = sweep(SPOTS, count, Store(tmp_path, "v"), jobs=1, order=lambda spots: sorted(
        spots, key=lambda spot: -spot.number))
    assert begun == [13, 7, 2, 1, 0.1]
    assert _dump(results) == _dump(sweep(SPOTS, third, Store(tmp_path / "new", "v"), jobs=1))


def test_two_processes_give_the_bytes_of_one(tmp_path):
    one = sweep(SPOTS, third, Store(tmp_path / "one", "v"), jobs=1)
    two = sweep(SPOTS, third, Store(tmp_path / "two", "v"), jobs=2)
    assert _dump(one) == _dump(two)
    kept = [sorted((path.relative_to(folder), path.read_bytes()) for path in folder.rglob("*.json"))
            for folder in (tmp_path / "one", tmp_path / "two")]
    assert kept[0] == kept[1] and len(kept[0]) == 4
    others = sweep([Spot("c", 1), Spot("c", 2)], fakes.in_another_process,
                   Store(tmp_path / "two", "v"), jobs=2)
    assert os.getpid() not in {others.value(point, "process") for point in others}


def test_what_is_on_disk_is_not_measured_again(tmp_path):
    store = Store(tmp_path, "v")
    sweep(SPOTS[:2], third, store, jobs=1)
    calls = []

    def count(spot: Spot) -> dict:
        calls.append(spot)
        return third(spot)

    again = sweep(SPOTS, count, store, jobs=1)
    # A failed point is tried again, because its cause may be fixed.
    assert calls == SPOTS[2:] and again.resumed == 2
    assert _dump(again) == _dump(sweep(SPOTS, third, Store(tmp_path / "new", "v"), jobs=1))
    calls.clear()
    sweep(SPOTS[:2], count, Store(tmp_path, "other version"), jobs=1)
    assert calls == SPOTS[:2]


def test_an_interrupted_sweep_goes_on(tmp_path):
    def interrupted(spot: Spot) -> dict:
        if spot.number == 7:
            raise Interrupted(2)
        return third(spot)

    with pytest.raises(Interrupted) as caught:
        sweep(SPOTS, interrupted, Store(tmp_path, "v"), jobs=1)
    assert caught.value.__notes__ == [
        "3 of 5 points are finished; run the same command again to resume"]
    assert sweep(SPOTS, third, Store(tmp_path, "v"), jobs=1).resumed == 2


def test_a_killed_sweep_goes_on(tmp_path):
    (tmp_path / "begun").mkdir()
    process = multiprocessing.get_context("fork").Process(
        target=sweep, args=(SPOTS[3:] + SPOTS[:2], fakes.Killed(str(tmp_path / "begun")),
                            Store(tmp_path / "store", "v")), kwargs={"jobs": 1})
    process.start()
    process.join(30)
    assert process.exitcode == 9
    assert sweep(SPOTS, third, Store(tmp_path / "store", "v"), jobs=1).resumed == 2


@pytest.mark.thorough
def test_a_file_that_cannot_be_read_ends_the_sweep(tmp_path):
    for jobs in (1, 2):
        with pytest.raises(InputError) as caught:
            sweep(SPOTS[:2], fakes.unreadable, Store(tmp_path, "v"), jobs=jobs)
        assert str(caught.value) == "clicks.csv:3:7: no label"


def test_metrics_that_json_lacks_are_a_failure(tmp_path):
    store = Store(tmp_path, "v")
    results = sweep(SPOTS[:1], lambda spot: {"rate": float("nan")}, store, jobs=1)
    assert results.failed[0].error.startswith("ValueError: Out of range float")
    assert store.get(SPOTS[0]) is None


def _killed(item: int) -> int:
    if item == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


@pytest.mark.thorough
def test_a_process_that_is_killed_is_said_in_a_line():
    with pytest.raises(ChildProcessError, match=r"^a worker process died .SIGKILL") as error:
        list(each(_killed, range(3), jobs=2))
    assert "\n" not in str(error.value)


def test_bad_backends():
    with pytest.raises(ValueError, match="backend must be one of loky, dask, not 'slurm'"):
        check_backend("slurm", 1)
    with pytest.raises(ValueError, match="jobs must be at least 1, not 0"):
        check_backend("loky", 0)


def test_a_backend_that_is_not_installed_says_how(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"^backend 'dask' requires Dask's distributed: install "
                                          r"the extra in the repository with pip install "
                                          r"--editable '\.\[dask\]'$"):
        check_backend("dask", 1)

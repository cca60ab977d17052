"""Sweeps on a cluster: nothing is lost with a worker, and the bytes are those of this machine."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import gen
import host
import rtl
import sim
from sim.evaluation import sweep as sweeps
from sim.evaluation.setting import DEMO
from sim.evaluation.store import Store
from sim.evaluation.sweep import each, sweep
from sim.experiments.reproduce import points_of, reproduce
from sim.files.identity import sources_hash, versions
from tests.optional import absent
from tests.sim.experiments.fakes import KillsWorker, Spot, third
from tests.sim.experiments.measured import told

pytest.importorskip("distributed", reason=absent("distributed"))
import dask.config
import distributed

ROOT = Path(__file__).parents[3]
SETTING = replace(DEMO, mini_batches=(("kaggle", 16),), shares=(0.0, 0.1))
SPOTS = [Spot("a", number) for number in (1, 2, 13, 7, 0.1)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a scheduler with two workers, each a process that is started again when lost.
    """
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}):
        with distributed.LocalCluster(n_workers=2, threads_per_worker=1,
                                      dashboard_address=":0") as found:
            yield found.scheduler_address


def _told_of(cluster: str, program: str, *arguments: object) -> str:
    """Run a program whose environment names the scheduler, as a user's does."""
    ran = subprocess.run([sys.executable, "-c", program, *map(str, arguments)], cwd=ROOT,
                         env=os.environ | {"DASK_SCHEDULER_ADDRESS": cluster,
                                           "PYTHONPATH": str(ROOT)},
                         capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def _kept(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*")
            if path.is_file()}


_REPRODUCE = """
import sys
from sim.experiments.reproduce import reproduce
from tests.sim.experiments.fakes import KillsWorker
from tests.sim.experiments.measured import told
from tests.sim.experiments.test_dask import SETTING
found = reproduce(["beyond"], SETTING, sys.argv[1], "dask",
                  how=KillsWorker(told, sys.argv[2], 3, 1))
print(found["points"], len(found["failed"]))
"""


@pytest.mark.thorough
def test_a_worker_killed_in_mid_sweep_loses_no_point_and_changes_no_byte(cluster, tmp_path):
    (tmp_path / "begun").mkdir()
    here, there = tmp_path / "here", tmp_path / "there"
    points = len(points_of(["beyond"], SETTING))
    said = _told_of(cluster, _REPRODUCE, there, tmp_path / "begun")
    assert said.split() == [str(points), "0"]
    # Measured again: the point of the worker that was killed, and what it had not handed over.
    assert (tmp_path / "begun.killed").exists()
    assert len(list((tmp_path / "begun").iterdir())) > points
    reproduce(["beyond"], SETTING, here, "loky", jobs=2, how=told)
    kept = _kept(there)
    assert kept == _kept(here)
    assert len([name for name in kept if name.startswith("points")]) == points


@pytest.mark.thorough
def test_a_point_that_kills_every_worker_fails_alone_and_is_measured_by_the_next_sweep(
        cluster, tmp_path):
    (tmp_path / "begun").mkdir()
    kills = KillsWorker(third, str(tmp_path / "begun"), 0, 1000, SPOTS[3].number)
    with dask.config.set({"scheduler-address": cluster}):
        results = sweep(SPOTS, kills, Store(tmp_path / "kept", "v"), backend="dask")
    assert [outcome.error and outcome.error.partition(":")[0] for outcome in results.values()] == [
        None, None, "ValueError", "KilledWorker", None]
    again = sweep(SPOTS, third, Store(tmp_path / "kept", "v"), jobs=1)
    assert again.resumed == 3 and again.value(SPOTS[3], "third") == 7 / 3


@pytest.mark.thorough
def test_without_a_scheduler_a_cluster_is_started_here(tmp_path):
    sweep(SPOTS, third, Store(tmp_path / "dask", "v"), backend="dask", jobs=1)
    sweep(SPOTS, third, Store(tmp_path / "loky", "v"), jobs=1)
    assert _kept(tmp_path / "dask") == _kept(tmp_path / "loky")


@pytest.fixture
def patched(tmp_path) -> Iterator[str]:
    """The address of a scheduler whose only worker has a changed source of EmberNIC."""
    code = tmp_path / "code"
    for package in (gen, host, rtl, sim):
        shutil.copytree(package.__path__[0], code / package.__name__,
                        ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests", code / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    with (code / "host" / "hashing.py").open("a") as file:
        file.write("GOLDEN += 2\n")
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as found:
        worker = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", found.scheduler_address,
             "--nthreads", "1", "--no-nanny", "--no-dashboard"], cwd=code,
            env=os.environ | {"PYTHONPATH": str(code)}, stderr=subprocess.DEVNULL)
        try:
            with distributed.Client(found) as client:
                client.wait_for_workers(1, timeout=60)
            yield found.scheduler_address
        finally:
            worker.kill()
            worker.wait()


def test_a_worker_of_other_code_measures_nothing(patched, tmp_path, monkeypatch):
    """Also one that comes later, when workers have been asked already."""
    store = Store(tmp_path / "kept", "v")
    with dask.config.set({"scheduler-address": patched}):
        for _ in range(2):
            with pytest.raises(ValueError) as error:
                sweep(SPOTS[:2], third, store, backend="dask")
            worker, _, text = str(error.value).partition(" must run ")
            assert worker.startswith("worker tcp://127.0.0.1:")
            assert "host/hashing.py" in text and "install the same version" in text
            monkeypatch.setattr(sweeps, "_check_worker", lambda code: None)
    assert not (tmp_path / "kept").exists()


def test_a_point_states_the_code_that_measured_it(tmp_path):
    sweep(SPOTS[:1], third, Store(tmp_path, "v"), jobs=1)
    kept = json.loads(next(tmp_path.rglob("*.json")).read_text())
    assert kept["made_by"] == {**versions(), "sources": sources_hash()}
    assert {"python", "embernic", "numpy", "amaranth"} <= kept["made_by"].keys()


def test_a_cluster_of_this_machine_has_no_port_for_others(monkeypatch):
    given = {}

    def local_cluster(**options):
        given.update(options)
        raise InterruptedError

    monkeypatch.setattr(distributed, "LocalCluster", local_cluster)
    monkeypatch.setattr(dask.config, "get", lambda *_: None)
    with pytest.raises(InterruptedError):
        list(each(third, SPOTS, "dask", 2))
    assert given["dashboard_address"].startswith("127.0.0.1:") and "host" not in given

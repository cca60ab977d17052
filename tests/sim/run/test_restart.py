"""A NIC is restarted in a running cluster: its peers accept it again, and every answer is right."""

import random

import pytest

from host.model import Model
from host.timing.clock import CYCLE_NS
from rtl.formats import Status
from sim.cluster.exchange import Exchange
from sim.job.fault_plan import FaultPlan
from sim.job.options import RunOptions
from sim.job.restarts import NicRestart
from sim.run.report import failures
from sim.run.restart import restart
from sim.run.run import Run, run
from tests.sim.interacting import write_model
from tests.sim.linked import LINKED

TINY = {"config": "tiny", "nodes": 3, "mini_batch": 12, "in_flight": 2, "placement": "row",
        "threads": 1, "settings": LINKED}


def _options(**options) -> RunOptions:
    return RunOptions.of(**TINY | options)


def _good(**options) -> dict:
    result = run(_options(**options))
    assert failures(result) == [] and result["complete"] and result["bit_identical"]
    return result


@pytest.mark.thorough
def test_the_same_predictions_as_without(backend):
    """Two nodes are restarted, one twice, in a network that loses, reorders and delays frames."""
    calm = _good(samples=72)
    faults = ("restart=5us:20us@1,restart=90us:2us@2,restart=91us:2us@1,"
              "drop=0.02,delay=0.1:30us,reorder=0.1:5us,duplicate=0.05")
    results = [_good(samples=72, faults=faults)]
    backend(exchange=Exchange)
    results.append(_good(samples=72, faults=faults))
    for result in results:
        assert result["predictions_sha256"] == calm["predictions_sha256"]
        assert [back["node"] for back in result["faults"]["restarts"]] == [1, 2, 1]
        assert [back["epoch"] for back in result["faults"]["restarts"]] == [1, 2, 3]
    for name in ("cycles", "counters", "faults"):
        assert results[0][name] == results[1][name]


@pytest.mark.thorough
def test_a_restart_that_is_due_when_the_next_samples_would_be_handed_out():
    """It holds the samples back, and then they are handed out."""
    first = "restart=1us:2us@1"
    back = _good(samples=36, faults=first)["faults"]["restarts"][0]["taken_back"]
    for later in range(0, 600, 60):
        start = (back + later) * CYCLE_NS / 1000
        result = _good(samples=36, faults=f"{first},restart={start}us:1us@2")
        assert [one["node"] for one in result["faults"]["restarts"]] == [1, 2], later


class Crash:
    """A run in which node 2 is restarted during traffic.

    ``owner``: whether it owns rows; otherwise it only waits for answers.
    """

    def __init__(self, path, seed: int, owner: bool, samples: int = 60, **options):
        rows = (60, 90, 70) if owner else (60, 90)
        model = write_model(path / "crash.toml", Model(rows, 16, 3, (4, 16), (4, 1), "crash"))
        self.job = Run(_options(model=model, placement="0,1,2" if owner else "0,1",
                                samples=samples, seed=seed, **options))
        self.lost = self.epoch = 0

    def run(self, until: float) -> bool:
        """Continue to the cycle, counted from the start, or to the end; return whether work is
        left."""
        job = self.job
        until += job.simulation.start
        job.cluster.run(lambda: job._work_left() and job.cluster.cycle < until,
                        job._after_quantum)
        return job._work_left()

    def crash(self, down: int) -> None:
        """Restart node 2 at once. Its samples are lost, samples of other nodes are not."""
        job, self.epoch = self.job, self.epoch + 1
        fault = NicRestart(0, down * CYCLE_NS / 1000, 2)
        # No samples are handed out meanwhile.
        job._restarts.append(fault)
        restart(job.simulation, fault, self.epoch, job._floor & 0xFFFF, job._after_quantum)
        job._restarts.clear()
        for step in list(job._open.values()):
            if 2 not in step.ends:
                left = int(step.left[2])
                step.give_up(2, Status.PEER)
                step.ends[2] = float(job.cluster.cycle)
                self.lost += left
                if step.done:
                    job.cluster.nodes[2].finished.append(step)
        job._after_quantum(job.cluster.cycle)
        job._submit(job.cluster.cycle + job.simulation.hand_out)

    def result(self) -> dict:
        job = self.job
        job.checks.drain()
        return job._result(None, complete=True)["results"]


def check_crashes(path, seed: int, crashes: int, owner: bool = False, **options) -> int:
    """Restart node 2 at random moments; return how many of its samples were lost.

    Samples of other nodes that needed rows of its former self end with status PEER.
    """
    rng = random.Random(seed)
    crash = Crash(path, seed, owner, **options)
    job = crash.job
    job._report_progress, job._live = lambda done, cycle: None, _NoFile()
    job._take = lambda step: None
    job._began = job._began_cpu = 0.0
    with job.checks, job.steps:
        job._submit(float(job.simulation.start))
        for _ in range(crashes):
            if not crash.run(job.cluster.cycle - job.simulation.start + rng.randrange(6_000)):
                break
            crash.crash(rng.choice([1, rng.randrange(3_000)]))
        while crash.run(1 << 40):
            pass
        found = crash.result()
    assert found["different"] == found["unanswered"] == 0
    assert found["refused"] >= crash.lost if owner else found["refused"] == crash.lost
    assert found["equal"] == options.get("samples", 60) - found["refused"]
    # Samples handed out after a restart get every row: caches contain no zeros.
    assert found["refused"] <= crashes * options.get("in_flight", TINY["in_flight"]) * 12
    return crash.lost


class _NoFile:
    def due(self) -> bool:
        return False


@pytest.mark.thorough
def test_nothing_of_the_former_self_is_answered(tmp_path):
    """Lookups of its former self are with the owners, some in their GPUs, when it returns."""
    assert check_crashes(tmp_path, 1, 4) > 0


@pytest.mark.thorough
def test_rows_of_a_restarted_owner_are_served_again(tmp_path):
    """Only samples in flight at a crash miss its rows: caches do not keep the zeros in their
    place."""
    check_crashes(tmp_path, 1, 3, owner=True, samples=240)


@pytest.mark.slow
@pytest.mark.parametrize("owner", [False, True], ids=["requester", "owner"])
@pytest.mark.parametrize("settings", [
    (), ("output_queues=true",), ("remote_cache=false", "lookup_timeout=4"),
    ("link_delay=20000", "link_timeout_first=3000")], ids=["", "queues", "no cache", "slow"])
@pytest.mark.parametrize("seed", range(2, 14))
def test_restarts_at_random_moments(tmp_path, seed, settings, owner):
    faults = "delay=0.1:20us,reorder=0.1:5us,drop=0.01" if seed % 2 else None
    check_crashes(tmp_path, seed, 12, owner, samples=180, in_flight=3, faults=faults,
                  settings=(*LINKED, *settings))


@pytest.mark.parametrize(("text", "message"), [
    ("restart=1us:2us", "faults must be restart=START:LENGTH@NODE"),
    ("restart=1us@2", "faults must be restart=START:LENGTH@NODE"),
    ("restart=1us:@2", "faults must be restart=START:LENGTH@NODE"),
    ("restart=1us:0us@2", "length of restart must be above 0 us"),
    ("restart=-1us:1us@2", "start of restart must be at least 0 us"),
    ("restart=1us:1us@3", "node of restart must be between 0 and 2, not '3'"),
    ("restart=1:1us@2", "restart: start must be a string with a number and a unit"),
])
def test_mistakes(text, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        RunOptions.of(nodes=3, faults=text)
    assert "\n" not in str(error.value)


def test_restarts_are_in_order():
    plan = FaultPlan.of("restart=9us:1us@0,restart=1us:2us@2", 3)
    assert plan.restarts == (NicRestart(1, 2, 2), NicRestart(9, 1, 0))


def test_only_a_link_takes_a_peer_back():
    with pytest.raises(ValueError, match="faults restart must go with link=true"):
        Run(_options(samples=12, settings=(), faults="restart=1us:1us@2"))
    with pytest.raises(ValueError, match="faults restart must go with fidelity rtl"):
        _options(samples=12, fidelity="model", faults="restart=1us:1us@2")

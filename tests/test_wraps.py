"""Counts that wrap after a long time: steps, time, sequence numbers and epochs, on whole
clusters."""

import pytest

import sim.cluster.cluster as cluster_module
import sim.run.run as run_module
from rtl.network.link.sender import LinkSender
from rtl.network.receiver import FrameReceiver
from sim.job.options import RunOptions
from sim.run.report import failures
from sim.run.restart import EPOCHS, restart
from sim.run.run import Run

pytestmark = pytest.mark.slow
FAULTS = "drop=0.03,duplicate=0.03,reorder=0.1:5us,delay=0.05:30us"
STEPS, SEQUENCES, TIMES = 1 << 16, 1 << 24, 1 << 32


def _job(samples: int = 240, **options) -> Run:
    return Run(RunOptions.of(**{
        "config": "tiny", "nodes": 3, "mini_batch": 12, "in_flight": 3, "placement": "row",
        "threads": 1, "settings": ("link=true",), "samples": samples} | options))


def _good(job: Run) -> dict:
    result = job.execute()
    assert failures(result) == [] and result["complete"] and result["bit_identical"]
    return result


def _wait_until(job: Run, cycle: int, monkeypatch) -> None:
    """Keep the cluster idle until ``cycle``, at which its run begins."""
    setup = job.simulation
    with monkeypatch.context() as patch:
        patch.setattr(cluster_module, "IDLE_QUANTUM", TIMES)
        patch.setattr(setup.cluster, "quantum", TIMES)
        setup.cluster.wait(cycle)
    setup.start = cycle


@pytest.mark.parametrize("settings", [(), ("deliver=unique", "completions=true")],
                         ids=["pooled", "unique"])
def test_steps(monkeypatch, settings):
    """The first steps have the last numbers."""
    calm = _good(_job(960, settings=settings))
    first = STEPS - 30
    monkeypatch.setattr(run_module, "enumerate", lambda items: enumerate(items, first),
                        raising=False)
    job = _job(960, settings=settings)
    for registers in job.registers:
        registers.write("step_floor", first)
    assert _good(job)["predictions_sha256"] == calm["predictions_sha256"]


@pytest.mark.parametrize("ahead", [500, 5_000, 12_000])
def test_time(monkeypatch, ahead):
    """Deadlines of a link on both sides of the wrap of time; frames are lost and late."""
    calm = _good(_job(faults=FAULTS))
    job = _job(faults=FAULTS)
    _wait_until(job, TIMES - ahead, monkeypatch)
    result = _good(job)
    assert job.cluster.cycle > TIMES
    assert result["predictions_sha256"] == calm["predictions_sha256"]
    assert sum(node["link_sender.repeated"] for node in result["counters"]) > 0


def test_sequences_and_time(monkeypatch):
    """Sequence numbers wrap, too; a NIC is restarted after the wrap."""
    calm = _good(_job(faults=FAULTS))
    first = SEQUENCES - 40
    monkeypatch.setitem(LinkSender.__init__.__kwdefaults__, "first_sequence", first)
    monkeypatch.setitem(FrameReceiver.__init__.__kwdefaults__, "first_sequence", first)
    job = _job(faults=f"{FAULTS},restart=60us:20us@1")
    _wait_until(job, TIMES - 5_000, monkeypatch)
    result = _good(job)
    assert result["predictions_sha256"] == calm["predictions_sha256"]
    assert all(node["link_sender.packets"] > 3 * 40 for node in result["counters"])


def test_epochs(monkeypatch):
    """The epoch of a restarted NIC is 0, the epoch of the others is 255."""
    calm = _good(_job(faults=FAULTS))
    monkeypatch.setattr(run_module, "restart", lambda simulation, fault, epoch, *rest: restart(
        simulation, fault, (epoch - 1) % EPOCHS, *rest))
    job = _job(faults=f"{FAULTS},restart=20us:20us@1")
    for registers in job.registers:
        registers.write("link_epoch", EPOCHS - 1)
    result = _good(job)
    assert [back["epoch"] for back in result["faults"]["restarts"]] == [0]
    assert result["predictions_sha256"] == calm["predictions_sha256"]

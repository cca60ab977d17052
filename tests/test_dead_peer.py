"""One dead peer: the other nodes answer every sample; lookups to it end with status PEER."""

import random

import pytest

from rtl.formats import Status
from sim.faults.cells import MODES
from sim.job.options import RunOptions
from sim.node.step import Step
from sim.run.run import Run

SAMPLES, SHARE = 120, 2
LINK = ("link=true", "link_tries=3", "link_timeout_first=500", "link_timeout_most=2000")
GIVEN_UP = 6_000
"""Cycles from the first packet to a dead peer to its end: 500, 500 and 1,000 of its three tries,
of which there may be a second round of packets, and what the queues hold in front of it."""
DELIVERIES = {mode: settings for mode, settings in MODES.items() if mode != "training"}


def _run(tmp_path, nodes: int, *settings: str, down: str = "0us", needy=(6, 7, 8)):
    """Run samples of which those that are ``needy`` name a row of the last node; return the run,
    its result, and the steps with their answers."""
    choose, dead = random.Random(3), nodes - 1
    path = tmp_path / "samples.txt"
    path.write_text("".join(
        " ".join(f"{table}:{choose.randrange(50)}" for table in range(dead + (k in needy))) + "\n"
        for k in range(SAMPLES)))
    job = Run(RunOptions.of(
        config="tiny", nodes=nodes, data=str(path), format="trace", mini_batch=SHARE * nodes,
        in_flight=64, settings=(*LINK, *settings), placement=",".join(map(str, range(nodes))),
        faults=f"down={down}:1s@{dead}", threads=1, patience=20_000))
    steps: list[Step] = []
    add = job.checks.add
    job.checks.add = lambda step: (steps.append(step), add(step))[1]
    return job, job.execute(), steps


def _check(job: Run, result: dict, steps: list[Step], needy) -> float:
    """Check that exactly the samples that need a node beyond a dead link have status PEER; return
    the cycles until the survivors were answered."""
    dead = len(job.cluster.nodes) - 1
    last = 0.0
    assert result["complete"] and result["stuck"] is None
    assert result["results"]["unanswered"] == result["results"]["different"] == 0
    for step in steps:
        for at in range(len(step.samples)):
            own = step.shares[dead] <= at < step.shares[dead + 1]
            lost = own or step.first + at in needy
            assert step.status[at] == (Status.PEER if lost else 0), step.first + at
        last = max(last, *(step.ends[node] for node in step.ends if node != dead))
    assert sum(len(step.samples) for step in steps) == SAMPLES
    for node, counters in enumerate(result["counters"][:dead]):
        assert job.cluster.nodes[node].unanswered == 0
        assert counters["remote_cache.bad_fills"] == 0
    return last - job.setup.start


def test_survivors_answer_every_sample(tmp_path):
    needy = (6, 7, 8)
    cycles = _check(*_run(tmp_path, 3), needy)
    assert cycles <= GIVEN_UP


@pytest.mark.slow
@pytest.mark.parametrize("settings", DELIVERIES.values(), ids=DELIVERIES)
@pytest.mark.parametrize("nodes", [3, 4, 8])
def test_survivors_answer_every_sample_however_it_is_delivered(tmp_path, nodes, settings):
    needy = (6, 7, 8)
    cycles = _check(*_run(tmp_path, nodes, *settings), needy)
    print(f"{nodes} nodes, {' '.join(settings)}: {cycles:.0f} cycles")
    assert cycles <= GIVEN_UP

"""One dead peer: the other nodes answer every sample; lookups to it end with status PEER."""

import random

import pytest

from rtl.formats import Status
from sim.faults.cells import MODES
from sim.job.options import RunOptions
from sim.node.step import Step
from sim.run.run import Run

SAMPLES, SHARE = 120, 2
LINK = ("link=true", "link_tries=3", "link_timeout_first=500", "link_timeout_most=2000",
        "link_probe_after=1000")
NEEDY = (6, 7, 8, 61, 100)
"""Samples that name a row of the dead node. Some of their lookups are in flight when it is given
up, later lookups are not sent."""
LATER = 3_000
"""Most cycles that a dead peer costs: 500, 500 and 1,000 of its three tries, and a walk over the
misses."""
DELIVERIES = {mode: settings for mode, settings in MODES.items() if mode != "training"}


def _run(tmp_path, nodes: int, *settings: str, faults: str | None):
    """Run samples; return the run, its result, and the steps with their answers."""
    choose, dead = random.Random(3), nodes - 1
    path = tmp_path / "samples.txt"
    path.write_text("".join(
        " ".join(f"{table}:{choose.randrange(50)}" for table in range(dead + (k in NEEDY))) + "\n"
        for k in range(SAMPLES)))
    job = Run(RunOptions.of(
        config="tiny", nodes=nodes, data=str(path), format="trace", mini_batch=SHARE * nodes,
        in_flight=4, settings=(*LINK, *settings), placement=",".join(map(str, range(nodes))),
        faults=faults, threads=1, patience=20_000))
    steps: list[Step] = []
    add = job.checks.add
    job.checks.add = lambda step: (steps.append(step), add(step))[1]
    return job, job.execute(), steps


def _survive(tmp_path, nodes: int, *settings: str) -> str:
    """Run with a dead node; check that exactly the samples that need it have status PEER. Return
    the cycles until the survivors were answered, and the cycles without a fault."""
    dead = nodes - 1
    calm = _run(tmp_path, nodes, *settings, faults=None)[1]
    assert calm["results"]["equal"] == SAMPLES
    job, result, steps = _run(tmp_path, nodes, *settings, faults=f"down=0us:1s@{dead}")
    assert result["complete"] and result["stuck"] is None
    assert result["results"]["unanswered"] == result["results"]["different"] == 0
    last = 0.0
    for step in steps:
        for at in range(len(step.samples)):
            own = step.shares[dead] <= at < step.shares[dead + 1]
            lost = own or step.first + at in NEEDY
            assert step.status[at] == (Status.PEER if lost else 0), step.first + at
        last = max(last, *(step.ends[node] for node in step.ends if node != dead))
    assert sum(len(step.samples) for step in steps) == SAMPLES
    survivors = result["counters"][:dead]
    for node, counters in zip(job.cluster.nodes, survivors):
        assert node.unanswered == 0 and counters["remote_cache.bad_fills"] == 0
    assert sum(node["lost_misses.walks"] for node in survivors) > 0
    assert sum(node["lost_misses.kept"] for node in result["counters"]) > 0
    cycles = last - job.simulation.start
    assert cycles <= calm["cycles"] + LATER
    return f"{nodes} nodes, {' '.join(settings)}: {cycles:.0f} cycles, calm {calm['cycles']}"


@pytest.mark.thorough
def test_survivors_answer_every_sample(tmp_path):
    print(_survive(tmp_path, 3))


@pytest.mark.slow
@pytest.mark.parametrize("settings", DELIVERIES.values(), ids=DELIVERIES)
@pytest.mark.parametrize("nodes", [3, 4, 8])
def test_survivors_answer_every_sample_however_it_is_delivered(tmp_path, nodes, settings):
    print(_survive(tmp_path, nodes, *settings))


def _die_midway(tmp_path, nodes: int, *settings: str, start: float) -> None:
    """Run with a node that dies ``start`` us after the beginning, with acknowledged but unanswered
    lookups; check every sample's status."""
    dead = nodes - 1
    _job, result, steps = _run(tmp_path, nodes, *settings, faults=f"down={start}us:1s@{dead}")
    assert result["complete"] and result["stuck"] is None
    assert result["results"]["unanswered"] == result["results"]["different"] == 0
    lost = 0
    for step in steps:
        for at in range(len(step.samples)):
            may = (step.shares[dead] <= at < step.shares[dead + 1] or step.first + at in NEEDY)
            assert step.status[at] in ((0, Status.PEER) if may else (0,)), step.first + at
            lost += step.status[at] == Status.PEER
    assert 0 < lost <= SAMPLES // nodes + len(NEEDY)
    assert sum(node["link_probes.sent"] for node in result["counters"]) > 0


@pytest.mark.thorough
@pytest.mark.parametrize("start", [30])
def test_a_peer_that_dies_before_it_answers_is_noticed(tmp_path, start):
    _die_midway(tmp_path, 3, start=start)


@pytest.mark.slow
@pytest.mark.parametrize("settings", DELIVERIES.values(), ids=DELIVERIES)
@pytest.mark.parametrize("nodes", [3, 4, 8])
def test_a_peer_that_dies_at_any_time_is_noticed(tmp_path, nodes, settings):
    for start in range(12, 42, 5):
        _die_midway(tmp_path, nodes, *settings, start=start)

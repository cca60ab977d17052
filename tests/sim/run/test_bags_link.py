"""Runs whose bags pool at their owners, over a network that loses and changes frames: the bits of a
calm run; dead and restarted owners."""

import random
from collections import Counter

import pytest

from host.model import Model
from rtl.formats import Status
from sim.job.options import RunOptions
from sim.node.step import Step
from sim.run.report import failures
from sim.run.run import Run, run
from tests.sim.interacting import write_model
from tests.sim.run.results import faultless, totals
from tests.sim.run.test_restart import check_crashes

KINDS = ("drop", "duplicate", "reorder", "corrupt")
ALL = "drop={rate},duplicate={rate},reorder={rate}:4us,corrupt={rate}"
SMALL = "owner_bags=16", "owner_bag_beats=32", "bag_segments=32", "bag_timeout=2"
"""So few places, ids and credits that bags wait for each of them."""
SIZES = pytest.mark.parametrize(
    "settings", [(), pytest.param(SMALL, marks=pytest.mark.slow)], ids=["", "small"])


def _options(faults: str | None = None, *settings: str, **options) -> RunOptions:
    return RunOptions.of(**{
        "config": "tiny", "nodes": 3, "samples": 480, "mini_batch": 24, "in_flight": 3,
        "model": "multi_hot", "pool": "owner", "threads": 1, "faults": faults,
        "settings": ("link=true", *settings)} | options)


@pytest.fixture(scope="module")
def calm() -> dict:
    return faultless(run(_options()))


@pytest.mark.thorough
def test_a_network_that_loses_nothing(calm):
    """The values are those of a NIC without a link, and of requester pooling."""
    others = [faultless(run(_options(settings=()))),
              faultless(run(_options(pool="requester", samples=96)))]
    assert calm["predictions_sha256"] == others[0]["predictions_sha256"]
    assert faultless(run(_options(samples=96)))["predictions_sha256"] == (
        others[1]["predictions_sha256"])
    sums = totals(calm)
    assert sums["bag_sender.bags"] == sums["bag_landing.vectors"] == calm["bags"]["foreign"] > 0
    for name in ("link_sender.repeated", "link_sender.failures", "lost_bags.kept",
                 "lost_bags.vectors", "bag_landing.bad_vectors"):
        assert sums[name] == 0, name


@pytest.mark.thorough
@SIZES
@pytest.mark.parametrize("faults", [
    *(f"{kind}-{opcode}=0.01" + ":4us" * (kind == "reorder")
      for kind in KINDS for opcode in ("bags", "bag_vectors")),
    ALL.format(rate=0.01), ALL.format(rate=0.1)])
def test_values_stay(calm, faults, settings):
    """Each bag is answered once, whatever the network does."""
    result = faultless(run(_options(faults, *settings)))
    assert result["predictions_sha256"] == calm["predictions_sha256"]
    opcodes = {row["opcode"] for row in result["faults"]["injected"]}
    sums = totals(result)
    if faults.startswith("drop-"):
        assert opcodes == {faults[5:].partition("=")[0].upper()}
        assert sums["link_sender.repeated"] > 0
    if "0.1" in faults:
        assert opcodes >= {"BAGS", "BAG_VECTORS"}
    assert sums["bag_sender.bags"] == sums["bag_check.bags"] == sums["bag_landing.vectors"] == (
        result["bags"]["foreign"])
    assert sums["bag_receiver.over_credit"] == sums["bag_landing.bad_vectors"] == 0


@pytest.mark.thorough
@SIZES
@pytest.mark.parametrize("seed", [1, 19, 20, 35])
def test_restarts_between_samples(calm, seed, settings):
    """Frames of a peer to the former NIC reach the new one, and it takes none of them. Credits of
    bags to the new NIC are not those of the former one."""
    result = run(_options("restart=5us:20us@1,restart=90us:2us@2,restart=150us:2us@1,drop=0.02,"
                          f"delay=0.1:30us,reorder=0.1:5us,duplicate=0.05,seed={seed}", *settings))
    assert failures(result) == [] and result["complete"]
    assert result["predictions_sha256"] == calm["predictions_sha256"]
    assert [back["node"] for back in result["faults"]["restarts"]] == [1, 2, 1]
    sums = totals(result)
    assert sums["link_sender.bad_acknowledgements"] == sums["bag_landing.bad_vectors"] == 0


@pytest.mark.thorough
@pytest.mark.parametrize("owner", [False, True], ids=["requester", "owner"])
@SIZES
def test_restarts_amid_bags(tmp_path, settings, owner):
    """Bags of the former self are with their owners, or its own vectors are owed, when it returns.
    """
    assert check_crashes(tmp_path, 3, 12, owner, pool="owner", samples=180, in_flight=3,
                         faults="delay=0.1:20us,reorder=0.1:5us,drop=0.01",
                         settings=("link=true", *settings)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("owner", [False, True], ids=["requester", "owner"])
@pytest.mark.parametrize("settings", [
    (), SMALL, ("bag_timeout=4",), ("link_delay=20000", "link_timeout_first=3000")],
    ids=["", "small", "short", "slow"])
@pytest.mark.parametrize("seed", range(4, 16))
def test_restarts_amid_bags_at_random_moments(tmp_path, seed, settings, owner):
    faults = "delay=0.1:20us,reorder=0.1:5us,drop=0.01" if seed % 2 else None
    check_crashes(tmp_path, seed, 12, owner, pool="owner", samples=180, in_flight=3, faults=faults,
                  settings=("link=true", *settings))


LINK = ("link=true", "link_tries=3", "link_timeout_first=500", "link_timeout_most=2000",
        "link_probe_after=1000")
SAMPLES, SHARE, NODES = 120, 2, 3
DEAD, NEEDY = NODES - 1, range(60, 72)
"""Samples with a bag of the dead node's table."""


def _with_dead(tmp_path, start: float | None, *settings: str):
    """Run with a node that is silent from ``start`` us on; return the result and the steps."""
    choose = random.Random(3)
    model = write_model(tmp_path / "dead.toml", Model(
        (50, 60, 70), 16, 3, (4, 16), (4, 1), "dead", ((1, 40), (1, 9), (0, 30))))
    path = tmp_path / "samples.txt"
    path.write_text("".join(" ".join(
        f"{table}:{choose.randrange(50)}" for table in range(NODES) if table < DEAD or k in NEEDY
        for _ in range(choose.randrange(1, 9))) + "\n" for k in range(SAMPLES)))
    job = Run(_options(
        None if start is None else f"down={start}us:1s@{DEAD}", model=model, data=str(path),
        format="trace", samples=None, mini_batch=SHARE * NODES, in_flight=4, patience=20_000,
        placement=",".join(map(str, range(NODES))), settings=(*LINK, *settings)))
    steps: list[Step] = []
    add = job.checks.add
    job.checks.add = lambda step: (steps.append(step), add(step))[1]
    return job.execute(), steps


@pytest.mark.thorough
@SIZES
@pytest.mark.parametrize("start", [0, 12, 20, 30])
def test_survivors_of_a_dead_owner(tmp_path, start, settings):
    """Samples with a bag that the dead node owes end with status PEER, all others with their
    values. Probes notice a node that acknowledged bags and dies before it answers."""
    result, steps = _with_dead(tmp_path, start, *settings)
    assert result["complete"] and result["stuck"] is None
    assert result["results"]["unanswered"] == result["results"]["different"] == 0
    lost = 0
    for step in steps:
        for at in range(len(step.samples)):
            may = step.shares[DEAD] <= at < step.shares[DEAD + 1] or step.first + at in NEEDY
            must = may and start == 0
            assert step.status[at] in ((Status.PEER,) if must else (0, Status.PEER) if may else (
                0,)), step.first + at
            lost += step.status[at] == Status.PEER
    assert sum(len(step.samples) for step in steps) == SAMPLES
    survivors = Counter()
    for node in result["counters"][:DEAD]:
        survivors.update(node)
    assert survivors["lost_bags.walks"] == DEAD and survivors["bag_landing.bad_vectors"] == 0
    assert survivors["bag_sender.bags"] == survivors["bag_landing.vectors"]
    assert survivors["lost_bags.vectors"] > 0 < lost

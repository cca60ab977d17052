"""Runs whose NICs find repeated bags: the predictions of runs that look up all bags, and fewer
bytes on the network."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from host.batching.repeats import repeated_bags
from host.placement.shard import ShardPlan
from rtl.formats import Status, TableDescriptor
from sim.job.options import RunOptions
from sim.node.step import Step
from sim.run.report import failures
from sim.run.run import Run, run
from tests.sim.run.results import faultless
from tests.sim.run.test_bags_link import DEAD, LINK, NODES
from tests.sim.run.test_repeats import _counter, _options, _steps, model_of_requests

MODEL = model_of_requests((500, 1, "true"), (3000, [0, 40], "true"), (40, 1, "false"),
                          (20, [0, 2], "false"), (900, [2, 9], "true"))

DELIVERIES = pytest.mark.parametrize("settings", [
    (), ("deliver=unique", "completions=true"),
    pytest.param(("interaction=true", "dot_units=3"), marks=pytest.mark.slow)],
    ids=["pooled", "unique", "interaction"])


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("nic_repeats") / "model.toml"
    path.write_text(MODEL)
    return path


def _both(model: Path, *settings: str, **changes) -> tuple[dict, dict]:
    """Return a run whose NICs look up all bags, and a run whose NICs find repeats."""
    sent, found = (faultless(run(_options(
        model, repeats, *settings, pool="owner", **changes))) for repeats in ("send", "nic"))
    return sent, found


def _neighbours(options) -> int:
    """Return the bags that repeat the bag of the sample before, in the steps of a run."""
    _, steps = _steps(Run(options))
    return sum(int((repeated_bags(step.samples, options.workload.nodes)
                    & (step.samples.bag_lengths > 0)).sum()) for step in steps)


@pytest.mark.thorough
@DELIVERIES
def test_predictions_are_those_of_all_bags(model, settings):
    sent, found = _both(model, *settings)
    assert found["predictions_sha256"] == sent["predictions_sha256"]
    assert sent["repeats"] is None
    repeats = found["repeats"]
    assert 0.3 < repeats["share"] == 1 - repeats["sent"] / repeats["bags"] < 1
    assert repeats["beyond"] == 0 and repeats["sent_lookups"] < found["lookups"]
    assert found["network"]["bytes"] < sent["network"]["bytes"]
    again = repeats["bags"] - repeats["sent"]
    assert _counter(found, "dispatcher.bags") == _counter(sent, "dispatcher.bags") - again
    if "interaction=true" in settings:  # all bags pass the NIC
        assert again == _neighbours(_options(model, "send", *settings, pool="owner"))


@pytest.mark.thorough
def test_nothing_is_found_in_samples_alone(model):
    """A share of a single sample has no repeats."""
    sent, found = _both(model, mini_batch=2)
    assert found["repeats"]["share"] == 0
    assert found["predictions_sha256"] == sent["predictions_sha256"]


@pytest.mark.thorough
@pytest.mark.parametrize("settings", [(), ("deliver=unique",)], ids=["pooled", "unique"])
def test_bags_beyond_the_sizes(model, settings):
    sent, found = _both(model, *settings)
    less = faultless(run(_options(model, "nic", *settings, "repeat_words=64", "repeat_vectors=2",
                                  pool="owner")))
    assert less["predictions_sha256"] == sent["predictions_sha256"]
    assert less["repeats"]["beyond"] > 0
    assert 0 < less["repeats"]["share"] < found["repeats"]["share"]


@pytest.mark.thorough
@pytest.mark.parametrize("nodes", [1, 3, 4])
@DELIVERIES
def test_any_number_of_nodes(model, nodes, settings):
    sent, found = _both(model, *settings, nodes=nodes)
    assert found["predictions_sha256"] == sent["predictions_sha256"]
    # The GPU pools own bags itself, unless the NIC needs all bags.
    if nodes > 1 or "interaction=true" in settings:
        assert found["repeats"]["share"] > 0.2
    else:
        assert found["repeats"]["bags"] == 0


@pytest.mark.thorough
@DELIVERIES
def test_rejected_samples(model, monkeypatch, settings):
    """The NIC rejects samples with an unknown row. Other samples end as without repeats, and repeat
    no bag of a sample before a rejected sample."""
    full, known = ShardPlan.descriptors, 34

    def fewer_rows(plan: ShardPlan) -> np.ndarray:
        words = full(plan)
        words[2, TableDescriptor["rows_low"].offset // 32] = known
        return words

    monkeypatch.setattr(ShardPlan, "descriptors", fewer_rows)
    options = _options(model, "nic", *settings, pool="owner", placement="even")
    result, steps = _steps(Run(options))
    assert result["complete"] and not result["results"]["different"]
    rejected, most = 0, 0
    for step in steps:
        bad = _bad(step, known)
        assert set(step.status.tolist()) <= {0, Status.ROW}
        assert not step.status[~bad].any()
        ended = step.status != 0
        rejected += int(ended.sum())
        again = repeated_bags(step.samples, 2) & (step.samples.bag_lengths > 0)
        again[1:] &= ~(ended[1:] | ended[:-1])[:, None]
        most += int(again.sum())
    assert 0 < rejected == result["results"]["refused"] == result["errors"]
    found = result["repeats"]["bags"] - result["repeats"]["sent"]
    assert 0 < found <= most
    if "interaction=true" in settings:  # all bags pass the NIC
        assert found == most


def _bad(step: Step, known: int) -> np.ndarray:
    """Return whether each sample has an unknown row of table 2."""
    rows = step.samples.rows[step.samples.tables == 2]  # each sample has a key of table 2
    return rows >= known


@pytest.mark.slow
@DELIVERIES
@pytest.mark.parametrize("start", [0, 12, 30])
def test_flagged_bags_of_a_dead_node(tmp_path, settings, start):
    """A repeat of a bag that the dead node owes ends its sample as the bag does."""
    model, data = tmp_path / "dead.toml", tmp_path / "samples.txt"
    model.write_text("dimension = 16\ndense = 3\nbottom = [4, 16]\ntop = [4, 1]\n"
                     "rows = [50, 60, 70]\n")
    # Runs of three samples have the same bag of the dead node's table; every fifth run has none.
    data.write_text("".join(" ".join(
        f"{table}:{(7 * (number // 3) if table == DEAD else number) % 50}" for table in range(NODES)
        if table < DEAD or number // 3 % 5) + "\n" for number in range(120)))
    job = Run(_options(
        model, "nic", *LINK, *settings, nodes=NODES, data=str(data), format="trace",
        samples=None, mini_batch=24, in_flight=4, patience=20_000, pool="owner",
        placement=",".join(map(str, range(NODES))), faults=f"down={start}us:1s@{DEAD}"))
    result, steps = _steps(job)
    assert result["complete"] and result["stuck"] is None
    assert result["results"]["unanswered"] == result["results"]["different"] == 0
    assert result["repeats"]["bags"] > result["repeats"]["sent"]
    lost = 0
    for step in steps:
        again = repeated_bags(step.samples, NODES)[:, DEAD] & (
            step.samples.bag_lengths[:, DEAD] > 0)
        for node in range(NODES):
            first, last = step.shares[node:node + 2]
            ended = {at for at in range(first, last) if step.status[at]}
            assert all(step.status[at] == Status.PEER for at in ended)
            if node == DEAD:
                continue
            needy = {at for at in range(first, last) if step.samples.bag_lengths[at, DEAD]}
            assert ended <= needy and (ended == needy or start)
            # The users of a bag share its fate.
            for at in range(first + 1, last):
                if again[at]:
                    assert (at in ended) == (at - 1 in ended)
                    lost += at in ended
    assert lost > 0


@pytest.mark.parametrize("fidelity", ["fast", pytest.param("rtl", marks=pytest.mark.slow)])
def test_ranking_beside_repeats_that_hosts_find(fidelity):
    """NICs send the bags that hosts would send, in the time of such hosts, for the predictions of
    all bags. All three runs have the same NICs."""
    sent, hosts, nics = (run(RunOptions.of(
        config="tiny", model="ranking", nodes=4, samples=192, mini_batch=96, threads=1,
        pool="owner", repeats=repeats, fidelity=fidelity,
        settings=("repeat_words=8192", "repeat_vectors=26"))) for repeats in (
            "send", "neighbours", "nic"))
    assert failures(sent) == failures(hosts) == failures(nics) == []
    digest, = {each["predictions_sha256"] for each in (sent, hosts, nics)}
    assert (digest is None) == (fidelity == "fast")
    assert nics["repeats"]["sent"] == nics["bags"]["foreign"] == hosts["bags"]["foreign"]
    assert nics["repeats"]["share"] == pytest.approx(hosts["repeats"]["share"], abs=0.01)
    assert nics["repeats"]["beyond"] == 0
    bytes_sent, by_hosts, by_nics = (each["network"]["bytes"] for each in (sent, hosts, nics))
    assert by_nics < 0.5 * bytes_sent
    assert by_nics == pytest.approx(by_hosts, rel=0.02)
    assert nics["cycles"] < 0.6 * sent["cycles"]
    assert nics["cycles"] == pytest.approx(hosts["cycles"], rel=0.05)


def test_results_during_the_run_have_no_repeats(model):
    """The NICs' counters are not read then."""
    written: list[dict] = []
    result = Run(_options(model, "nic", pool="owner", fidelity="fast")).execute(
        live=SimpleNamespace(due=lambda: True, write=written.append))
    assert written and {each["repeats"] for each in written} == {None}
    assert result["repeats"]["bags"] > 0


@pytest.mark.parametrize(("options", "message"), [
    ({"repeats": "nic"}, "repeats must be send, neighbours or indices, not 'nic', without tables"),
    ({"repeats": "nic", "pool": "owner", "settings": ("repeat_words=0",)},
     "repeat_words must be above 0 for repeats nic, not 0")])
def test_options_that_contradict(model, options, message):
    with pytest.raises(ValueError, match=message):
        Run(_options(model, **options))

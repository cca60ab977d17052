"""Runs whose hosts send each distinct bag once: the predictions of runs that send all bags, and
errors of bags."""

import json
from pathlib import Path

import numpy as np
import pytest

from host.placement.shard import ShardPlan
from rtl.formats import Status, TableDescriptor
from sim.job.options import RunOptions
from sim.node.step import Step
from sim.run.report import table
from sim.run.run import Run, run
from tests.sim.run.results import faultless
from tests.sim.run.test_bags_link import DEAD, LINK, NODES


def model_of_requests(*tables: tuple) -> str:
    """Return a model of requests of one user with several candidates; many bags are empty.

    tables: rows, keys of a bag, and whether a bag is the request's, for each table.
    """
    return """
dimension = 16
dense = 1
bottom = [16]
top = [1]
requests = [5, 9, 14]
""" + "".join(f"[[tables]]\nname = 't{number}'\nrows = {rows}\nbag = {bag}\nrequest = {request}\n"
              for number, (rows, bag, request) in enumerate(tables))


MODEL = model_of_requests((500, 1, "true"), (3000, [0, 8], "true"), (40, 1, "false"),
                          (20, [0, 2], "false"))
SAMPLES = 96


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("repeats") / "model.toml"
    path.write_text(MODEL)
    return path


def _options(model: Path, repeats: str, *settings: str, **changes) -> RunOptions:
    return RunOptions.of(**{
        "config": "tiny", "model": str(model), "samples": SAMPLES, "mini_batch": 24, "nodes": 2,
        "threads": 1, "repeats": repeats, "settings": settings} | changes)


@pytest.fixture(scope="module")
def sent(model) -> dict:
    """The run that sends all bags."""
    result = faultless(run(_options(model, "send")))
    assert result["repeats"] is None
    return result


def _steps(job: Run) -> tuple[dict, list[Step]]:
    steps: list[Step] = []
    add = job.checks.add
    job.checks.add = lambda step: (steps.append(step), add(step))[1]
    return job.execute(), steps


def _counter(result: dict, name: str) -> int:
    return sum(counters[name] for counters in result["counters"])


def test_predictions_are_those_of_all_bags(model, sent):
    result = faultless(run(_options(model, "indices")))
    assert result["predictions_sha256"] == sent["predictions_sha256"]
    repeats, options = json.loads(json.dumps(result["repeats"])), result["options"]
    assert options["repeats"] == "indices"
    assert 0.4 < repeats["share"] == 1 - repeats["sent"] / repeats["bags"] < 1
    for found, lookups in ((result, repeats["sent_lookups"]), (sent, sent["lookups"])):
        assert found["lookups"] == sent["lookups"]
        assert _counter(found, "dispatcher.remote") + _counter(found, "dispatcher.local") == lookups
    assert result["network"]["bytes"] < sent["network"]["bytes"]
    assert "share of repeated bags" in "".join(map(str, table(result).columns[0].cells))


@pytest.mark.thorough
@pytest.mark.parametrize("nodes", [1, 2, 3, 4])
@pytest.mark.parametrize("repeats", ["neighbours", "indices"])
@pytest.mark.parametrize("settings", [
    (), ("completions=true",), ("deliver=unique",), ("deliver=unique", "completions=true")],
    ids=["pooled", "pooled completed", "unique", "unique completed"])
def test_any_delivery(model, sent, nodes, repeats, settings):
    result = faultless(run(_options(model, repeats, *settings, nodes=nodes)))
    assert result["predictions_sha256"] == sent["predictions_sha256"]
    assert 0.3 < result["repeats"]["share"] < 1


@pytest.mark.thorough
@pytest.mark.parametrize("nodes", [1, 2, 3, 4])
@pytest.mark.parametrize("settings", [(), ("deliver=unique", "completions=true")],
                         ids=["pooled", "unique"])
def test_bags_that_pool_at_their_owner(model, sent, nodes, settings):
    options = _options(model, "indices", *settings, nodes=nodes, pool="owner")
    result = faultless(run(options))
    assert result["predictions_sha256"] == sent["predictions_sha256"]
    bags = result["bags"]
    assert 0 < bags["foreign"] + bags["own"] == result["repeats"]["sent"]
    assert bags["own"] > 0 and (bags["foreign"] > 0) == (nodes > 1)


@pytest.mark.thorough
def test_nothing_repeats_across_steps_and_shares(model, sent):
    """A share of a single sample has no repeats."""
    result = faultless(run(_options(model, "indices", mini_batch=2)))
    assert result["predictions_sha256"] == sent["predictions_sha256"]
    assert result["repeats"]["share"] == 0


@pytest.mark.few(1, "thorough")
@pytest.mark.parametrize("settings", [(), ("deliver=unique", "completions=true")],
                         ids=["pooled", "unique"])
def test_rejected_samples(model, sent, monkeypatch, settings):
    """The NIC rejects a sample with an unknown row, and all bags of the sample. The error ends
    exactly the samples that use one of them."""
    full, known = ShardPlan.descriptors, 34

    def fewer_rows(plan: ShardPlan) -> np.ndarray:
        words = full(plan)
        words[2, TableDescriptor["rows_low"].offset // 32] = known
        return words

    monkeypatch.setattr(ShardPlan, "descriptors", fewer_rows)
    result, steps = _steps(Run(_options(model, "indices", *settings)))
    assert result["complete"] and not result["results"]["different"]
    rejected, ended = 0, 0
    for step in steps:
        assert step.repeats is not None
        rows, new = step.samples.rows, step.repeats.new
        bad = rows[step.samples.tables == 2] >= known  # each sample has a key of table 2
        bad &= new[:, 2]
        rejected += bad.sum()
        users = bad[step.repeats.first].any(axis=1)
        ended += users.sum()
        assert np.array_equal(step.status, np.where(users, Status.ROW, 0))
    assert 0 < rejected == result["errors"] < ended == result["results"]["refused"] < SAMPLES
    assert result["results"]["equal"] == SAMPLES - ended


@pytest.mark.thorough
@pytest.mark.parametrize("settings", [(), ("deliver=unique",)], ids=["pooled", "unique"])
@pytest.mark.parametrize("pool", ["requester", "owner"])
@pytest.mark.parametrize("start", [0, 12, 30])
def test_flagged_bags_of_a_dead_node(tmp_path, settings, pool, start):
    """A bag that the dead node owes ends every sample that uses the bag, and no other sample."""
    model, data = tmp_path / "dead.toml", tmp_path / "samples.txt"
    model.write_text("dimension = 16\ndense = 3\nbottom = [4, 16]\ntop = [4, 1]\n"
                     "rows = [50, 60, 70]\n")
    # Runs of three samples have the same bag of the dead node's table; every fifth run has none.
    data.write_text("".join(" ".join(
        f"{table}:{(7 * (number // 3) if table == DEAD else number) % 50}" for table in range(NODES)
        if table < DEAD or number // 3 % 5) + "\n" for number in range(120)))
    job = Run(_options(
        model, "indices", *LINK, *settings, nodes=NODES, data=str(data), format="trace",
        samples=None, mini_batch=24, in_flight=4, patience=20_000, pool=pool,
        placement=",".join(map(str, range(NODES))), faults=f"down={start}us:1s@{DEAD}"))
    result, steps = _steps(job)
    assert result["complete"] and result["stuck"] is None
    assert result["results"]["unanswered"] == result["results"]["different"] == 0
    lost = 0
    for step in steps:
        assert step.repeats is not None
        for node in range(NODES):
            share = range(*step.shares[node:node + 2])
            ended = {at for at in share if step.status[at]}
            first = step.repeats.first[:, DEAD]
            needy = {at for at in share if step.samples.bag_lengths[at, DEAD]}
            assert all(step.status[at] == Status.PEER for at in ended)
            if node == DEAD:
                continue
            assert ended <= needy and (ended == needy or start)
            # The users of a bag share its fate.
            assert all((at in ended) == (first[at] in ended) for at in needy)
            lost += sum(first[at] != at for at in ended)
    assert lost > 0


@pytest.mark.thorough
@pytest.mark.parametrize("pool", ["requester", "owner"])
def test_modelled_nics(model, pool):
    results = [run(_options(model, repeats, fidelity="model", pool=pool))
               for repeats in ("send", "indices")]
    assert all(result["complete"] and not result["results"]["refused"] for result in results)
    sent, once = results
    exact = run(_options(model, "indices", pool=pool))
    assert once["repeats"] == exact["repeats"]
    assert once["network"]["bytes"] < sent["network"]["bytes"]
    for name in ("network", "pcie"):
        assert once[name] == exact[name]


@pytest.mark.parametrize(("repeats", "settings", "message"), [
    ("indices", ("interaction=true", "dot_units=3"), "repeats must be send or nic with inter"),
    ("once", (), "repeats must be one of send, neighbours, indices, nic, not 'once'")])
def test_options_that_contradict(model, repeats, settings, message):
    with pytest.raises(ValueError, match=message):
        Run(_options(model, repeats, *settings))

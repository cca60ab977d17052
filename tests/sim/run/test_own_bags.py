"""GPUs that pool the bags of their own node in tables that pool at the requester."""

from pathlib import Path

import pytest

from host.model import Model, load_model
from host.placement.shard import ShardPlan
from sim.job.inputs import SampleSource
from sim.job.options import RunOptions
from sim.run.run import run
from sim.training.options import TrainOptions
from tests.sim.run.results import faultless

MODEL = """
dimension = 16
dense = 1
bottom = [16]
top = [1]
""" + "".join(f"[[tables]]\nrows = {rows}\nbag = {bag}\n" for rows, bag in (
    (1000, [0, 1]), (50, [0, 3]), (70, 1), (400, [2, 9]), (9, 1)))
"""A model with empty bags, long bags, and tables that are copied."""


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.toml"
    path.write_text(MODEL)
    return path


def _options(model: Path, *settings: str, **changes) -> RunOptions:
    given = {"config": "tiny", "model": model, "nodes": 3, "samples": 60, "mini_batch": 15,
             "threads": 1, "settings": settings}
    return RunOptions.of(**given | changes)


@pytest.fixture(scope="module")
def at_nic(model) -> dict:
    return faultless(run(_options(model)))


def _sum(result: dict, name: str) -> int:
    return sum(counters[name] for counters in result["counters"])


def _own(options: RunOptions) -> tuple[int, int]:
    """Return the keys of bags in tables of their own node, and their bags with keys."""
    source, keys, bags = SampleSource.of(options.workload), 0, 0
    plan = source.plan()
    for batch in source.measured():
        for node, share in enumerate(batch.shares(options.workload.nodes)):
            lengths = share.bag_lengths[:, plan.own_pooled(node)]
            keys += int(lengths.sum())
            bags += int((lengths > 0).sum())
    return keys, bags


def test_own_bags_do_not_pass_the_nic(model, at_nic):
    options = _options(model, own_bags="gpu")
    result = faultless(run(options))
    assert result["predictions_sha256"] == at_nic["predictions_sha256"]
    assert result["options"]["own_bags"] == "gpu" and result["lookups"] == at_nic["lookups"]
    keys, bags = _own(options)
    assert _sum(result, "dispatcher.local") == 0 < _sum(at_nic, "dispatcher.local") == keys
    assert _sum(result, "dispatcher.remote") == _sum(at_nic, "dispatcher.remote") > 0
    assert result["bags"]["own"] == bags > 0 and result["bags"]["foreign"] == 0
    assert result["bags"]["keys"] == keys and at_nic["bags"] is None


@pytest.mark.thorough
@pytest.mark.parametrize("nodes", [1, 2, 4])
@pytest.mark.parametrize("settings", [
    (), ("completions=true",), ("deliver=unique",), ("deliver=unique", "completions=true")],
    ids=["pooled", "pooled completed", "unique", "unique completed"])
@pytest.mark.parametrize("given", [
    {}, {"copied_rows": 60}, {"placement": "row"}, {"placement": "0,0,0,0,0"},
    {"repeats": "neighbours"}], ids=["plain", "copies", "hashed", "at one node", "repeats"])
def test_predictions_are_those_of_nics_that_look_up_all(model, at_nic, nodes, settings, given):
    result = faultless(run(_options(model, *settings, nodes=nodes, own_bags="gpu", **given)))
    assert result["predictions_sha256"] == at_nic["predictions_sha256"]


@pytest.mark.thorough
@pytest.mark.parametrize("nodes", [2, 4])
@pytest.mark.parametrize("settings", [(), ("deliver=unique",)], ids=["pooled", "unique"])
def test_a_network_that_loses_frames(model, at_nic, nodes, settings):
    result = faultless(run(_options(model, "link=true", *settings, nodes=nodes, own_bags="gpu",
                                    faults="drop=0.1,corrupt=0.1")))
    assert result["predictions_sha256"] == at_nic["predictions_sha256"]
    assert _sum(result, "link_sender.repeated") > 0


@pytest.mark.thorough
@pytest.mark.usefixtures("python_hosts")
@pytest.mark.parametrize("settings", [(), ("deliver=unique",)], ids=["pooled", "unique"])
def test_hosts_in_python(model, at_nic, settings):
    result = faultless(run(_options(model, *settings, own_bags="gpu")))
    assert result["predictions_sha256"] == at_nic["predictions_sha256"]


@pytest.mark.thorough
@pytest.mark.parametrize("settings", [(), ("deliver=unique",)], ids=["pooled", "unique"])
def test_beside_tables_that_pool_at_their_owner(tmp_path, model, at_nic, settings):
    pool = tmp_path / "pool.toml"
    pool.write_text("owner = [1, 3]")
    result = faultless(run(_options(model, *settings, own_bags="gpu", pool=pool)))
    assert result["predictions_sha256"] == at_nic["predictions_sha256"]
    assert result["bags"]["foreign"] > 0 and _sum(result, "dispatcher.local") == 0
    assert _sum(result, "dispatcher.remote") > 0


def test_plans_name_the_tables_that_a_gpu_pools():
    plan = ShardPlan.deal(Model((9, 9, 9), 16, 1, (16,), (1,), "three"), 2, "0,1,0")
    assert not plan.gpus_pool and not plan.own_pooled(0).any()
    own = SampleSource.of(RunOptions.of(
        model="kaggle", nodes=2, placement="row", own_bags="gpu").workload).plan()
    assert own.gpus_pool and not own.own_pooled(0).any()  # hashed rows are nobody's own
    some = SampleSource.of(RunOptions.of(
        model=Model((9, 9, 9), 16, 1, (16,), (1,), "three"), nodes=2, placement="0,1,0",
        own_bags="gpu").workload).plan()
    assert [some.own_pooled(node).tolist() for node in (0, 1)] == [
        [True, False, True], [False, True, False]]
    assert some.with_owner_tables([1]).own_pooled(1).tolist() == [False, True, False]


@pytest.mark.parametrize(("given", "message"), [
    ({"settings": ("interaction=true",)}, "own_bags must be nic with interaction, not 'gpu'"),
    ({"own_bags": "host"}, "own_bags must be one of nic, gpu, not 'host'")])
def test_options_that_contradict(model, given, message):
    with pytest.raises(ValueError, match=message):
        run(_options(model, **{"own_bags": "gpu"} | given))


def test_nics_that_train_look_up_all_rows(model):
    with pytest.raises(ValueError, match="own_bags must be nic in training, not 'gpu'"):
        TrainOptions.of(model=str(model), own_bags="gpu")
    assert load_model(model).tables == 5


@pytest.mark.thorough
@pytest.mark.parametrize("changes", [{}, {"wire": "float16"}, {"own_bags": "gpu"}, {"nodes": 1}],
                         ids=str)
def test_a_share_whose_own_bags_are_all_empty_is_answered(tmp_path, changes):
    """With hosts in C++ and in Python."""
    path = tmp_path / "empty.toml"
    path.write_text(MODEL.replace("[0, 3]", "[0, 1]").replace("bag = 1", "bag = [0, 1]").replace(
        "[2, 9]", "[0, 1]"))
    result = faultless(run(_options(path, "deliver=unique", "owner_bags=64", pool="owner",
                                    mini_batch=4, **changes)))
    assert result["results"] == {"equal": 60, "different": 0, "refused": 0, "unanswered": 0}

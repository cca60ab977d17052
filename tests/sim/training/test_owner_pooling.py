"""Training with tables that pool at their owner: weights are the same for every number of nodes."""

from dataclasses import replace

import pytest

from host.errors import InputError
from host.model import Model, load_model
from sim.faults.cells import EVERYTHING
from tests.sim.interacting import write_model
from tests.sim.training.compiled_nics import NIC, trained

MODEL = Model((50, 3, 400, 1 << 20), 16, 3, (4, 16), (4, 1), "small",
              ((1, 2), (1, 1), (0, 9), (1, 3)))
WHOLE = {"placement": "even", "samples": 48, "mini_batch": 16}
"""Options of a training whose tables are whole at one node each."""


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    return write_model(tmp_path_factory.mktemp("model") / "small.toml", MODEL)


def weights(path: str | Model, **given) -> str:
    """Return the weights' hash of the reference alone."""
    return trained(path, fidelity="model", **WHOLE | given)[0]["weights_sha256"]


@pytest.mark.parametrize("given", [
    {"learning_rate": 4.0}, {"optimizer": "rowwise-adagrad", "learning_rate": 0.2}],
    ids=["sgd", "adagrad"])
def test_the_reference_does_not_depend_on_nodes(path, tmp_path, given):
    chosen = tmp_path / "pool.toml"
    chosen.write_text("owner = [1, 2]\n")
    everywhere = weights(path, **given)
    for pool in ("owner", str(chosen)):
        found = {weights(path, pool=pool, nodes=nodes, **given) for nodes in (1, 2, 4)}
        assert len(found) == 1 and everywhere not in found
        assert weights(path, pool=pool, update="nic", **given) == everywhere


def test_the_result_names_the_places(path, tmp_path):
    chosen = tmp_path / "pool.toml"
    chosen.write_text("owner = [2]\n")
    result, _ = trained(path, fidelity="model", pool=str(chosen), **WHOLE)
    assert result["pool"] == ["requester", "requester", "owner", "requester"]
    assert result["update"] == "gpu"
    assert trained(path, fidelity="model", **WHOLE)[0]["update"] is None


def test_a_checkpoint_keeps_the_order_of_sums(path, tmp_path):
    kept = {"checkpoint": str(tmp_path / "c.npz"), "pool": "owner"}
    weights(path, **kept)
    with pytest.raises(InputError, match="in_order"):
        weights(path, **kept | {"pool": "requester"})
    assert weights(path, epochs=2, **kept) == weights(path, epochs=2, pool="owner")


@pytest.mark.thorough
@pytest.mark.parametrize("given", [
    {"nodes": 1}, {"nodes": 2, "learning_rate": 4.0}, {"nodes": 4, "optimizer": "rowwise-adagrad"}],
    ids=str)
def test_gpus_sum_in_order(path, given):
    """The weights are those of the reference, and each bag's gradient travels once."""
    result, _ = trained(path, **{"pool": "owner"} | WHOLE | given)
    rule = {name: given[name] for name in ("optimizer", "learning_rate") if name in given}
    assert result["weights_sha256"] == weights(path, pool="owner", **rule)
    sent, came = (sum(node[name] for node in result["counters"])
                  for name in ("bag_gradients.bags", "gradient_lists.gradients"))
    assert sent == came and (sent > 0) == (given["nodes"] > 1)


@pytest.mark.thorough
@pytest.mark.parametrize("given", [
    {"nodes": 1}, {"nodes": 2}, {"nodes": 4, "optimizer": "rowwise-adagrad"},
    pytest.param({"nodes": 3, "nic": (*NIC, "link=true"),
                  "faults": EVERYTHING.format(rate=0.01)}, marks=pytest.mark.slow),
    {"settings": ("deliver=unique", "completions=true")}], ids=str)
def test_nics_sum_exactly(path, given):
    """With the reducer of the NICs, the weights are those of requester pooling."""
    result, _ = trained(path, **{"pool": "owner", "update": "nic"} | WHOLE | given)
    optimizer = {"optimizer": given.get("optimizer", "sgd")}
    assert result["weights_sha256"] == weights(path, **optimizer)
    looked_up = sum(node["bag_check.bags"] for node in result["counters"])
    assert (looked_up > 0) == (given.get("nodes", 2) > 1)


def scaled(name: str) -> Model:
    """Return four tables of a model with its bags and requests, fewer rows and small MLPs."""
    model = load_model(name).with_tables(CHOSEN[name], f"{name}, scaled")
    return replace(model, rows=tuple(min(rows, 300) for rows in model.rows), dimension=16, dense=3,
                   bottom=(4, 16), top=(4, 1), dimensions=())


CHOSEN = {"dcnv2": [1, 19, 20, 21], "ranking": [0, 6, 13, 22]}
"""Tables of 2, 12, 100 and 27 keys; and of a user, its history, an item and its tags."""


@pytest.mark.thorough
@pytest.mark.parametrize("update", ["gpu", "nic"])
@pytest.mark.parametrize("name", list(CHOSEN))
def test_workloads_of_bags_have_the_weights_of_the_reference(name, update):
    given = {"pool": "owner", "update": update, "nodes": 2} | WHOLE | {"samples": 32}
    model = scaled(name)
    assert max(most for _, most in model.bags) == 100
    result, _ = trained(model, **given)
    assert result["update"] == update and set(result["pool"]) == {"owner"}
    by_gpus = update == "gpu"
    alone = {"pool": "owner" if by_gpus else "requester", "samples": 32,
             "nic": ("hold_vectors=1024",)}
    assert result["weights_sha256"] == weights(model, **alone)
    assert result["weights_sha256"] == weights(model, nodes=4, **alone)
    assert (sum(node["bag_gradients.bags"] for node in result["counters"]) > 0) == by_gpus

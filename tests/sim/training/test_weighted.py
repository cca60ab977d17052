"""Training with weighted bags: the weights are those of the reference, on any cluster."""

from dataclasses import replace

import numpy as np
import pytest

from host.data.generator import generate
from host.errors import InputError
from sim.training.report import failures
from sim.training.train import Training
from tests.sim.training.compiled_nics import options, trained
from tests.sim.training.test_owner_pooling import MODEL, weights

WEIGHTED = replace(MODEL, weighted_tables=(0, 2))
REQUESTS = replace(WEIGHTED, requests=(5, 9, 14), request_tables=(1, 2))
WHOLE = {"placement": "even", "samples": 48, "mini_batch": 16, "pool": "owner"}
RULE = {"optimizer": "rowwise-adagrad", "learning_rate": 0.2}


@pytest.mark.parametrize("given", [{}, RULE, {"update": "nic"}, {"settings": ("pooling=mean",)}],
                         ids=str)
def test_the_reference_does_not_depend_on_nodes(given):
    found = {weights(WEIGHTED, nodes=nodes, **WHOLE | given) for nodes in (1, 2, 4)}
    assert len(found) == 1
    assert found.isdisjoint({weights(MODEL, **WHOLE | given)})


def test_bags_have_rows_twice():
    samples, = generate(WEIGHTED, 48, 1)
    assert samples.weights is not None and np.any(samples.weights != 1)
    bag = np.repeat(np.arange(samples.bag_lengths.size), samples.bag_lengths.reshape(-1))
    assert len(np.unique(np.stack((bag, samples.rows)), axis=1).T) < len(bag)


def test_nics_do_not_pool_weighted_bags(tmp_path):
    with pytest.raises((ValueError, InputError), match="must pool at its owner"):
        Training(options(WEIGHTED, **WHOLE | {"pool": "requester"}))


@pytest.mark.thorough
@pytest.mark.few(8)
@pytest.mark.parametrize("update", ["gpu", "nic"])
@pytest.mark.parametrize("given", [
    {"nodes": 1}, {"nodes": 2, **RULE}, {"nodes": 4},
    {"nodes": 3, "settings": ("pooling=mean",)},
    {"settings": ("deliver=unique", "completions=true")},
    {"faults": "reorder=0.1:4us,delay=0.05:20us", "nodes": 4}], ids=str)
def test_nics_train_exactly(given, update):
    result, _ = trained(WEIGHTED, **WHOLE | given | {"update": update})
    kept = {name: given[name] for name in ("optimizer", "learning_rate", "settings")
            if name in given and "deliver" not in str(given[name])}
    assert result["weights_sha256"] == weights(WEIGHTED, **WHOLE | kept | {"update": update})
    assert (sum(node["bag_gradients.bags"] for node in result["counters"]) > 0) == (
        update == "gpu" and given.get("nodes", 2) > 1)


@pytest.mark.thorough
@pytest.mark.parametrize("update", ["gpu", "nic"])
@pytest.mark.parametrize("repeats", ["neighbours", "indices"])
def test_repeated_bags_with_weights_are_looked_up_once(repeats, update):
    result, _ = trained(REQUESTS, repeats=repeats, update=update, nodes=2, **WHOLE)
    alone = Training(options(REQUESTS, repeats=repeats, update=update, nodes=2, fidelity="model",
                             **WHOLE)).execute()
    assert failures(alone) == [] and result["weights_sha256"] == alone["weights_sha256"]

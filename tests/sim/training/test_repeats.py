"""Training that adds the gradients of repeated bags: the weights of the reference, and one gradient
for each distinct bag of a share."""

from functools import cache

import numpy as np
import pytest

from host.batching.repeats import sent_bags
from host.data.generator import generate
from host.errors import InputError
from host.model import Model
from host.samples import rechunk
from host.wire.packets import parse_header, parse_records
from rtl.formats import GradientRecord, Opcode, RecordKind
from sim.faults.cells import EVERYTHING
from sim.training.options import TrainOptions
from sim.training.report import failures
from sim.training.train import Training
from tests.sim.training.compiled_nics import NIC, options, trained
from tests.sim.training.fake_nics import FakeNics
from tests.sim.training.test_order import HEAVY

MODEL = Model((500, 300, 40, 20), 16, 3, (4, 16), (4, 1), "requests",
              ((1, 1), (0, 8), (1, 1), (0, 2)), requests=(5, 9, 14), request_tables=(0, 1))
MEAN = {"settings": ("pooling=mean",)}
SAMPLES, MINI_BATCH = 72, 24
GIVEN = {"placement": "even", "samples": SAMPLES, "mini_batch": MINI_BATCH, "learning_rate": 4.0}
PLACES = {"requester": {}, "owner": {"pool": "owner"},
          "owner, by NICs": {"pool": "owner", "update": "nic"}}


def weights(repeats: str = "neighbours", **given) -> str:
    """Return the weights' hash of the reference alone."""
    return trained(MODEL, fidelity="model", repeats=repeats, **GIVEN | given)[0]["weights_sha256"]


@cache
def sent(repeats: str, nodes: int) -> np.ndarray:
    """Return the non-empty bags of each table that the nodes send: int64 ``[nodes, tables]``."""
    found = np.zeros((nodes, MODEL.tables), np.int64)
    for batch in rechunk(generate(MODEL, SAMPLES, 1), MINI_BATCH):
        found += [np.count_nonzero(share.bag_lengths, axis=0)
                  for share in sent_bags(batch, nodes, repeats).shares(nodes)]
    return found


def check(repeats: str = "neighbours", nodes: int = 2, place: str = "requester",
          **given) -> dict:
    """Train; check the weights and the number of gradients, and return the result."""
    result, _ = trained(MODEL, repeats=repeats, nodes=nodes, **GIVEN | PLACES[place] | given)
    same = {name: given[name] for name in ("optimizer", "learning_rate") if name in given}
    same["settings"] = tuple(setting for setting in given.get("settings", ())
                             if setting.startswith(("pooling", "gradient_partials")))
    pool = {"pool": "owner"} if place == "owner" else {}
    assert result["weights_sha256"] == weights(repeats, nodes=nodes, **pool, **same)
    assert sent(repeats, nodes).sum() < 0.8 * sent("send", nodes).sum()
    by_nics, by_gpus = (sum(node.get(name, 0) for node in result["counters"]) for name in (
        "gradient_expander.bags", "bag_gradients.bags"))
    if place == "owner":
        assert by_nics == 0 and (by_gpus > 0) == (nodes > 1)
        assert by_gpus < sent(repeats, nodes).sum()
    else:
        assert (by_nics, by_gpus) == (sent(repeats, nodes).sum(), 0)
    if repeats != "nic":
        assert (result["repeats"]["bags"], result["repeats"]["sent"]) == tuple(
            sent(found, nodes).sum() for found in ("send", repeats))
    assert 0.2 < result["repeats"]["share"] < 1
    return result


@pytest.mark.parametrize("given", [{}, MEAN], ids=["sum", "mean"])
def test_the_reference_adds_repeats_before_all_other_sums(given):
    """The gradients of a share's repeats round to float32, so that shares matter."""
    assert len({weights(found, nodes=nodes, **given) for found in ("send", "neighbours")
                for nodes in (1, 3, 4)}) == 4
    exact, by_nics, by_gpus = ([weights(nodes=nodes, **place, **given) for nodes in (1, 3)]
                               for place in ({}, {"pool": "owner", "update": "nic"},
                                             {"pool": "owner"}))
    assert exact == by_nics
    assert exact != by_gpus or given  # divided gradients are small: few sums round differently


@pytest.mark.parametrize("given", [{}, MEAN], ids=["sum", "mean"])
def test_nothing_repeats_across_steps_and_shares(given):
    """A share of a single sample has no repeats; hosts that make the means change no bit."""
    one = {"mini_batch": 2, "nodes": 2, "samples": 24, **given}
    assert weights(**one) == weights("indices", **one) == weights("send", **one)


def test_a_checkpoint_keeps_the_repeats_and_the_shares(tmp_path):
    kept = {"checkpoint": str(tmp_path / "c.npz"), "nodes": 2}
    weights(**kept)
    for changed, field in (({"repeats": "send"}, "run.nodes"), ({"repeats": "indices"},
                                                               "run.repeats"),
                           ({"nodes": 3}, "run.nodes")):
        with pytest.raises(InputError, match=field):
            weights(**kept | changed)
    assert weights(epochs=2, **kept) == weights(epochs=2, nodes=2)


def test_nics_find_repeats_of_bags_that_pool_at_their_owner(tmp_path):
    """The gradients of other bags travel one by one."""
    chosen = tmp_path / "pool.toml"
    chosen.write_text("owner = [0]\n")
    found = [weights(repeats, nodes=3, pool=str(chosen), update="nic")
             for repeats in ("nic", "neighbours", "send")]
    assert len(set(found)) == 3
    assert weights("nic", pool="owner", update="nic") == weights(pool="owner", update="nic")
    for given in ({"reference": True}, {}):
        with pytest.raises(ValueError, match="repeats must be send, neighbours or indices, not 'n"):
            Training(TrainOptions.of(config="tiny", model=MODEL, samples=9, repeats="nic", **given))


@pytest.mark.parametrize("given", [
    {"nodes": 1}, {"nodes": 3}, {"nodes": 3, **MEAN}, {"nodes": 2, "repeats": "indices"},
    {"nodes": 3, "settings": ("overtake=true",)}], ids=str)
def test_hosts_send_a_gradient_for_each_distinct_bag(monkeypatch, given):
    """On fake NICs."""
    monkeypatch.setattr("sim.training.train.NicCluster", FakeNics)
    job = Training(options(MODEL, **GIVEN | {"repeats": "neighbours"} | given))
    result = job.execute()
    assert failures(result) == [] and result["bit_identical"]
    mean = {"settings": tuple(setting for setting in given.get("settings", ())
                              if setting.startswith("pooling"))}
    assert result["weights_sha256"] == weights(**given | mean)
    found = []
    for node in job.nics.simulation.cluster.nodes:
        packets = [packet for packet in node.sent
                   if parse_header(packet[0]).opcode == Opcode.GRADIENTS]
        kinds = np.concatenate([parse_records(
            GradientRecord, packet[1:], parse_header(packet[0]).count)["kind"]
            for packet in packets])
        found.append(np.count_nonzero(kinds == RecordKind.KEY_END))
    assert found == sent(given.get("repeats", "neighbours"), given["nodes"]).sum(axis=1).tolist()


@pytest.mark.thorough
@pytest.mark.parametrize("given", [{}, MEAN], ids=["sum", "mean"])
def test_nics_train_with_the_distinct_bags(given):
    results = [check(**given), trained(MODEL, **GIVEN | given)[0]]
    for name in ("network", "pcie"):
        first, second = (sum(result[name].values()) if name == "pcie" else result[name]["bytes"]
                         for result in results)
        assert first < second


@pytest.mark.thorough
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("nodes", [1, 3, 4])
def test_any_nodes_and_places(nodes, place):
    check(nodes=nodes, place=place)


@pytest.mark.thorough
@pytest.mark.parametrize("given", [
    {"settings": ("deliver=unique", "completions=true")},
    {"settings": ("deliver=unique", "completions=true", "pooling=mean")},
    {"repeats": "indices"}, {"repeats": "indices", **MEAN}, {"optimizer": "rowwise-adagrad"}],
    ids=str)
@pytest.mark.parametrize("place", PLACES)
def test_any_delivery_and_update(place, given):
    check(place=place, **given)


@pytest.mark.thorough
@pytest.mark.parametrize("given", [
    {"settings": ("gradient_partials=rounded",)}, {"settings": ("local_reduction=false",)},
    {"settings": ("overtake=true", "output_queues=true")}, {"placement": "row"}], ids=str)
def test_any_gradient_path(given):
    check(nodes=3, **given)


@pytest.mark.thorough
@pytest.mark.parametrize("place", PLACES)
def test_frames_in_any_order(place):
    result = check(nodes=3, place=place, faults=HEAVY)
    assert result["faults"]["injected"]


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("given", [{}, MEAN], ids=["sum", "mean"])
def test_frame_faults(place, given):
    nic = (*NIC, "link=true")
    result = check(nodes=3, place=place, nic=nic, faults=EVERYTHING.format(rate=0.02), **given)
    assert result["faults"]["injected"]


@pytest.mark.slow
@pytest.mark.parametrize("given", [
    {"nodes": 3}, {"nodes": 2, **MEAN}, {"nodes": 3, "update": "nic"},
    {"nodes": 2, "settings": ("deliver=unique", "completions=true")},
    {"nodes": 3, "faults": HEAVY}], ids=str)
def test_nics_that_find_repeats(given):
    """GPUs add the gradients of the bags that NICs find to repeat. As all tables pool at their
    owner, the weights are those of hosts that find repeats, for fewer bytes than all bags take."""
    asked = GIVEN | PLACES["owner"] | given
    found, sent_all = (trained(MODEL, repeats=repeats, **asked)[0] for repeats in ("nic", "send"))
    same = {name: given[name] for name in ("nodes", "update") if name in given}
    same |= MEAN if given.get("settings") == MEAN["settings"] else {}
    assert found["weights_sha256"] == weights("nic", pool="owner", **same) == weights(
        pool="owner", **same)
    again, bags, fewer = (sum(node.get(name, 0) for node in found["counters"]) for name in (
        "bag_repeats.repeats", "bag_gradients.bags", "gradient_expander.bags"))
    assert again > 0
    assert "faults" in given or found["network"]["bytes"] < sent_all["network"]["bytes"]
    if given.get("update") == "nic":
        assert (bags, fewer) == (0, sent("neighbours", given["nodes"]).sum())
    else:
        assert fewer == 0 < bags < sum(
            node["bag_gradients.bags"] for node in sent_all["counters"])

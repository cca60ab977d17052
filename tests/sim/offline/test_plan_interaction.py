"""``sim plan`` with the interaction on the NIC: against a run, and by hand."""

import json

import numpy as np
import pytest

from host.model import MODELS, Model
from rtl.config import preset
from sim.job.options import RunOptions
from sim.job.workload import Workload
from sim.offline.plan import failures, plan
from sim.offline.plan_interaction import InteractionCost
from sim.run.run import Run
from tests.sim.interacting import NIC, good, model_of, write_model


@pytest.mark.thorough
@pytest.mark.few(2)
@pytest.mark.parametrize(("kind", "dimension", "nodes"), [
    ("dot", 16, 2), ("dot", 4, 1), ("cat", 8, 4), ("cat", 128, 2)])
def test_equal_to_a_run_whose_packets_are_full(tmp_path, kind, dimension, nodes):
    """Bytes are exact with long timeouts and one mini-batch at a time."""
    path = write_model(tmp_path / "model.toml", model_of(dimension, "to 3", kind))
    options = RunOptions.of(
        cluster="direct_pair", config="tiny", network="ethernet_100g_switch", model=path,
        nodes=nodes, placement="row", mini_batch=3 * nodes, in_flight=1, threads=1, samples=22,
        settings=(*NIC, "interaction=true", "remote_cache=false", "requester_merge=false",
                  "local_cache=false", "request_batch=16", "lookup_timeout=500",
                  "request_timeout=3000", "vector_timeout=9000", "result_timeout=20000"))
    result = good(Run(options))
    assert result["dedupe"]["retired_early"] == 0
    assert sum(node["host_reporter.credits"] for node in result["counters"]) == 0
    planned = plan(options.workload)
    moved = {name: round(sum(planned["traffic"][name]) * planned["mini_batches"], 6)
             for name in ("full_to_nic", "full_from_nic", "expected_to_nic", "expected_from_nic")}
    down, up = result["pcie"]["to_nic_bytes"], result["pcie"]["from_nic_bytes"]
    assert moved == {"full_to_nic": down, "expected_to_nic": down, "full_from_nic": up,
                     "expected_from_nic": up}
    held = np.rint(np.multiply(planned["traffic"]["samples"], planned["mini_batches"]))
    assert held.tolist() == [node["interaction.samples"] for node in result["counters"]]


def test_results_by_hand():
    kaggle = InteractionCost.of(preset("kaggle"), MODELS["kaggle"])
    # 351 dots are 22 beats behind the dense vector's; 13 units take 27 cycles.
    assert (kaggle.beats, kaggle.cycles, kaggle.results_per_packet) == (23, 27, 2)
    assert kaggle.result_bytes(np.array([2, 1])) == 64 * (2 + 46 + 2 + 23)
    terabyte = InteractionCost.of(preset("terabyte"), MODELS["terabyte"])
    assert (terabyte.beats, terabyte.cycles) == (26, 4 * 27)
    one = preset("kaggle").with_fields(dot_units=1)
    assert InteractionCost.of(one, MODELS["kaggle"]).cycles == 351
    small = Model((5,) * 3, 4, 1, (4,), (1,))
    # 2 tag beats, 31 times 2.
    assert InteractionCost.of(preset("tiny"), small).results_per_packet == 31
    long = Model((5,) * 20, 64, 1, (64,), (1,), interaction="cat")
    parts = InteractionCost.of(preset("kaggle"), long)
    assert (parts.beats, parts.cycles, parts.results_per_packet) == (84, 84, 0)
    assert parts.result_bytes(np.array([1, 1])) == 2 * 64 * (2 + 63 + 2 + 21)


def test_what_it_adds():
    off, on = (plan(Workload.of(cluster="paper", nodes=1, samples=256, settings=settings))
               for settings in ((), ("interaction=true",)))
    assert off["interaction"] is None
    assert on["interaction"] == {"mode": "dot", "itself": False, "width": 367}
    names = [resource["name"] for resource in on["resources"]]
    assert set(names) - {row["name"] for row in off["resources"]} == {"NIC interaction"}
    row = on["resources"][names.index("NIC interaction")]
    assert row["least_us"] == row["expected_us"] == pytest.approx(128 * 27 * 0.004)
    # With 128 samples: a list of 128 requests, and two results per packet instead of 26 vectors
    # each.
    saved = 64 * (128 * 28 - 64 * 48 - (1 + 16))
    assert off["traffic"]["full_from_nic"][0] - on["traffic"]["full_from_nic"][0] == saved
    # 62 vectors fit a packet: of 64 beats, 2 are tags.
    more = 64 * (2 * (1 + 2 + 62) + 1 + 1 + 4)
    assert on["traffic"]["full_to_nic"][0] - off["traffic"]["full_to_nic"][0] == pytest.approx(more)
    assert json.dumps(on)


def test_more_vectors_than_the_nic_takes():
    workload = Workload.of(cluster="paper", config="avazu", model="kaggle", nodes=1, samples=8,
                           settings=("interaction=true",))
    assert failures(plan(workload)) == [
        "vectors of a sample's dots must be at most 22 (NIC), not 27"]
    with pytest.raises(ValueError, match=r"^dot_units must be at least 1 for the"):
        plan(Workload.of(cluster="paper", samples=8,
                           settings=("interaction=true", "dot_units=0")))

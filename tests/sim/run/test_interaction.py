"""Interaction on the NIC matches the numpy model bit for bit, on any cluster, with any model and
any timing of the host."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from allpairspy import AllPairs

import sim.node.dense_vectors
from host.dlrm.dlrm import Dlrm, pooled_reference
from host.dlrm.interaction import ResultLayout
from host.model import MODELS
from host.timing.clock import cycles_of_us
from host.timing.gpu import GpuProfile
from host.toml.profile import load_profile
from host.wire.packets import Header
from rtl.formats import Opcode, Status
from sim.cli.main import main
from sim.node.answers import Answers
from sim.node.dense_vectors import bottom_operations
from sim.node.errors import ProtocolError
from sim.node.step import Step
from tests.rtl.network.frames import Frame, record_payload, vector_payload
from tests.sim.injecting import push, run_with
from tests.sim.interacting import good, job_of, model_of, predictions_sha, write_model
from tests.sim.silences import least_delay

DENSE_VECTORS = 0x12
KINDS = {"dot": ("dot", False), "itself": ("dot", True), "cat": ("cat", False)}

CASES = [{"kind": kind, "dimension": dimension, "bags": bags, "nodes": nodes, "in_flight": flight}
         for dimension, kind, bags, nodes, flight in AllPairs(
             [[4, 8, 16, 64], list(KINDS), ["one-hot", "to 9", "to 40"], [1, 2, 4], [1, 4]])]


@pytest.fixture
def small(tmp_path) -> str:
    """Write a model of five tables and dimension 16, with its dots; return its name."""
    return write_model(tmp_path / "small.toml", model_of(16, "to 9"))


@pytest.mark.few(5)
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_results_are_the_numpy_models(tmp_path, case):
    kind, itself = KINDS[case["kind"]]
    model = model_of(case["dimension"], case["bags"], kind, itself)
    path = write_model(tmp_path / "model.toml", model)
    result = good(job_of(path, "interaction=true", nodes=case["nodes"],
                         in_flight=case["in_flight"]))
    assert result["interaction"] == {
        "mode": kind, "itself": itself, "width": model.interaction_width, "dense_vectors": 96}
    assert result["predictions_sha256"] == predictions_sha(model, 96)
    counted = [node["interaction.samples"] for node in result["counters"]]
    assert sum(counted) == 96 and not any(
        node["result_packager.packets"] for node in result["counters"])


@pytest.mark.few(1, "thorough")
@pytest.mark.parametrize(("dimension", "kind"), [(10, "dot"), (3, "itself"), (100, "dot")])
def test_dots_of_padded_vectors(tmp_path, dimension, kind):
    """Padding changes no bit of a dot product, and is not in the result."""
    model = model_of(dimension, "to 9", *KINDS[kind])
    result = good(job_of(write_model(tmp_path / "model.toml", model), "interaction=true"))
    assert result["interaction"]["width"] == model.interaction_width
    assert result["predictions_sha256"] == predictions_sha(model, 96)
    assert result["notes"] == [model.padding]


class _Seen(Dlrm):
    """Records the inputs of the top MLP."""

    values: list[np.ndarray] = []

    def top(self, values: np.ndarray) -> np.ndarray:
        self.values.append(values)
        return super().top(values)


@pytest.mark.few(2)
@pytest.mark.parametrize(("name", "itself", "width"), [
    ("kaggle", "model", 367), ("terabyte", "false", 415), ("avazu", "model", 247),
    ("kaggle", "true", 367 + 27)])
def test_widths_and_the_order_of_dlrm(monkeypatch, name, itself, width):
    monkeypatch.setattr("sim.run.run.Dlrm", _Seen)
    monkeypatch.setattr(_Seen, "values", [])
    job = job_of(name, "interaction=true", f"interaction_itself={itself}", samples=24,
                 mini_batch=12)
    steps, check = [], job.checks.check
    job.checks.check = lambda step: [steps.append(step), check(step)][1]
    result = good(job)
    given = list(_Seen.values)
    assert result["interaction"]["width"] == width
    assert [values.shape for values in given] == [(12, width)] * 2
    model, plain = MODELS[name], good(job_of(name, samples=24, mini_batch=12))
    assert (plain["predictions_sha256"] == result["predictions_sha256"]) == (itself != "true")
    assert plain["interaction"] is None
    for step, values in zip(steps, given, strict=True):
        vectors = np.concatenate(
            (step.dense[:, None], pooled_reference(step.samples, model, 1)), axis=1)
        last = 1 if itself == "true" else 0
        dots = [np.einsum("nd,nd->n", vectors[:, i], vectors[:, j], dtype=np.float64)
                for i in range(model.tables + 1) for j in range(i + last)]
        np.testing.assert_allclose(values[:, model.dimension:], np.stack(dots, axis=1),
                                   rtol=1e-4, atol=1e-6)
        assert np.array_equal(values[:, :model.dimension], step.dense)


@pytest.mark.parametrize(("kind", "beats"), [("dot", 9), ("cat", 48)])
@pytest.mark.usefixtures("python_hosts")
def test_results_of_several_packets(tmp_path, monkeypatch, kind, beats):
    """A packet of 24 beats takes two results of 9 and their tag beat, or half of one of 48."""
    model = model_of(128, "to 9", kind)
    seen, place = [], Answers._place

    def noted(self: Answers, packet: np.ndarray, head: Header) -> Sequence[Step]:
        seen.append((head.opcode, head.count))
        return place(self, packet, head)

    monkeypatch.setattr(Answers, "_place", noted)
    good(job_of(write_model(tmp_path / "long.toml", model), "interaction=true"))
    assert ResultLayout.of(model).beats == beats
    whole, parts = ([count for opcode, count in seen if opcode == wanted]
                    for wanted in (Opcode.RESULTS, Opcode.RESULT_PART))
    if kind == "cat":
        assert not whole and sorted(parts) == [2] * 96 + [23] * 192
    else:
        assert not parts and sum(whole) == 96 and set(whole) == {1, 2}


@pytest.fixture(scope="module")
def calm(tmp_path_factory) -> dict:
    path = write_model(tmp_path_factory.mktemp("calm") / "small.toml", model_of(16, "to 9"))
    return good(job_of(path, "interaction=true"))


@pytest.mark.few(2)
@pytest.mark.parametrize("fault", ["silent-host=3us:300us", "silent-gpu=3us:300us@1",
                                   "silent-gpu=3us:240us,silent-host=120us:183us@0"])
def test_silences_change_no_bit(small, calm, fault):
    """The node with the longest silence gets no dense vectors from 3 to 303 us."""
    result = good(job_of(small, "interaction=true", faults=fault))
    assert result["predictions_sha256"] == calm["predictions_sha256"]
    # All mini-batches of this run are in flight at once.
    assert all(latency > 303 for latency in result["latencies_us"])
    assert result["cycles"] - calm["cycles"] >= least_delay(calm, 3, 300, 3) > 0
    named = {stall["cause"]: stall for stall in result["stalls"]["by_cause"]}
    assert named["dense"]["counter"] == "dense_answers.stall_answers"
    assert named["dense"]["cycles"] > 0.9 * cycles_of_us(300)


def test_how_it_is_run_changes_no_cycle(small, calm):
    for way in ({"threads": 2}, {"skip": False}):
        result = good(job_of(small, "interaction=true", **way))
        assert result["counters"] == calm["counters"] and result["cycles"] == calm["cycles"]
        assert result["latencies_us"] == calm["latencies_us"]


def test_a_full_ring_of_dense_vectors_holds_samples_back(tmp_path):
    """A bottom MLP takes 0.2 ms per mini-batch: more samples wait than there are places."""
    model = model_of(16, "one-hot")
    slow = replace(load_profile("gpu_rtx8000", GpuProfile), float32_tflops=1e-4)
    result = good(job_of(write_model(tmp_path / "model.toml", model), "interaction=true", nodes=1,
                         mini_batch=64, samples=128, gpu=slow))
    assert result["predictions_sha256"] == predictions_sha(model, 128)
    assert result["counters"][0]["dense_ring.stall_full"] > 10_000
    assert result["cycles"] > 128 * bottom_operations(model) / (1e8 * 4e-9)


def _host_frame(**fields) -> Frame:
    return Frame(framing="host", source=0, destination=0, opcode=DENSE_VECTORS, **fields)


def test_bad_dense_vectors_are_counted_and_dropped(small, calm):
    payload = vector_payload([(place, b"\x77" * 64) for place in (31, 33, 65535, 200)])
    unwanted = _host_frame(count=4, payload=payload)
    longer = _host_frame(count=5, payload=payload)
    shorter = _host_frame(count=9, payload=record_payload([0] * 8))

    def inject(frame: Frame, cut: int = 0):
        return lambda job, cycle: push(job.cluster.nodes[0], "host_rx", frame, cycle, cut)

    job = job_of(small, "interaction=true")
    result = run_with(job, [inject(unwanted), inject(longer), inject(shorter),
                            inject(unwanted, 1), inject(unwanted)])
    assert result["results"] == calm["results"]
    assert result["predictions_sha256"] == calm["predictions_sha256"]
    assert result["counters"][0]["dense_ring.bad_landings"] == 8
    assert job.cluster.nodes[0].errors == [(0xFFFFFFFF, Status.LENGTH)] * 3


@pytest.mark.usefixtures("python_hosts")
def test_a_dense_vector_that_never_comes(small, monkeypatch):
    original, lost = sim.node.dense_vectors.gpu_vectors, []

    def without_one(landings, vectors, *, node, **rest):
        if node == 1 and not lost:
            lost.append(landings[0])
            landings, vectors = landings[1:], vectors[1:]
        return original(landings, vectors, node=node, **rest)

    monkeypatch.setattr(sim.node.dense_vectors, "gpu_vectors", without_one)
    result = job_of(small, "interaction=true", patience=20_000).execute()
    assert lost and not result["bit_identical"]
    cause = result["where_stuck"]["causes"][0]
    assert (cause["part"], cause["node"]) == ("host", 1)
    assert "the host of node 1 owes 1 dense vectors" in cause["means"]
    assert "host_parser.dense brought none since cycle" in cause["means"]
    assert [node["owed"]["host"] for node in result["where_stuck"]["nodes"]] == [0, 1]


@pytest.mark.usefixtures("python_hosts")
def test_a_wrong_bit_is_found(small, monkeypatch):
    """A host sends the NIC another dense vector than its top MLP gets."""
    original = sim.node.dense_vectors.gpu_vectors

    def wrong(landings, vectors, **rest):
        changed = vectors.copy()
        changed.view(np.uint32)[0, 5] ^= 1
        return original(landings, changed, **rest)

    monkeypatch.setattr(sim.node.dense_vectors, "gpu_vectors", wrong)
    result = job_of(small, "interaction=true").execute()
    assert not result["bit_identical"] and result["results"]["different"] > 0


def test_answers_of_the_other_kind_are_no_protocol(small):
    job = job_of(small, "interaction=true")
    for registers in job.registers:
        registers.write("interaction_mode", 0)
        registers.finish()
    with pytest.raises(ProtocolError, match=r"node \d sent opcode 0x21 to its host"):
        job.execute()


@pytest.mark.parametrize(("arguments", "said"), [
    (("--config", "avazu", "--model", "kaggle"),
     "interaction_vectors must be at least 27, the dense vector and one of each of 26 tables, "
     "not 22"),
    (("--set", "dot_units=0"), "dot_units must be at least 1 for the interaction dot, not 0"),
    (("--set", "interaction_itself=maybe"),
     "interaction_itself must be true, false or model, not 'maybe'"),
])
def test_mistakes_are_one_line(capsys, arguments, said):
    with pytest.raises(SystemExit) as end:
        main(["run", "--samples", "8", "--set", "interaction=true", *arguments])
    shown = capsys.readouterr()
    assert end.value.code == 2 and shown.out == ""
    assert shown.err == f"sim: {said}\n"

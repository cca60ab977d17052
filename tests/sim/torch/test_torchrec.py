"""TorchRec models, sharded or not, look up on the NICs with unchanged results."""

import json

import pytest

from tests.optional import absent

pytest.importorskip("torch", reason=absent("torch"))
pytest.importorskip("torchrec", reason=absent("torchrec"))
import torch
from torchrec import (
    EmbeddingBagCollection,
    EmbeddingBagConfig,
    EmbeddingCollection,
    EmbeddingConfig,
    KeyedJaggedTensor,
    PoolingType,
)
from torchrec.modules.embedding_configs import DataType

from sim import api
from sim.torch.catching.process_group import begin
from sim.torch.modules import NicEmbeddingBagCollection
from tests.pages import DOCS
from tests.sim.torch import torchrec_dlrm
from tests.sim.torch.programs import attached_to, with_threads
from tests.sim.torch.test_processes import torchrun

TABLES = len(torchrec_dlrm.ROWS)


one_thread = with_threads(1)  # more threads are slower on busy processors


def tables(**options) -> list[EmbeddingBagConfig]:
    torch.manual_seed(3)
    return [EmbeddingBagConfig(name="one", embedding_dim=16, num_embeddings=50,
                               feature_names=["a", "b"], pooling=PoolingType.SUM),
            EmbeddingBagConfig(**{"name": "two", "embedding_dim": 8, "num_embeddings": 9,
                                  "feature_names": ["b"], "pooling": PoolingType.MEAN} | options)]


def features(weights: torch.Tensor | None = None) -> KeyedJaggedTensor:
    """Return four samples of the features ``a`` and ``b``, with bags of zero to three keys."""
    return KeyedJaggedTensor(["a", "b"], torch.tensor([7, 49, 8, 8, 1, 5, 2, 8, 0]), weights,
                             lengths=torch.tensor([1, 0, 3, 1, 1, 2, 0, 1]))


@pytest.mark.parametrize("fidelity", ["model", "rtl"])
def test_a_collection_that_is_not_sharded_looks_up_bags(fidelity):
    made, out = EmbeddingBagCollection(tables()), []
    session, missed = attached_to(lambda: out.append(made(features()).values() + 0),
                                  fidelity=fidelity)
    assert torch.equal(out[0], made(features()).values()) and not missed
    [step] = session.record.steps
    assert (step["bags"], step["lookups"]) == (3 * 4, 5 + 2 * 4)
    assert [table.values.shape for table in session.tables.all] == [(50, 16), (9, 8)]
    assert session.verdicts["different"] == 0


def test_a_collection_that_only_nics_look_up():
    made, plain = (kind(tables()) for kind in (NicEmbeddingBagCollection, EmbeddingBagCollection))
    plain.load_state_dict(made.state_dict())
    with pytest.raises(RuntimeError, match=r"^a NicEmbeddingBagCollection must be called inside s"):
        made(features())
    with api.attach(nodes=2) as program:
        out = made(features())
        out.values().sum().backward()
    assert out.keys() == plain(features()).keys() == ["a", "b@one", "b@two"]
    assert torch.equal(out.values(), plain(features()).values())
    assert program.result["gradients"]["bags"] == 3 * 4 and program.result["not_caught"] == []


def test_a_weighted_collection():
    weights = torch.rand(9)
    made = NicEmbeddingBagCollection(tables(pooling=PoolingType.SUM), is_weighted=True)
    with api.attach(nodes=2) as program:
        out = made(features(weights)).values()
    plain = EmbeddingBagCollection(tables(pooling=PoolingType.SUM), is_weighted=True)
    plain.load_state_dict(made.state_dict())
    torch.testing.assert_close(out, plain(features(weights)).values())
    assert program.result["values"]["weighted_calls"] == 3


@pytest.mark.parametrize(("table", "options", "said"), [
    ({"data_type": DataType.FP16}, {}, "data_type of table 'two' must be DataType.FP32, not "),
    ({"embedding_dim": 300}, {}, "embedding_dim of table 'two' must be at most 256, not 300"),
    ({}, {"device": torch.device("meta")}, "device must be cpu, not 'meta'")])
def test_collections_that_no_nic_serves(table, options, said):
    with pytest.raises(ValueError, match=f"^{said}"):
        NicEmbeddingBagCollection(tables(**table), **options)


def test_vectors_of_single_keys_are_not_caught():
    made = EmbeddingCollection([EmbeddingConfig(
        name="one", embedding_dim=16, num_embeddings=50, feature_names=["a"])])
    _, missed = attached_to(lambda: made(features()))
    assert [what for _, what in missed] == [
        "aten::embedding is not caught: no NIC serves this operator"]


@pytest.mark.parametrize(("sharding", "steps", "fidelity", "keys"), [
    ("table_wise", 100, "model", 1), ("table_wise", 10, "rtl", 1), ("row_wise", 10, "rtl", 1),
    ("data_parallel", 10, "rtl", 1), ("table_wise", 100, "model", 5)])
def test_a_sharded_model_in_one_process(sharding, steps, fidelity, keys):
    begin()
    losses, looks = [], steps // 10
    session, missed = attached_to(lambda: losses.extend(
        torchrec_dlrm.main("embernic", sharding, steps, keys)), fidelity=fidelity)
    assert losses == torchrec_dlrm.main("gloo", sharding, steps, keys)
    assert not missed and len(session.tables.all) == TABLES
    lookups = torchrec_dlrm.SAMPLES * TABLES * keys
    assert [(step["workload"], step["lookups"]) for step in session.record.steps] == [
        ("training", lookups)] * steps + [("inference", lookups)] * looks
    assert session.gradients == steps * lookups // keys
    assert session.updates == ({} if sharding == "data_parallel" else {"sgd": steps})
    assert session.verdicts["different"] == 0
    if fidelity == "rtl":
        assert session.verdicts["equal"] == torchrec_dlrm.SAMPLES * (steps + looks)


@pytest.mark.parametrize("optimizer", ["SGD", "RowWiseAdagrad"])
def test_a_sharded_model_that_the_nics_train(optimizer):
    begin()
    arguments, losses = ("table_wise", 10, 5, optimizer), []
    session, _ = attached_to(lambda: losses.extend(torchrec_dlrm.main("embernic", *arguments)),
                             optimizer_on="nic")
    assert losses == pytest.approx(torchrec_dlrm.main("gloo", *arguments), rel=1e-6)
    found = session.written
    assert found.optimizers == {"sgd" if optimizer == "SGD" else "rowwise-adagrad"}
    assert found.steps == 10 * TABLES and found.most < 1e-6 and not session.updates
    assert found.states == found.rows * (optimizer != "SGD") and found.ulp <= 4


def test_the_example_of_the_docs(monkeypatch):
    script = DOCS / "example_torchrec.py"
    text = script.read_text(encoding="utf-8")
    for name, value in (("RANK", 0), ("WORLD_SIZE", 1), ("MASTER_ADDR", "localhost"),
                        ("MASTER_PORT", 0)):
        monkeypatch.setenv(name, str(value))
    result = api.torch(script, nodes=2)
    assert result["mini_batches"]["training"]["lookups"] == 8 * 3 * 64
    assert result["gradients"]["fused"] == {"sgd": 8} and result["not_caught"] == []
    assert result["values"]["against_pytorch"]["one_key"]["equal"] == 8 * 3 * 64
    assert not any("MLP" in note for note in result["notes"])
    assert {table["place"] for table in result["tables"]} == {
        f"{script}:{text[:text.index('(model(')].count(chr(10)) + 1}"}


def of_two_processes(*arguments: str) -> tuple[list[str], str]:
    """Run a program with two processes; return its lines with losses, sorted, and the other output.
    """
    done = torchrun(*arguments)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines(keepends=True)
    return (sorted(line for line in lines if line.startswith("loss")),
            "".join(line for line in lines if not line.startswith("loss")))


@pytest.mark.thorough
def test_two_processes_whose_rows_the_nics_write(tmp_path):
    arguments = "table_wise", "10", "1", "RowWiseAdagrad"
    alone, _ = of_two_processes(torchrec_dlrm.__file__, "gloo", *arguments)
    ours, shown = of_two_processes(
        "-m", "sim", "torch", "--optimizer-on", "nic", "--json", str(tmp_path / "out.json"),
        torchrec_dlrm.__file__, "embernic", *arguments)
    assert [float(line.split()[-1]) for line in ours] == pytest.approx(
        [float(line.split()[-1]) for line in alone], rel=1e-6)
    assert "row-wise Adagrad" in shown
    found = json.loads((tmp_path / "out.json").read_text())["gradients"]
    assert found["fused"] == {} and found["nic"]["optimizer"] == "rowwise-adagrad"
    assert found["nic"]["steps"] == 10 * TABLES and found["nic"]["states"] == found["nic"]["rows"]
    assert found["nic"]["most_difference"] < 1e-6


@pytest.mark.thorough
@pytest.mark.parametrize(("sharding", "keys", "fidelity", "nodes"), [
    ("table_wise", 1, "model", [(100, 0), (2000, 0), (60, 1), (7, 1)]),
    pytest.param("row_wise", 5, "rtl", [
        (50, 0), (30, 0), (1000, 0), (4, 0), (50, 1), (30, 1), (1000, 1), (3, 1)],
        marks=pytest.mark.slow)])
def test_a_sharded_model_in_two_processes(tmp_path, sharding, keys, fidelity, nodes):
    steps, script = 100, torchrec_dlrm.__file__
    alone, _ = of_two_processes(script, "gloo", sharding, str(steps), str(keys))
    ours, shown = of_two_processes(
        "-m", "sim", "torch", "--fidelity", fidelity, "--json", str(tmp_path / "out.json"),
        script, "embernic", sharding, str(steps), str(keys))
    assert ours == alone and len(ours) == 2 * (steps + steps // 10)
    assert shown.count("Embedding bags of") == 1
    result = json.loads((tmp_path / "out.json").read_text())
    # According to the plan: whole tables in turn, or a part of each table.
    assert [(table["rows"], table["node"]) for table in result["tables"]] == nodes
    samples = 2 * torchrec_dlrm.SAMPLES
    for kind, count in (("training", steps), ("inference", steps // 10)):
        sums = result["mini_batches"][kind]
        assert (sums["count"], sums["samples"], sums["lookups"]) == (
            count, count * samples, count * samples * TABLES * keys)
    assert result["gradients"]["fused"] == {"sgd": 2 * steps} and result["not_caught"] == []
    if fidelity == "rtl":
        assert result["values"]["bit_identical"]

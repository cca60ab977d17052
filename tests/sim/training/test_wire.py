"""Training with other formats than float32 between nodes: the rows of the reference, on any number
of nodes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from host.data.generator import generate
from host.dlrm.embedding import EmbeddingTables
from host.dlrm.formats import FLOAT32, VectorFormat
from host.dlrm.optimizer import Optimizer
from host.model import Model
from sim.training.options import TrainOptions
from sim.training.train import Training, train
from tests.sim.interacting import write_model
from tests.sim.training.compiled_nics import NIC

MODEL = Model((50, 40, 30), 16, 2, (8, 16), (4, 1), "wire", ((0, 3), (1, 4), (2, 2)))
GIVEN = {"config": "tiny", "samples": 48, "mini_batch": 16, "threads": 1, "pool": "owner",
         "optimizer": "rowwise-adagrad"}
SETTINGS = (*NIC, "deliver=unique")


def options(folder: Path, **changes) -> TrainOptions:
    given = GIVEN | {"settings": SETTINGS, "wire": "float16",
                     "model": write_model(folder / "wire.toml", MODEL)} | changes
    return TrainOptions.of(**{name: value for name, value in given.items() if value is not None})


@pytest.mark.thorough
@pytest.mark.parametrize("nodes", [1, 2, 3])
@pytest.mark.parametrize(("forward", "backward", "dimension"), [
    ("float16", None, 16), ("bfloat16", "float16", 32), ("bfloat16", None, 5),
    ("int8", None, 64), ("float32", "bfloat16", 16), ("float16", "int8_row", 64),
    ("int8_row", "float32", 32)])
def test_rows_are_those_of_the_reference_on_any_number_of_nodes(tmp_path, nodes, forward, backward,
                                                                dimension):
    model = write_model(tmp_path / "wide.toml", replace(
        MODEL, dimension=dimension, bottom=(8, dimension)))
    given = {"wire": forward, "gradient_wire": backward, "model": model, "optimizer": "sgd"}
    result = train(options(tmp_path, nodes=nodes, **given))
    alone = train(options(tmp_path, nodes=nodes, reference=True, **given))
    assert result["bit_identical"] and not result["errors"]
    assert result["weights_sha256"] == alone["weights_sha256"]
    assert result["loss"] == alone["loss"]
    assert result["gradient_wire"] == (backward or "bfloat16")


def test_the_number_of_nodes_changes_no_weight_but_the_format_does(tmp_path):
    found = {wire: {
        train(options(tmp_path, nodes=nodes, wire=wire, reference=True))["weights_sha256"]
        for nodes in (1, 3)} for wire in ("float32", "float16", "bfloat16", "int8")}
    assert all(len(each) == 1 for each in found.values())
    assert len(set.union(*found.values())) == 4


@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_gradients_are_rounded_before_they_are_divided_and_added(pooling):
    """Against loops over bags and keys."""
    model = Model(MODEL.rows, 16, 2, (8, 16), (4, 1), bags=MODEL.bags, pooling=pooling)
    rate, wire = np.float32(0.5), VectorFormat.of(model, "bfloat16")
    samples = next(generate(model, 6, 3))
    rng = np.random.default_rng(1)
    gradients = rng.standard_normal((6, 3, 16)).astype(np.float32)
    tables = EmbeddingTables(model, 3, Optimizer("sgd", float(rate)), in_order=(0, 1, 2),
                             gradient_wire=wire)
    before = {key: tables.rows.read(np.array([key]))[0][0] for key in samples.keys.tolist()}
    sums: dict[int, np.ndarray] = {}
    at = 0
    for number, lengths in enumerate(samples.bag_lengths.tolist()):
        for table, length in enumerate(lengths):
            # The lower half of a float32 is rounded off, a tie to even.
            bits = gradients[number, table].view(np.uint32).astype(np.int64)
            low, high = bits & 0xFFFF, bits >> 16
            high += (low > 0x8000) | ((low == 0x8000) & (high % 2 == 1))
            short = (high << 16).astype(np.uint32).view(np.float32)
            if pooling == "mean" and length:
                short = short / np.float32(length)
            for key in samples.keys[at:at + length].tolist():
                sums[key] = sums[key] + short if key in sums else short
            at += length
    tables.update(samples, gradients)
    for key, value in sums.items():
        expected = before[key] - rate * value
        assert (tables.rows.read(np.array([key]))[0][0] == expected).all()


def test_vectors_of_the_reference_are_rounded():
    samples = next(generate(MODEL, 20, 3))
    wire = VectorFormat.of(MODEL, "float16")
    plain = EmbeddingTables(MODEL, 3).pooled(samples)
    short = EmbeddingTables(MODEL, 3, wire=wire).pooled(samples)
    assert (short == plain.astype(np.float16).astype(np.float32)).all()
    assert (EmbeddingTables(MODEL, 3, wire=FLOAT32).pooled(samples) == plain).all()


def test_a_gradient_is_no_longer_than_the_longest_vector(tmp_path):
    """64 codes have 32 lanes, as many as the NIC."""
    model = write_model(tmp_path / "long.toml", replace(MODEL, dimension=64, bottom=(8, 64)))
    with pytest.raises(ValueError, match="dimension must be at most 32 for gradients in float32 "
                                         "and config tiny, not 64"):
        train(options(tmp_path, nodes=2, wire="int8", gradient_wire="float32", model=model))


@pytest.mark.parametrize(("changes", "message"), [
    ({"pool": "requester"},
     "pool must be owner for all tables with wire float16 in training: table 0 pools at the "
     "requester, whose NIC adds float32 only"),
    ({"update": "nic"}, "update must be gpu with wire float16, not 'nic': NICs add float32 only"),
    ({"settings": NIC}, "deliver must be unique with wire float16, not 'pooled'")])
def test_formats_that_nics_cannot_add_or_carry(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        Training(options(tmp_path, nodes=2, **changes))

"""Training of column slices and row blocks: the rows of the reference, on any number of nodes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from host.data.generator import generate
from host.dlrm.backward import interaction_backward
from host.dlrm.embedding import EmbeddingTables
from host.dlrm.interaction import interaction
from host.dlrm.optimizer import Optimizer
from host.dlrm.row_store import RowStore
from host.model import Model, sliced, with_blocks, with_columns
from host.samples import KEY_ROW_BITS
from sim.training.options import TrainOptions
from sim.training.train import Training, train
from tests.sim.interacting import write_model
from tests.sim.training.compiled_nics import NIC

MODEL = Model((50, 40), 32, 2, (8, 32), (4, 1), "slices", ((0, 3), (2, 9)))
GIVEN = {"config": "tiny", "samples": 48, "mini_batch": 16, "threads": 1, "pool": "owner",
         "optimizer": "sgd", "nodes": 2}
WIDE = replace(MODEL, dimension=64, bottom=(8, 64))
EVEN = "0:16,1:16"
"""Slices of one width: vectors without padding, for the state of row-wise Adagrad."""


def options(folder: Path, model: Model = MODEL, deliver: str = "unique", **changes) -> TrainOptions:
    given = GIVEN | {"settings": (*NIC, f"deliver={deliver}"),
                     "model": write_model(folder / "slices.toml", model)} | changes
    return TrainOptions.of(**given)


def _same(folder: Path, **changes) -> dict:
    """Return the result of a training whose rows are those of the reference."""
    result = train(options(folder, **changes))
    alone = train(options(folder, reference=True, **changes))
    assert result["bit_identical"] and not result["errors"]
    assert result["weights_sha256"] == alone["weights_sha256"]
    assert result["loss"] == alone["loss"]
    return result


@pytest.mark.thorough
@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("changes", [
    {"columns": "1:16"}, {"columns": EVEN, "optimizer": "rowwise-adagrad"},
    {"columns": "0:32,1:32", "optimizer": "rowwise-adagrad", "wire": "float16", "model": WIDE},
    {"columns": "1:16", "deliver": "pooled"}, {"blocks": "1:3"},
    {"blocks": "0:2,1:2", "optimizer": "rowwise-adagrad", "wire": "int8"},
    {"blocks": "0:2", "model": replace(MODEL, pooling="mean")}, {"columns": EVEN, "update": "nic"},
    {"blocks": "1:3", "update": "nic", "repeats": "neighbours"}], ids=lambda changes: ", ".join(
        f"{name} {getattr(value, 'dimension', value)}" for name, value in changes.items()))
def test_rows_are_those_of_the_reference(tmp_path, nodes, changes):
    assert _same(tmp_path, nodes=nodes, **changes)["complete"]


def test_slices_train_as_their_table_does(tmp_path):
    """By SGD: each column of a row has the same gradient."""
    found = {columns: train(options(tmp_path, reference=True, columns=columns))
             for columns in (None, "1:16", EVEN)}
    assert len({tuple(result["loss"]) for result in found.values()}) == 1
    assert len({result["predictions_sha256"] for result in found.values()}) == 1


def test_blocks_train_as_their_table_does(tmp_path):
    """Except for the order of additions."""
    found = [train(options(tmp_path, reference=True, blocks=blocks)) for blocks in (None, "1:3")]
    assert found[1]["loss"] == pytest.approx(found[0]["loss"], rel=1e-5)


@pytest.mark.parametrize("model", [with_columns(MODEL, {1: 16}, 16), with_blocks(MODEL, {0: 3})])
@pytest.mark.parametrize("kind", ["cat", "dot"])
def test_a_slice_has_its_part_of_the_gradient(model, kind):
    """Against a gradient of the whole tables."""
    model, whole = (replace(each, interaction=kind) for each in (model, MODEL))
    rng = np.random.default_rng(1)
    dense, pooled = (rng.standard_normal(shape).astype(np.float32) for shape in (
        (5, 32), (5, model.tables, model.width)))
    for number, dimension in enumerate(model.table_dimensions):
        pooled[:, number, dimension:] = 0
    results = interaction(model, dense, pooled)
    gradient = rng.standard_normal(results.shape).astype(np.float32)
    together = np.zeros((5, 2, 32), np.float32)
    for number, (table, column) in enumerate(model.slices):
        width = model.table_dimensions[number]
        together[:, table, column:column + width] += pooled[:, number, :width]
    assert (interaction(whole, dense, together) == results).all()
    own, bags = interaction_backward(model, dense, pooled, gradient)
    same, expected = interaction_backward(whole, dense, together, gradient)
    assert (own == same).all()
    for number, (table, column) in enumerate(model.slices):
        width = model.table_dimensions[number]
        assert (bags[:, number, :width] == expected[:, table, column:column + width]).all()
        assert not bags[:, number, width:].any()


def test_rowwise_adagrad_has_a_state_for_each_row_of_a_slice():
    model = with_columns(MODEL, {0: 16, 1: 16}, 16)
    samples = sliced(next(generate(MODEL, 6, 3)), model)
    gradients = np.random.default_rng(1).standard_normal((6, 4, 16)).astype(np.float32)
    tables = EmbeddingTables(model, 3, Optimizer("rowwise-adagrad"), in_order=range(4))
    tables.update(samples, gradients)
    keys, _, states = tables.rows.written()
    # Tables 0 and 1 are the slices of the first table.
    rows = {table: dict(zip((keys[keys >> KEY_ROW_BITS == table] & 0xFF).tolist(),
                            states[keys >> KEY_ROW_BITS == table].tolist())) for table in (0, 1)}
    assert rows[0].keys() == rows[1].keys() and rows[0]
    assert all(rows[0][row] != rows[1][row] for row in rows[0])


def test_a_checkpoint_belongs_to_its_slices(tmp_path):
    given = {"reference": True, "checkpoint": str(tmp_path / "c.npz")}
    train(options(tmp_path, columns="1:16", **given))
    with pytest.raises(ValueError, match=r"model.rows is \[50, 40, 40\], not \[50, 20, 20\] as in"):
        train(options(tmp_path, blocks="1:2", **given))


@pytest.mark.parametrize(("changes", "message"), [
    ({"pool": "requester", "columns": "1:16"},
     "table 1 has column slices, so it must pool at its owner, not at the requester"),
    ({"pool": "requester", "blocks": "1:2", "reference": True},
     "table 1 has row blocks, so it must pool at its owner, not at the requester"),
    ({"columns": "1:16", "optimizer": "rowwise-adagrad"},
     "optimizer must be sgd for padded vectors"),
    ({"columns": "1:16", "blocks": "1:2"}, "blocks must be left out with columns")])
def test_slices_that_cannot_be_trained(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        Training(options(tmp_path, **changes))


def test_initial_rows_are_columns_of_the_table():
    model = with_columns(MODEL, {1: 16}, 16)
    keys = np.arange(3)
    whole, _ = RowStore(MODEL, 3).read(1 << KEY_ROW_BITS | keys)
    for table, columns in ((1, slice(16)), (2, slice(16, 32))):
        part, _ = RowStore(model, 3).read(table << KEY_ROW_BITS | keys)
        assert (part[:, :16] == whole[:, columns]).all()

"""Tables of different dimensions and poolings: forward, training and checkpoints, bit for bit."""

from dataclasses import replace

import numpy as np
import pytest

from host.dlrm.checkpoint import load_checkpoint, save_checkpoint
from host.dlrm.dense_trainer import DenseTrainer
from host.dlrm.dlrm import Dlrm
from host.dlrm.optimizer import Optimizer
from host.dlrm.row_store import RowStore
from host.dlrm.rows import row_values
from host.dlrm.trainer import reference_trainer, weights_sha256
from tests.host.dlrm.mixed import Plain, batches, mixed_model

RATE = 0.1


def test_a_row_is_a_prefix_of_a_wider_row():
    model = mixed_model(2)
    wide = replace(model, dimensions=(model.width,) * model.tables)
    tables, rows = np.arange(model.tables), np.array(model.rows) - 1
    found, whole = (row_values(of, 5, tables, rows) for of in (model, wide))
    for table, dimension in enumerate(model.table_dimensions):
        assert (found[table, :dimension] == whole[table, :dimension]).all()
        assert found[table, :dimension].all() and not found[table, dimension:].any()


@pytest.mark.parametrize("seed", range(6))
def test_predictions_are_those_of_tables_without_padding(seed):
    model = mixed_model(seed)
    (samples,) = batches(model, 1, 40)
    assert Dlrm(model, 1).forward(samples).tobytes() == Plain(model).predictions(samples).tobytes()


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_training_is_that_of_tables_without_padding(seed, nodes):
    model = mixed_model(seed)
    plain, trainer = Plain(model), reference_trainer(model, 1, Optimizer("sgd", RATE), nodes)
    parts = batches(model, 4, 20)
    assert [trainer.step(part).loss for part in parts] == [
        plain.train(part, RATE) for part in parts]
    keys, vectors, _ = trainer.embeddings.rows.written()
    names = list(zip((keys >> 36).tolist(), (keys & (1 << 36) - 1).tolist()))
    assert set(names) == plain.written
    for (table, row), vector in zip(names, vectors):
        dimension = model.table_dimensions[table]
        assert vector[:dimension].tobytes() == plain.rows[table, row].tobytes()
        assert not vector[dimension:].view(np.uint32).any()
    for mine, its in ((trainer.dense.dlrm, plain.dlrm),):
        for one, other in zip((*mine.bottom_layers, *mine.top_layers),
                              (*its.bottom_layers, *its.top_layers)):
            assert one.weights.tobytes() == other.weights.tobytes()
            assert one.biases.tobytes() == other.biases.tobytes()


def test_the_hash_of_rows_is_that_of_their_own_values():
    model = mixed_model(1)
    stores = [RowStore(of, 1) for of in (
        model, replace(model, dimensions=(64,) * model.tables))]
    keys = np.array([0, 1 << 36])
    for store in stores:
        vectors, states = store.read(keys)
        vectors[0, model.table_dimensions[0]:] = vectors[1, model.table_dimensions[1]:] = 0
        store.write(keys, vectors[:, :store.model.width], states)
    assert len({store.digest() for store in stores}) == 2
    same = RowStore(replace(model, poolings=()), 1)
    same.write(*stores[0].written())
    assert same.digest() == stores[0].digest()


def test_a_checkpoint_resumes(tmp_path):
    model, rule = mixed_model(3), Optimizer("sgd", RATE)
    parts = batches(model, 4, 20)
    whole = reference_trainer(model, 1, rule)
    for part in parts:
        whole.step(part)
    first = reference_trainer(model, 1, rule)
    for part in parts[:2]:
        first.step(part)
    with open(tmp_path / "some.npz", "w+b") as file:
        save_checkpoint(file, 2, first.dense, first.embeddings.rows, rule)
    then = reference_trainer(model, 1, rule)
    load_checkpoint(tmp_path / "some.npz", then.dense, then.embeddings.rows, rule)
    for part in parts[2:]:
        then.step(part)
    assert weights_sha256(then.dense, then.embeddings.rows) == weights_sha256(
        whole.dense, whole.embeddings.rows)
    other = replace(model, dimensions=())
    with pytest.raises(ValueError, match=r"model\.dimensions is"):
        load_checkpoint(tmp_path / "some.npz", DenseTrainer(other, 1), RowStore(other, 1), rule)

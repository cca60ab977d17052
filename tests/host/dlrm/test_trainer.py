import hashlib
import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from host.data.generator import generate
from host.dlrm.checkpoint import load_checkpoint, save_checkpoint
from host.dlrm.dense_trainer import DenseTrainer
from host.dlrm.embedding import EmbeddingTables
from host.dlrm.interaction import interaction
from host.dlrm.mlp import linear_fixed
from host.dlrm.optimizer import Optimizer
from host.dlrm.trainer import Trainer, reference_trainer, weights_sha256
from host.errors import InputError
from host.model import Model
from host.samples import rechunk
from host.sealed import write_sealed

MODEL = Model((50, 3, 4000, 70), 16, 3, (24, 16), (9, 1), bags=((1, 3), (1, 1), (0, 5), (2, 2)))
ADAGRAD = Optimizer("rowwise-adagrad", 0.05)


def batches(count, size=37, model=MODEL):
    return list(rechunk(generate(model, count * size, 6), size))


def trained(trainer, parts):
    losses = [trainer.step(part).loss for part in parts]
    return losses, weights_sha256(trainer.dense, trainer.embeddings.rows)


@pytest.mark.parametrize("model", [
    MODEL, replace(MODEL, pooling="mean"), replace(MODEL, interaction="cat"),
    replace(MODEL, interaction_itself=True)], ids=["sum", "mean", "cat", "itself"])
def test_exact_sums_give_every_cluster_the_same_weights(model):
    parts = [*batches(8), batches(1)[0].slice(0, 5)]  # the last batch is short
    whole = trained(reference_trainer(model, 3, ADAGRAD), parts)
    for nodes in (2, 4, 8):
        assert trained(reference_trainer(model, 3, ADAGRAD, nodes), parts) == whole


def test_rounded_partial_sums_are_near_and_stand_for_their_nodes():
    parts = batches(8)
    exact, of_exact = trained(reference_trainer(MODEL, 3), parts)
    shas = set()
    for nodes in (1, 2, 4, 8):
        losses, sha = trained(reference_trainer(MODEL, 3, None, nodes, "rounded"), parts)
        assert losses == pytest.approx(exact, rel=1e-5)
        assert (sha == of_exact) == (nodes == 1)
        assert trained(reference_trainer(MODEL, 3, None, nodes, "rounded"), parts)[1] == sha
        shas.add(sha)
    assert len(shas) == 4


def test_everything_that_should_matter_does():
    parts = batches(3)
    runs = [(3, None, parts), (4, None, parts), (3, ADAGRAD, parts), (3, None, parts[:2]),
            (3, Optimizer("sgd", 0.2), parts), (3, None, parts[::-1])]
    shas = [trained(reference_trainer(MODEL, seed, optimizer), some)[1]
            for seed, optimizer, some in runs]
    assert len(set(shas)) == len(shas)


def test_embeddings_may_be_anyones():
    """The owner of the rows sees each step once, between begin and the update of the next step."""
    seen = []

    class Watched(EmbeddingTables):
        def pooled(self, samples):
            seen.append(("pooled", len(samples)))
            return super().pooled(samples)

        def update(self, samples, gradients):
            seen.append(("update", gradients.shape))
            super().update(samples, gradients)

    tables = Watched(MODEL, 3)
    trainer = Trainer(DenseTrainer(MODEL, 3), tables)
    parts = batches(2)
    assert trained(trainer, parts) == trained(reference_trainer(MODEL, 3), parts)
    assert seen == [("pooled", 37), ("update", (37, 4, 16))] * 2 and trainer.steps == 2
    with pytest.raises(RuntimeError, match="begin must be called"):
        trainer.dense.finish(tables.pooled(parts[0]))


def test_a_step_predicts_before_it_learns():
    trainer = reference_trainer(MODEL, 3)
    part, *_ = batches(1)
    dlrm = trainer.dense.dlrm
    dense, pooled = trainer.dense.begin(part), trainer.embeddings.pooled(part)
    assert np.array_equal(dense, dlrm.bottom(part.dense))
    expected = dlrm.top(interaction(MODEL, dense, pooled))
    done = trainer.dense.finish(pooled)
    assert np.array_equal(done.predictions, expected)
    assert not np.array_equal(dlrm.predict(part.dense, pooled), expected)


def test_the_hash_is_of_rows_then_of_bottom_and_top():
    trainer = reference_trainer(MODEL, 3)
    trained(trainer, batches(2))
    dense = hashlib.sha256(b"".join(
        values.tobytes() for layer in (*trainer.dense.dlrm.bottom_layers,
                                       *trainer.dense.dlrm.top_layers)
        for values in (layer.weights, layer.biases))).digest()
    rows = trainer.embeddings.rows
    assert weights_sha256(trainer.dense, rows) == hashlib.sha256(rows.digest() + dense).hexdigest()


@pytest.mark.parametrize("optimizer", [Optimizer(), ADAGRAD], ids=["sgd", "adagrad"])
def test_a_checkpoint_goes_on_as_if_nothing_had_been(tmp_path, optimizer):
    parts = batches(6)
    whole = trained(reference_trainer(MODEL, 3, optimizer), parts)
    first = reference_trainer(MODEL, 3, optimizer)
    losses, _ = trained(first, parts[:3])
    paths = [tmp_path / name for name in ("a.npz", "b")]
    for path in paths:
        with path.open("w+b") as file:
            save_checkpoint(file, first.steps, first.dense, first.embeddings.rows, optimizer,
                            samples="those")
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npz", "b"]
    again = reference_trainer(MODEL, 3, optimizer)
    assert load_checkpoint(paths[1], again.dense, again.embeddings.rows, optimizer) == (3, "those")
    more, sha = trained(again, parts[3:])
    assert (losses + more, sha) == whole
    with pytest.raises(ValueError, match="rows must be empty"):
        load_checkpoint(paths[1], again.dense, again.embeddings.rows, optimizer)


def test_rows_go_to_a_checkpoint_and_back_by_parts(tmp_path, monkeypatch):
    """The bytes equal NumPy's archives, regardless of the number of rows in memory at once."""
    trainer = reference_trainer(MODEL, 3)
    trained(trainer, batches(2))
    rows, files = trainer.embeddings.rows, []
    for count in (7, 1 << 16):
        monkeypatch.setattr("host.dlrm.checkpoint._ROWS", count)
        files.append(tmp_path / f"{count}.npz")
        with files[-1].open("w+b") as file:
            save_checkpoint(file, 2, trainer.dense, rows, Optimizer())
        again = reference_trainer(MODEL, 3)
        load_checkpoint(files[-1], again.dense, again.embeddings.rows, Optimizer())
        assert again.embeddings.rows.digest() == rows.digest()
    assert files[0].read_bytes() == files[1].read_bytes()
    with np.load(files[0]) as file, (tmp_path / "numpy.npz").open("w+b") as other:
        np.savez(other, **file)
        other.seek(0)
        assert other.read()[:-2] == files[0].read_bytes()[:-2 - 71]


def saved(tmp_path, **changes):
    """Save a checkpoint with some arrays changed or, if None, left out."""
    trainer = reference_trainer(MODEL, 3)
    trained(trainer, batches(1))
    path = tmp_path / "checkpoint.npz"
    with path.open("w+b") as file:
        save_checkpoint(file, 1, trainer.dense, trainer.embeddings.rows, Optimizer())
    with np.load(path) as file:
        arrays = dict(file)
        arrays |= {name: change(arrays[name]) if callable(change) else change
                   for name, change in changes.items()}
    with path.open("w+b") as file:
        write_sealed(file, {name: array for name, array in arrays.items() if array is not None})
    return path


def changed(index, value):
    """Return a function that changes an element of an array of a checkpoint."""
    def change(array):
        array = array.copy()
        array[index] = value
        return array
    return change


@pytest.mark.parametrize("changes, message", [
    ({"about": None}, "is not a checkpoint: about is missing or not a JSON"),
    ({"about": np.array("{}")}, "version is None, not 2 as in this run"),
    ({"about": np.array("[")}, "is not a checkpoint: about is missing or not a JSON"),
    ({"about": np.array(3)}, "is not a checkpoint: about is missing or not a JSON"),
    ({"top_1_biases": None}, "is not a checkpoint: top_1_biases is missing"),
    ({"top_1_biases": np.zeros(2, np.float32)}, r"top_1_biases must be float32 of shape \(1,\), "
                                                r"not float32 of \(2,\)"),
    ({"states": np.zeros(7, np.float32)}, r"states must be float32 of shape \(\d+,\), not"),
    ({"steps": np.zeros((), np.float32)}, r"steps must be int64 of shape \(\), not float32 of"),
    ({"keys": np.array([5, 5]), "vectors": np.zeros((2, 16), np.float32),
      "states": np.zeros(2, np.float32)}, "keys must be in ascending order"),
    ({"keys": np.array([51]), "vectors": np.zeros((1, 16), np.float32),
      "states": np.zeros(1, np.float32)}, "rows of table 0 must be below 50, not 51"),
    ({"steps": np.array(-3)}, "steps must be at least 1, not -3"),
    ({"vectors": changed((2, 5), np.nan)}, "vectors must be finite, not nan at 2, 5"),
    ({"states": changed(1, np.inf)}, "states must be finite, not inf at 1"),
    ({"states": changed(1, -1.0)}, "states must be at least 0, not -1.0"),
    ({"top_0_weights": changed((3, 4), np.nan)}, "top_0_weights must be finite, not nan at 3, 4"),
    ({"bottom_0_biases": changed(0, -np.inf)}, "bottom_0_biases must be finite, not -inf at 0"),
])
def test_what_is_no_checkpoint_is_refused(tmp_path, changes, message):
    path = saved(tmp_path, **changes)
    trainer = reference_trainer(MODEL, 3)
    before = weights_sha256(trainer.dense, trainer.embeddings.rows)
    with pytest.raises(InputError, match=f"checkpoint.npz: {message}"):
        load_checkpoint(path, trainer.dense, trainer.embeddings.rows, Optimizer())
    assert weights_sha256(trainer.dense, trainer.embeddings.rows) == before


@pytest.mark.parametrize("field", ["host_means", "slices", "first_rows"])
def test_a_checkpoint_from_before_a_field_is_taken(tmp_path, field):
    def older(about):
        return np.array(json.dumps({name: value for name, value in json.loads(str(about)).items()
                                    if name != f"model.{field}"}))

    trainer = reference_trainer(MODEL, 3)
    steps, _ = load_checkpoint(saved(tmp_path, about=older), trainer.dense,
                               trainer.embeddings.rows, Optimizer())
    assert steps == 1


@pytest.mark.parametrize("model, seed, optimizer, message", [
    (MODEL, 4, Optimizer(), "seed is 3, not 4 as in this run"),
    (replace(MODEL, pooling="mean"), 3, Optimizer(), "model.pooling is 'sum', not 'mean' as in"),
    (MODEL, 3, ADAGRAD, "optimizer.name is 'sgd', not 'rowwise-adagrad' as in this run"),
])
def test_a_checkpoint_of_another_run_is_refused(tmp_path, model, seed, optimizer, message):
    trainer = reference_trainer(model, seed, optimizer)
    with pytest.raises(InputError, match=message):
        load_checkpoint(saved(tmp_path), trainer.dense, trainer.embeddings.rows, optimizer)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "file"
    trainer = reference_trainer(MODEL, 3)

    def load():
        load_checkpoint(path, trainer.dense, trainer.embeddings.rows, Optimizer())

    with pytest.raises(InputError, match="file: No such file or directory"):
        load()
    for content in (b"", b"PK\x03\x04 and no more", b"text\n"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="file: is not a checkpoint"):
            load()
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(InputError, match="file: is not a checkpoint"):
        load()


def test_any_bit_that_is_flipped_and_any_byte_that_is_missing_is_found(tmp_path):
    """Also in headers, which NumPy reads as Python."""
    path = saved(tmp_path)
    whole = path.read_bytes()
    trainer = reference_trainer(MODEL, 3)

    def refused(content, place):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"checkpoint\.npz: is not a checkpoint"):
            load_checkpoint(path, trainer.dense, trainer.embeddings.rows, Optimizer())
            raise AssertionError(place)

    random = np.random.default_rng(5)
    places = [*range(0, 8 * 200, 7), *range(8 * (len(whole) - 200), 8 * len(whole), 5),
              *random.integers(0, 8 * len(whole), 300).tolist()]
    for place in places:
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        refused(bytes(flipped), place)
    for length in random.integers(0, len(whole), 50).tolist():
        refused(whole[:length], length)
    refused(whole + b"\0", "one more")
    assert len(trainer.embeddings.rows) == 0


@pytest.mark.parametrize("header", [
    "{'descr': '<f4', 'fortran_order': False, 'shape': (", "(" * 4000, "{'descr': 'O'}", "\0",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000,), }",
    "{'descr': [('a', '<f4')] * 3, 'fortran_order': False, 'shape': (2,), }"])
def test_a_sealed_archive_of_anything_is_no_checkpoint(tmp_path, header):
    """Use headers for which NumPy's parser raises SyntaxError, TokenError, MemoryError, ..."""
    path = tmp_path / "c.npz"
    text = header.encode()
    array = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(64)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("keys.npy", array)
    content = bytearray(path.read_bytes())
    content[-2:] = (71).to_bytes(2, "little")
    path.write_bytes(bytes(content) + b"sha256 " + hashlib.sha256(content).hexdigest().encode())
    trainer = reference_trainer(MODEL, 3)
    with pytest.raises(InputError, match=r"c\.npz: is not a checkpoint"):
        load_checkpoint(path, trainer.dense, trainer.embeddings.rows, Optimizer())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["sgd", "rowwise-adagrad"])
def test_a_run_that_diverges_ends_in_nan_alike_everywhere(name):
    parts = batches(6)
    runs = [trained(reference_trainer(MODEL, 3, Optimizer(name, 1e30), nodes), parts)
            for nodes in (1, 4)]
    assert np.isnan(runs[0][0][-1]) and runs[0][1] == runs[1][1]


def test_layers_may_be_computed_elsewhere_and_by_blas():
    calls = []

    def counted(inputs, layer):
        calls.append(layer.weights.shape)
        return linear_fixed(inputs, layer)

    parts = batches(2)
    fixed = trained(reference_trainer(MODEL, 3), parts)
    assert trained(reference_trainer(MODEL, 3, linear=counted), parts) == fixed
    # Four layers: forward, weights and biases, and inputs of all layers except the first.
    assert len(calls) == 2 * (4 + 2 * 4 + 3)
    losses, _ = trained(reference_trainer(MODEL, 3, mlp="blas"), parts)
    assert losses == pytest.approx(fixed[0], rel=1e-5)
    with pytest.raises(ValueError, match="dense must have 3 features, not 2"):
        DenseTrainer(MODEL, 0).begin(replace(parts[0], dense=parts[0].dense[:, :2]))

"""Training on NICs with tables of different dimensions and poolings: the reference's weights."""

import numpy as np
import pytest

from sim import api
from sim.training.options import TrainOptions
from sim.training.train import Training
from tests.host.dlrm.mixed import Plain, batches, mixed_model, toml_of


@pytest.fixture
def path(tmp_path):
    return tmp_path / "mixed.toml"


def test_the_reference_alone(path):
    model = mixed_model(1)
    path.write_text(toml_of(model))
    result = api.train(config="tiny", model=path, nodes=2, samples=60, mini_batch=20,
                       reference=True)
    plain = Plain(model)
    assert result["loss"] == [plain.train(part, 0.1) for part in batches(model, 3, 20)]
    assert result["notes"] == [model.padding]


def test_adagrad_averages_over_whole_vectors(path):
    path.write_text(toml_of(mixed_model(1)))
    with pytest.raises(ValueError, match=r"^optimizer must be sgd for padded vectors, not "
                                         "'rowwise-adagrad'"):
        api.train(config="tiny", model=path, samples=8, optimizer="rowwise-adagrad")


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2, 4])
@pytest.mark.parametrize(("seed", "settings"), [
    (0, ()), (1, ("gradient_partials=rounded",)), (2, ("deliver=unique", "completions=true")),
    (3, ("row_reads=true",)), (4, ("overtake=true",)), (5, ("local_reduction=false",))])
def test_nics_write_the_rows_of_tables_without_padding(path, seed, settings, nodes):
    model = mixed_model(seed)
    path.write_text(toml_of(model))
    given = {"config": "tiny", "model": str(path), "nodes": nodes, "samples": 60, "mini_batch": 20,
             "threads": 1, "settings": settings}
    training = Training(TrainOptions.of(**given))
    result = training.execute()
    assert result["bit_identical"] and not result["rows_compared"]["different"]
    assert result["weights_sha256"] == api.train(**given, reference=True)["weights_sha256"]
    if nodes > 1 and "gradient_partials=rounded" in settings:
        return  # other sums than the plain reference's
    plain = Plain(model)
    assert result["loss"] == [plain.train(part, 0.1) for part in batches(model, 3, 20)]
    keys, vectors, _ = training.nics.tables.rows.written()
    for key, vector in zip(keys.tolist(), vectors):
        table, row = key >> 36, key & (1 << 36) - 1
        dimension = model.table_dimensions[table]
        assert vector[:dimension].tobytes() == plain.rows[table, row].tobytes()
        assert not vector[dimension:].view(np.uint32).any()
    assert len(keys) == len(plain.written)

"""Compiled numerics against numpy, bit for bit."""

from dataclasses import replace

import numpy as np
import pytest

from host.data.generator import generate
from host.dlrm.dlrm import Dlrm, pooled_reference
from host.model import MODELS, Model, sliced, with_columns
from host.samples import Samples
from sim.host_cpp.check import pooled_compiled
from sim.host_cpp.numerics import COMPILED, NUMPY

DIMENSIONS = (4, 8, 16, 32, 48, 64, 128, 240, 256)
SIZES = (7, 1 << 36, 33_762_577)  # the largest table has as many rows as a key can address


def _model(dimension: int, pooling: str = "sum") -> Model:
    return Model((*SIZES[:1], SIZES[1] - 1, SIZES[2]), dimension, 2, (dimension,), (1,),
                 pooling=pooling)


def _samples(count: int, longest: int, seed: int = 1) -> Samples:
    """Return samples with bags of up to ``longest`` keys; one bag of ten is empty."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, longest + 1, (count, 3)) * (rng.random((count, 3)) < 0.9)
    tables = np.repeat(np.tile(np.arange(3), count), lengths.reshape(-1)).astype(np.int32)
    rows = rng.integers(0, np.array(_model(4).rows)[tables])
    return Samples(np.zeros((count, 2), np.float32), np.zeros(count, np.float32),
                   lengths.astype(np.int32), tables, rows)


def _same(got: np.ndarray, expected: np.ndarray) -> None:
    assert got.dtype == expected.dtype and got.shape == expected.shape
    assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("pooling", ["sum", "mean"])
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_pooled_vectors(dimension, pooling):
    model = _model(dimension, pooling)
    for count, longest in ((0, 1), (1, 0), (40, 1), (30, 100)):
        samples = _samples(count, longest)
        _same(pooled_compiled(samples, model, 9), pooled_reference(samples, model, 9))
    assert (samples.bag_lengths == 0).any() and samples.bag_lengths.max() > 90


def test_pooled_vectors_of_column_slices():
    model = with_columns(_model(128), {0: 32, 2: 64}, 16)
    samples = sliced(_samples(30, 20), model)
    _same(pooled_compiled(samples, model, 9), pooled_reference(samples, model, 9))


@pytest.mark.parametrize("interaction", ["dot", "cat"])
def test_predictions_of_a_model(interaction):
    model = replace(MODELS["kaggle"], interaction=interaction)
    samples = next(iter(generate(model, 40, 2)))
    plain, compiled = (Dlrm(model, 5, "fixed", with_.linear).forward(samples)
                       for with_ in (NUMPY, COMPILED))
    _same(compiled, plain)

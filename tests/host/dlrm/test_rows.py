import math

import numpy as np
import pytest

from host.dlrm.rows import row_values
from host.hashing import GOLDEN, mix64, mix64_int, uniforms
from host.model import MODELS, Model

MASK = (1 << 64) - 1


def plain_mix(h):
    h ^= h >> 33
    h = h * 0xFF51AFD7ED558CCD & MASK
    h ^= h >> 33
    h = h * 0xC4CEB9FE1A85EC53 & MASK
    return h ^ h >> 33


def plain_value(model, seed, table, row, d):
    base = plain_mix(row ^ mix64_int(seed, 0x726F77, table))
    h = plain_mix((base + (d // 2 + 1) * GOLDEN) & MASK)
    u = h >> 40 if d % 2 == 0 else h >> 16 & 0xFFFFFF
    return np.float32((2 * u + 1 - 2 ** 24) * (math.sqrt(1 / model.rows[table]) * 2.0 ** -24))


def test_mix64_against_plain_integers():
    values = [0, 1, MASK, 1 << 63, 0x0123456789ABCDEF]
    assert mix64(np.array(values, np.uint64)).tolist() == [plain_mix(v) for v in values]
    assert plain_mix(1) == 0xB456BCFC34C2CB2C  # published value of MurmurHash3's finaliser
    assert uniforms(np.array([0, MASK], np.uint64)).min() > 0
    assert uniforms(np.array([0, MASK], np.uint64)).max() < 1


@pytest.mark.parametrize("dimension", [16, 48])
def test_values_are_the_documented_function(dimension):
    model = Model((3, (1 << 36) - 1, 1000), dimension, 1, (dimension,), (1,))
    tables, rows = [0, 1, 2, 0, 1], [2, (1 << 36) - 2, 999, 0, 5]
    got = row_values(model, 42, tables, rows)
    assert got.dtype == np.float32 and got.shape == (5, dimension)
    for i, (table, row) in enumerate(zip(tables, rows)):
        assert got[i].tolist() == [plain_value(model, 42, table, row, d)
                                   for d in range(dimension)]


def test_values_do_not_depend_on_their_neighbours():
    model = MODELS["kaggle"]
    rng = np.random.default_rng(1)
    tables = rng.integers(0, 26, 20_000)
    rows = (rng.random(20_000) * np.array(model.rows)[tables]).astype(np.int64)
    whole = row_values(model, 7, tables, rows)
    order = rng.permutation(20_000)
    assert np.array_equal(row_values(model, 7, tables[order], rows[order]), whole[order])
    assert not np.array_equal(row_values(model, 8, tables, rows), whole)


def test_values_are_uniform_within_the_bound():
    model = Model((10_000, 100), 64, 1, (64,), (1,))
    values = row_values(model, 0, np.zeros(10_000, int), np.arange(10_000))
    assert np.abs(values).max() <= 0.01 and values.all()
    counts = np.histogram(values, 64, (-0.01, 0.01))[0]
    assert np.abs(counts - 10_000).max() < 5 * math.sqrt(10_000)
    assert len(np.unique(values[:, 0])) > 9_900


@pytest.mark.parametrize("table, row, message", [
    (2, 0, "tables must be between 0 and 1, not 2 to 2"),
    (-1, 0, "tables must be between 0 and 1"),
    (1, 5, "rows of table 1 must be below 5, not 5"),
    (1, -1, "rows of table 1 must be below 5, not -1"),
])
def test_keys_outside_the_model_are_refused(table, row, message):
    with pytest.raises(ValueError, match=message):
        row_values(Model((3, 5), 16, 1, (16,), (1,)), 0, [table], [row])

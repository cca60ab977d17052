import numpy as np
import pytest

from host.dlrm.interaction import ResultLayout, concatenation, dot_interaction, interaction
from host.model import MODELS, Model


def plain_dot(a, b):
    total = None
    for low in range(0, len(a), 16):
        level = [x * y for x, y in zip(a[low:low + 16], b[low:low + 16])]
        level += [np.float32(0)] * (16 - len(level))
        while len(level) > 1:
            level = [level[i] + level[i + 1] for i in range(0, len(level), 2)]
        total = level[0] if total is None else total + level[0]
    return total


@pytest.mark.parametrize("itself", [False, True], ids=["apart", "itself"])
@pytest.mark.parametrize("tables, dimension", [
    (0, 16), (1, 16), (3, 64), (26, 16), (5, 48), (3, 4), (26, 8), (2, 256)])
def test_pairs_and_orders_are_the_pinned_ones(tables, dimension, itself):
    rng = np.random.default_rng(tables)
    dense = rng.standard_normal((3, dimension)).astype(np.float32)
    pooled = rng.standard_normal((3, tables, dimension)).astype(np.float32)
    got = dot_interaction(dense, pooled, itself=itself)
    for n in range(3):
        z = [dense[n], *pooled[n]]
        expected = [*dense[n], *(plain_dot(z[i], z[j]) for i in range(len(z))
                                 for j in range(i + itself))]
        assert got[n].tolist() == expected


def test_batches_do_not_matter_and_floats_are_near():
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((300, 32)).astype(np.float32)
    pooled = rng.standard_normal((300, 4, 32)).astype(np.float32)
    whole = dot_interaction(dense, pooled)
    for batch in (1, 50, 299):
        parts = [dot_interaction(dense[i:i + batch], pooled[i:i + batch])
                 for i in range(0, 300, batch)]
        assert np.array_equal(np.concatenate(parts), whole)
    z = np.concatenate([dense[:, None], pooled], axis=1).astype(np.float64)
    exact = np.einsum("nid,njd->nij", z, z)[:, *np.tril_indices(5, -1)]
    np.testing.assert_allclose(whole[:, 32:], exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dimension", [4, 8, 20])
def test_free_lanes_go_through_the_tree(dimension):
    """The sum of products that are -0 becomes +0 when a free lane joins it."""
    dense, pooled = np.full((1, dimension), -1, np.float32), np.zeros((1, 1, dimension), np.float32)
    assert not np.signbit(dot_interaction(dense, pooled)[0, dimension])
    full = dot_interaction(np.full((1, 16), -1, np.float32), np.zeros((1, 1, 16), np.float32))
    assert np.signbit(full[0, 16])


def _model(dimension: int, tables: int, kind: str = "dot", itself: bool = False) -> Model:
    return Model((5,) * tables, dimension, 1, (dimension,), (1,), interaction=kind,
                 interaction_itself=itself)


def test_concatenation_is_in_order():
    dense, pooled = np.array([[1, 2], [7, 8]], np.float32), np.array(
        [[[3, 4], [5, 6]], [[9, 10], [11, 12]]], np.float32)
    assert concatenation(dense, pooled).tolist() == [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]]


@pytest.mark.parametrize(("name", "width"), [("kaggle", 367), ("terabyte", 415), ("avazu", 247)])
def test_widths_are_the_published_ones(name, width):
    model = MODELS[name]
    shape = (2, model.tables, model.dimension)
    values = interaction(model, np.ones((2, model.dimension), np.float32),
                         np.ones(shape, np.float32))
    assert values.shape == (2, width) == (2, model.interaction_width)


@pytest.mark.parametrize("tables", [1, 2, 5, 6, 26])
@pytest.mark.parametrize("dimension", [4, 8, 16, 64])
@pytest.mark.parametrize(("kind", "itself"), [("dot", False), ("dot", True), ("cat", False)])
def test_where_values_lie_in_beats(dimension, tables, kind, itself):
    model = _model(dimension, tables, kind, itself)
    layout = ResultLayout.of(model)
    rng = np.random.default_rng(2)
    dense = rng.standard_normal((3, dimension)).astype(np.float32)
    pooled = rng.standard_normal((3, tables, dimension)).astype(np.float32)
    values = interaction(model, dense, pooled)
    beats = layout.to_beats(values)
    assert beats.shape == (3, layout.beats, 16) and layout.width == values.shape[1]
    for got, vector, vectors in zip(beats, dense, pooled):
        if kind == "dot":
            z = [vector, *vectors]
            dots = [plain_dot(z[i], z[j]) for i in range(len(z)) for j in range(i + itself)]
            lead = [*vector, *[0.0] * (-dimension % 16)]
            expected = [*lead, *dots, *[0.0] * (-len(dots) % 16)]
        else:
            expected = [*vector, *vectors.reshape(-1)]
            expected += [0.0] * (-len(expected) % 16)
        assert got.reshape(-1).tolist() == expected
    assert np.array_equal(layout.to_values(beats), values)


def test_results_of_kaggle_take_23_beats():
    assert ResultLayout.of(MODELS["kaggle"]).beats == 23  # 1 of the dense vector, 22 of 351 dots
    assert ResultLayout.of(MODELS["terabyte"]).beats == 26

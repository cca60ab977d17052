"""Gradients: their defined orders one operation at a time, and against finite differences."""

import numpy as np
import pytest

from host.dlrm.backward import activations, interaction_backward, mlp_backward
from host.dlrm.interaction import interaction
from host.dlrm.mlp import Layer, forward, initial_layers, linear_blas
from host.model import Model

F = np.float32


def plain_sum(terms):
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total + F(0)


def layers_of(shapes, seed):
    return initial_layers(tuple(shapes), seed)


def test_activations_are_those_of_forward():
    layers = layers_of([(5, 20), (20, 7), (7, 3)], 1)
    inputs = np.random.default_rng(0).standard_normal((40, 5)).astype(F)
    for last in (False, True):
        values = activations(inputs, layers, last_relu=last)
        assert [value.shape[1] for value in values] == [5, 20, 7, 3]
        for number in range(3):
            assert np.array_equal(values[number + 1], forward(
                inputs, layers[:number + 1], last_relu=last or number < 2))


@pytest.mark.parametrize("n", [1, 9, 300])
def test_orders_of_a_layer_are_the_documented_ones(n):
    rng = np.random.default_rng(n)
    layer = Layer(rng.standard_normal((4, 6)).astype(F), rng.standard_normal(6).astype(F))
    values = activations(rng.standard_normal((n, 4)).astype(F), [layer])
    gradient = rng.standard_normal((n, 6)).astype(F)
    (got,), below = mlp_backward(values, [layer], gradient)
    assert below is not None
    g = np.where(values[1] > 0, gradient, F(0))
    assert (g == 0).any() and (g != 0).any()
    for k in range(6):
        assert got.biases[k] == plain_sum(g[:, k])
        for i in range(4):
            assert got.weights[i, k] == plain_sum(values[0][:, i] * g[:, k])
    for m in range(min(n, 20)):
        for i in range(4):
            assert below[m, i] == plain_sum(g[m] * layer.weights[i])
    assert mlp_backward(values, [layer], gradient, inputs=False)[1] is None


def test_a_relu_lets_nothing_through_at_zero_and_a_nan_always():
    layer = Layer(np.eye(3, dtype=F), np.zeros(3, F))
    values = activations(np.array([[0, -1, np.nan]], F), [layer])
    values[1] = np.array([[0, -0.0, np.nan]], F)
    got, _ = mlp_backward(values, [layer], np.array([[5, -5, 7]], F))
    assert got[0].biases.tolist() == [0, 0, 7]


@pytest.mark.parametrize("last_relu", [False, True])
def test_mlp_against_finite_differences(last_relu):
    shapes = [(3, 8), (8, 5), (5, 2)]
    layers = layers_of(shapes, 4)
    rng = np.random.default_rng(3)
    inputs, weight = rng.standard_normal((6, 3)).astype(F), rng.standard_normal((6, 2)).astype(F)

    def run(arrays):
        x, parts = arrays[0], arrays[1:]
        for number in range(3):
            x = x @ parts[2 * number] + parts[2 * number + 1]
            if last_relu or number < 2:
                x = np.maximum(x, 0)
        return (x * weight).sum()

    values = activations(inputs, layers, last_relu=last_relu)
    gradients, below = mlp_backward(values, layers, weight, last_relu=last_relu)
    arrays = [inputs, *(array for layer in layers for array in (layer.weights, layer.biases))]
    got = [below, *(array for layer in gradients for array in (layer.weights, layer.biases))]
    check(run, arrays, got)
    blas, _ = mlp_backward(values, layers, weight, linear_blas, last_relu)
    np.testing.assert_allclose(blas[0].weights, gradients[0].weights, rtol=1e-4, atol=1e-6)


def check(run, arrays, gradients):
    """Compare ``gradients`` with central differences of ``run``, in float64."""
    wide = [array.astype(np.float64) for array in arrays]
    for number, gradient in enumerate(gradients):
        assert gradient.shape == wide[number].shape and gradient.dtype == F
        for place in np.ndindex(gradient.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [array.copy() for array in wide]
                moved[number][place] += step
                ends.append(run(moved))
            assert gradient[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=2e-4, abs=2e-5)


def model_of(kind, itself, tables, dimension):
    return Model((5,) * tables, dimension, 1, (dimension,), (1,), interaction=kind,
                 interaction_itself=itself)


def vectors_of(model, n, seed):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, model.dimension)).astype(F),
            rng.standard_normal((n, model.tables, model.dimension)).astype(F),
            rng.standard_normal((n, model.interaction_width)).astype(F))


@pytest.mark.parametrize("itself", [False, True], ids=["apart", "itself"])
@pytest.mark.parametrize("tables, dimension, n", [(1, 4, 3), (4, 16, 2), (5, 8, 130)])
def test_orders_of_the_dot_interaction(tables, dimension, n, itself):
    model = model_of("dot", itself, tables, dimension)
    dense, pooled, gradient = vectors_of(model, n, tables)
    got_dense, got_pooled = interaction_backward(model, dense, pooled, gradient)
    pairs = [(i, j) for i in range(tables + 1) for j in range(i + itself)]
    for m in {0, 1, n - 1}:
        z = [dense[m], *pooled[m]]
        of = {pair: g for pair, g in zip(pairs, gradient[m, dimension:])}
        for i in range(tables + 1):
            total = gradient[m, :dimension] if i == 0 else None
            for j in range(tables + 1):
                if i == j and not itself:
                    continue
                g = F(2) * of[i, i] if i == j else of[max(i, j), min(i, j)]
                total = g * z[j] if total is None else total + g * z[j]
            assert (got_pooled[m, i - 1] if i else got_dense[m]).tolist() == total.tolist()


@pytest.mark.parametrize("kind, itself", [("dot", False), ("dot", True), ("cat", False)])
def test_interactions_against_finite_differences(kind, itself):
    model = model_of(kind, itself, 3, 4)
    dense, pooled, weight = vectors_of(model, 2, 8)

    def run(arrays):
        z = np.concatenate((arrays[0][:, None], arrays[1]), axis=1)
        if kind == "cat":
            return (z.reshape(2, -1) * weight).sum()
        i, j = np.tril_indices(4, 0 if itself else -1)
        dots = np.einsum("nid,njd->nij", z, z)[:, i, j]
        return (np.concatenate((arrays[0], dots), axis=1) * weight).sum()

    assert run([dense, pooled]) == pytest.approx(
        float((interaction(model, dense, pooled) * weight).sum()), rel=1e-4)
    check(run, [dense, pooled], interaction_backward(model, dense, pooled, weight))


def test_an_infinite_vector_stays_out_of_its_own_gradient():
    model = model_of("dot", False, 2, 4)
    dense, pooled, gradient = vectors_of(model, 1, 1)
    gradient[:, 4:] = 0
    pooled[0, 0, 2] = np.inf
    with np.errstate(invalid="ignore"):
        got_dense, got = interaction_backward(model, dense, pooled, gradient)
    assert np.isnan(got[0, 1]).tolist() == np.isnan(got_dense[0]).tolist() == [
        False, False, True, False]
    assert not np.isnan(got[0, 0]).any()


def test_a_gradient_of_another_width_is_refused():
    model = model_of("dot", False, 2, 4)
    dense, pooled, gradient = vectors_of(model, 1, 1)
    with pytest.raises(ValueError, match=r"gradient must have shape \(1, 7\), not \(1, 6\)"):
        interaction_backward(model, dense, pooled, gradient[:, :6])

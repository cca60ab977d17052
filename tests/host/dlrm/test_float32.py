"""NaN, infinities and subnormals in the numerics: the bits of the hardware, and no warning."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

from host.dlrm.backward import interaction_backward
from host.dlrm.dlrm import pool, sigmoid
from host.dlrm.exact import ExactSum, nearest
from host.dlrm.float32 import NAN, canonical, fused, means
from host.dlrm.interaction import dot_interaction
from host.dlrm.loss import binary_cross_entropy
from host.dlrm.mlp import Layer, linear_blas, linear_fixed
from host.dlrm.optimizer import Optimizer
from host.model import Model
from tests.rtl.interaction.bags import pooled_beats

F = np.float32
SPECIAL = np.array([0, 0x80000000, 1, 0x807FFFFF, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000,
                    0x7FC00000, 0xFFC12345, 0x7F800001, 0x3F800000], np.uint32)
"""Zeros, subnormals, the largest value, infinities, NaN of three kinds, 1."""


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def special(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).choice(SPECIAL, shape).view(F)


def once(value: Fraction) -> float:
    """Return ``value``, not 0, rounded to the nearest even float32."""
    exponent = max(-149, math.frexp(value)[1] - 24)
    unit = Fraction(2) ** exponent
    rounded = round(value / unit) * unit  # rounds a half to even
    return float(rounded) if abs(rounded) < 2 ** 128 else math.copysign(math.inf, value)


def test_a_fused_product_is_rounded_once():
    rng = np.random.default_rng(3)
    first, second, added = rng.integers(0, 1 << 32, (3, 6000), np.uint32).view(F)
    with np.errstate(all="ignore"):
        # Sums that almost cancel, and sums of all distances.
        added[::3] = -(first * second)[::3]
        added[1::3] = (first.astype(np.float64) * second
                       * 2.0 ** rng.integers(-60, 60, 6000))[1::3].astype(F)
    # The sum of the rounded product is another number; rounding through float64 as well.
    first[:2], second[:2], added[:2] = 1 + 2**-12, 1 + 2**-12, (-1, 2**-30 + 2**-53)
    got, compared = fused(first, second, added), 0
    for *given, found in zip(first, second, added, got):
        if np.isfinite(given).all():
            a, b, c = (Fraction(float(each)) for each in given)
            compared += 1
            assert found == (once(a * b + c) if a * b + c else 0)
    assert compared > 5000
    assert_canonical(fused(special(500), special(500, seed=1), special(500, seed=2)))


def assert_canonical(values: np.ndarray) -> None:
    nan = np.isnan(values)
    assert nan.any() and not nan.all()
    assert (np.ascontiguousarray(values).view(np.uint32)[nan] == 0x7FC00000).all()


def test_nan_is_the_hardwares():
    bits = np.array([0x7FC00000, 0xFFC00001, 0x7F800001, 0x7F800000, 0x80000000, 5], np.uint32)
    assert canonical(bits.view(F)).view(np.uint32).tolist() == [
        *[0x7FC00000] * 3, 0x7F800000, 0x80000000, 5]
    assert int(NAN.view(np.uint32)) == nearest(ExactSum(plus=True, minus=True))


@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_bags_have_the_bits_that_the_block_makes(pooling):
    """The block's bits are those of tests.rtl.interaction.test_pooling."""
    rng = np.random.default_rng(5)
    lengths = rng.integers(0, 5, 400)
    vectors = special(int(lengths.sum()), 16, seed=6)
    bags = np.split(vectors.view(np.uint32), np.cumsum(lengths)[:-1])
    beats = pooled_beats([(0, 0, bags)], 1, mean=pooling == "mean")
    got = pool(vectors, lengths, pooling)
    assert got.tobytes() == b"".join(beat["data"].to_bytes(64, "little") for beat in beats)
    assert_canonical(got[lengths > 1])


def test_the_sum_of_one_vector_is_the_vector_and_its_mean_is_not():
    lone = np.full((1, 16), 0xFFC12345, np.uint32).view(F)
    assert pool(lone, np.array([1])).tobytes() == lone.tobytes()
    assert (pool(lone, np.array([1]), "mean").view(np.uint32) == 0x7FC00000).all()


def test_every_operation_makes_the_hardwares_nan():
    vectors, lengths = special(300, 16), np.arange(300) % 4
    assert_canonical(means(vectors, lengths))
    dots = dot_interaction(special(50, 16), special(50, 3, 16, seed=1), itself=True)
    assert dots[:, :16].tobytes() == special(50, 16).tobytes()  # the dense vector, unchanged
    finite = np.random.default_rng(2).choice(SPECIAL[:8], (200, 4)).view(F)
    assert_canonical(dot_interaction(finite, finite[::-1, None], itself=True)[:, 4:])
    for linear in (linear_fixed, linear_blas):
        assert_canonical(linear(finite, Layer(finite[:4], finite[4])))
    model = Model((9, 9), 4, 2, (4,), (1,), "small")
    for found in interaction_backward(model, finite, np.stack([finite, finite], axis=1),
                                      special(200, model.interaction_width, seed=3)):
        assert_canonical(found)
    for name in ("sgd", "rowwise-adagrad"):
        new, _ = Optimizer(name).apply(special(200, 4), special(200, seed=4),
                                       special(200, 4, seed=9))
        assert_canonical(new)


def test_a_loss_of_nan_is_nan():
    logits = special(40)
    labels = np.zeros(40, F)
    loss = binary_cross_entropy(logits, labels)
    assert np.isnan(loss.mean)
    assert_canonical(loss.gradient)
    assert_canonical(sigmoid(logits))

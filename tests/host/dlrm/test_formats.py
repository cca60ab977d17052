"""Codecs of 16 bits, and the vectors of a model in lanes, against independent definitions."""

from fractions import Fraction

import numpy as np
import pytest

from host.data.generator import generate
from host.dlrm.codecs import CODECS
from host.dlrm.dlrm import pooled_reference
from host.dlrm.float32 import fused
from host.dlrm.formats import FLOAT32, VectorFormat, in_lanes, longest
from host.dlrm.rows import row_values
from host.model import Model, padded

SHORT = ("float16", "bfloat16")
SHAPE = {"float16": (10, -14, 15), "bfloat16": (7, -126, 127)}
"""Bits of the fraction, and the least and the greatest exponent of a normal number."""

SPECIAL = np.array([
    0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000,
    0x7FC00000, 0xFFC12345, 0x7F800001,
    # Ties of bfloat16, even and odd; its largest value, and the tie above it.
    0x3F808000, 0x3F818000, 0x3F808001, 0x3F817FFF, 0x7F7F0000, 0x7F7F8000, 0x00008000, 0x00018000,
    # Ties of float16, even and odd; its largest value, the tie above it; subnormals and their ties.
    0x3F801000, 0x3F803000, 0x477FE000, 0x477FF000, 0x477FEFFF, 0x33000000, 0x33000001, 0x33C00000,
    0x387FC000, 0x387FE000], np.uint32).view(np.float32)


def encoded(values: np.ndarray, name: str) -> np.ndarray:
    """Return ``values [n, dimension]`` in lanes."""
    return CODECS[name].encode(values)


def rounded(values: np.ndarray, name: str) -> np.ndarray:
    """Return ``values [n]``, each rounded as a vector of its own."""
    return CODECS[name].decode(encoded(values[:, None], name), 1)[:, 0]


def samples() -> np.ndarray:
    """Special values, floats of random bits, and values near 1."""
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 1 << 32, 20_000, np.uint32)
    bits[::4] &= 0xFFFF8000  # many ties
    near = rng.uniform(-2, 2, 20_000).astype(np.float32) * np.float32(2.0) ** rng.integers(
        -28, 20, 20_000).astype(np.float32)
    return np.concatenate((SPECIAL, bits.view(np.float32), near))


def exactly(value: float, name: str) -> float:
    """Return ``value``, finite, clamped and rounded to nearest even, with fractions."""
    bits, least, greatest = SHAPE[name]
    most = Fraction(2) ** greatest * (2 - Fraction(1, 1 << bits))
    exact = max(-most, min(most, Fraction(value)))
    exponent = least
    while abs(exact) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (exponent - bits)
    return float(round(exact / unit) * unit)  # rounds a half to even


@pytest.mark.parametrize("name", SHORT)
def test_values_are_clamped_and_rounded_to_nearest_even(name):
    values = samples()[:3_000]
    finite = values[np.isfinite(values)]
    expected = np.array([exactly(float(each), name) for each in finite], np.float32)
    assert (rounded(finite, name) == expected).all()
    assert (np.signbit(rounded(finite, name)) == np.signbit(finite)).all()


def test_float16_is_that_of_numpy():
    values = samples()
    values = values[~np.isnan(values)]
    expected = np.clip(values, -65504, 65504).astype(np.float16)
    assert (encoded(values[:, None], "float16")[:, 0] == expected.view(np.uint16)).all()


def test_bfloat16_keeps_the_upper_half_unless_the_lower_half_is_above_a_half():
    values = samples()
    bits = values[np.isfinite(values)].view(np.uint32).astype(np.int64)
    low, high = bits & 0xFFFF, bits >> 16
    up = (low > 0x8000) | ((low == 0x8000) & (high % 2 == 1))
    most = high & 0x7FFF == 0x7F7F
    expected = np.where(most, high, high + up)
    got = encoded(values[np.isfinite(values)][:, None], "bfloat16")[:, 0]
    assert (got == expected).all()


@pytest.mark.parametrize("name", SHORT)
def test_the_conversions_of_pytorch_give_the_same_bits(name):
    torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
    values, kind = samples(), getattr(torch, name)
    values = values[~np.isnan(values)]
    most = torch.finfo(kind).max
    expected = torch.from_numpy(values).clamp(-most, most).to(kind)
    assert (rounded(values, name).view(np.uint32)
            == expected.float().numpy().view(np.uint32)).all()


@pytest.mark.parametrize("name", SHORT)
def test_a_nan_is_the_nan_of_the_hardware_and_infinity_the_largest_value(name):
    nans = np.array([0x7FC00000, 0xFFC12345, 0x7F800001], np.uint32).view(np.float32)
    assert (rounded(nans, name).view(np.uint32) == 0x7FC00000).all()
    most = exactly(float(np.finfo(np.float32).max), name)
    infinite = np.array([np.inf, -np.inf], np.float32)
    assert rounded(infinite, name).tolist() == [most, -most]


@pytest.mark.parametrize("name", ("float32", *SHORT))
@pytest.mark.parametrize("dimension", [1, 2, 7, 8, 33, 64])
def test_vectors_return_from_their_lanes_rounded(name, dimension):
    values = samples()[:dimension * 100].reshape(100, dimension)
    words = encoded(values, name)
    assert words.dtype == np.uint32
    assert words.shape == (100, CODECS[name].lanes(dimension))
    expected = rounded(values.reshape(-1), name).reshape(values.shape)
    wider = np.concatenate((words, np.zeros((100, 3), np.uint32)), axis=1)
    for given in (words, wider):
        assert (CODECS[name].decode(given, dimension).view(np.uint32)
                == expected.view(np.uint32)).all()


def test_the_first_of_two_values_is_in_the_low_half():
    values = np.array([[1, -2, 0.5]], np.float32)
    assert [f"{word:08x}" for word in encoded(values, "float16")[0]] == ["c0003c00", "00003800"]
    assert [f"{word:08x}" for word in encoded(values, "bfloat16")[0]] == ["c0003f80", "00003f00"]


@pytest.mark.parametrize("name", ("float32", *SHORT))
def test_float32_is_unchanged_and_rounding_again_changes_nothing(name):
    values = samples()
    once = rounded(values, name)
    assert (rounded(once, name).view(np.uint32) == once.view(np.uint32)).all()
    if name == "float32":
        assert (once.view(np.uint32) == values.view(np.uint32)).all()


def test_a_model_in_lanes_has_half_of_its_values():
    model = Model(rows=(10, 20, 30), dimension=64, dense=4, bottom=(32, 64), top=(8, 1),
                  interaction="cat", dimensions=(64, 33, 7))
    assert in_lanes(model, "float32") is model
    for name in SHORT:
        small = in_lanes(model, name)
        assert (small.dimension, small.table_dimensions, small.width) == (32, (32, 17, 4), 32)
        assert (small.rows, small.bottom) == (model.rows, (32, 32))
    alike = in_lanes(Model((10, 20), 32, 4, (32,), (1,), interaction="cat", dimensions=(32, 31)),
                     "float16")
    assert alike.table_dimensions == (16, 16)


MIXED = Model((10, 20, 30), 24, 4, (24,), (1,), interaction="cat", dimensions=(24, 5, 128))
"""The longest vector has the most lanes in every format."""


@pytest.mark.parametrize("name", list(CODECS)[1:])
def test_vectors_of_a_model_are_padded_with_zeros_in_nics_and_in_memory(name):
    form, codec = VectorFormat.of(MIXED, name), CODECS[name]
    tables = np.arange(150) % 3
    values = samples()[-128 * 150:].reshape(150, 128)
    values[np.arange(128) >= np.array(MIXED.dimensions)[tables][:, None]] = 0
    words, back = form.packed(values, tables), form.rounded(values, tables)
    assert words.shape == (len(values), form.lanes) and back.shape == values.shape
    assert form.lanes == in_lanes(MIXED, name).width == padded(codec.lanes(128))
    for table, dimension in enumerate(MIXED.dimensions):
        mine, lanes = tables == table, codec.lanes(dimension)
        assert (words[mine, :lanes] == encoded(values[mine, :dimension], name)).all()
        assert not words[mine, lanes:].any() and not back[mine, dimension:].any()
        assert (back[mine, :dimension].view(np.uint32) == codec.decode(
            words[mine], dimension).view(np.uint32)).all()


def test_vectors_of_float32_are_unchanged():
    values = samples()[:96].reshape(4, 24)
    assert FLOAT32.plain and not VectorFormat.of(MIXED, "int8").plain
    for change in (FLOAT32.packed, FLOAT32.unpacked, FLOAT32.rounded):
        assert change(values, np.zeros(4, np.int64)) is values


@pytest.mark.parametrize("name", CODECS)
def test_longer_vectors_have_no_fewer_lanes(name):
    lanes = [CODECS[name].lanes(values) for values in range(1, 257)]
    assert lanes == sorted(lanes)
    for most in (1, 4, 8, 16, 64, 128, 256):
        assert longest(most, name) == sum(each <= most for each in lanes)


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_the_reference_rounds_rows_at_requesters_and_sums_at_owners(name, pooling):
    model = Model((50, 40, 30, 20), 8, 2, (8,), (1,), bags=((0, 3),) * 4, pooling=pooling,
                  weighted_tables=(2, 3))
    samples, at = next(generate(model, 40, 3)), 0
    got = pooled_reference(samples, model, 3, name, owner_tables=(1, 3))
    nearest = np.vectorize(lambda value: np.float32(exactly(float(value), name)), otypes="f")
    assert samples.weights is not None
    for number, lengths in enumerate(samples.bag_lengths.tolist()):
        for table, length in enumerate(lengths):
            keys, total = slice(at, at + length), np.zeros(8, np.float32)
            rows = row_values(model, 3, samples.tables[keys], samples.rows[keys])
            for place, row in enumerate(rows if table in (1, 3) else map(nearest, rows)):
                if table in (2, 3):
                    total = fused(row, np.full(8, samples.weights[at + place]), total)
                else:
                    total = total + row if place else row
            total = nearest(total) if table in (1, 3) else total
            if pooling == "mean" and length:
                total = total / np.float32(length)
            assert np.array_equal(got[number, table], total)
            at += length

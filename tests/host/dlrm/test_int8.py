"""Codes of 8 bits with a scale and a bias for each group: the bytes of TorchRec's codec, and the
lanes of scales and biases."""

from fractions import Fraction

import numpy as np
import pytest

from host.dlrm.codecs import CODECS, Int8
from tests.host.dlrm.test_formats import samples

# Codes, scale and bias as FBGEMM's FloatToFused8BitRowwiseQuantized writes them.
GOLDEN = {
    (-1.5, 0.1, 0.3333333, 2.75, 0.75, -0.001, 0, -0.9): "00606eff875a5a248988883c0000c0bf",
    (0.5, -0.25, 3e-5, 0.6, -0.75, 1, 0.2, -0.35): "b6496dc500ff8a3ae1e0e03b000040bf"}


def vectors(dimension: int) -> np.ndarray:
    """Finite vectors of magnitudes from 2^-28 to 2^20, some of equal values."""
    values = samples()[20_032:]
    values = values[:len(values) // dimension * dimension].reshape(-1, dimension).copy()
    values[::7] = values[::7, :1]
    return values


@pytest.mark.parametrize("group", [0, 8, 32])
def test_bytes_are_those_of_fbgemm(group):
    words = Int8(group).encode(np.array(list(GOLDEN), np.float32))
    assert [row.tobytes().hex() for row in words] == list(GOLDEN.values())


@pytest.mark.parametrize("dimension", [1, 16, 32])
def test_the_codec_of_fbgemm_gives_the_same_bytes_and_values(dimension):
    torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
    pytest.importorskip("fbgemm_gpu", reason="FBGEMM is not installed (extra `torchrec`)")
    values = vectors(dimension)
    theirs = torch.ops.fbgemm.FloatToFused8BitRowwiseQuantized(torch.from_numpy(values))
    words = CODECS["int8"].encode(values)
    expected = theirs.numpy()
    assert (words.view(np.uint8)[:, :dimension] == expected[:, :dimension]).all()
    pairs = words[:, -2:].copy().view(np.uint8)
    assert (pairs == expected[:, -8:]).all()


@pytest.mark.parametrize(("dimension", "group", "pairs_at", "lanes"), [
    (1, 32, 1, 3), (16, 32, 4, 6), (32, 32, 8, 10), (33, 32, 9, 13), (48, 32, 12, 16),
    (49, 32, 16, 20), (64, 32, 16, 20), (65, 32, 32, 38), (128, 32, 32, 40), (256, 32, 64, 80),
    (56, 0, 14, 16), (57, 0, 16, 18), (128, 0, 32, 34), (256, 0, 64, 66)])
def test_scales_and_biases_follow_whole_beats_of_codes(dimension, group, pairs_at, lanes):
    codec, rng = Int8(group), np.random.default_rng(2)
    assert codec.lanes(dimension) == lanes
    values = rng.uniform(-1, 1, (5, dimension)).astype(np.float32)
    words = codec.encode(values)
    assert words.shape == (5, lanes)
    size = group or dimension
    for number, first in enumerate(range(0, dimension, size)):
        part = values[:, first:first + size]
        scale, bias = words[:, pairs_at + 2 * number:pairs_at + 2 * number + 2].view(np.float32).T
        assert (bias == part.min(axis=1)).all()
        assert (scale == (part.max(axis=1) - part.min(axis=1)) / np.float32(255)).all()
    assert not words.view(np.uint8)[:, dimension:4 * pairs_at].any()


@pytest.mark.parametrize("name", ["int8", "int8_row"])
@pytest.mark.parametrize("dimension", [1, 16, 33, 64, 200])
def test_values_return_with_an_error_of_half_a_step(name, dimension):
    values, size = vectors(dimension), CODECS[name].group or dimension
    back = CODECS[name].decode(CODECS[name].encode(values), dimension)
    assert back.dtype == np.float32
    for first in range(0, dimension, size):
        part = values[:, first:first + size].astype(np.float64)
        spread = part.max(axis=1) - part.min(axis=1)
        # Half a step; the reciprocal of a short range is that of the range and 1e-8.
        most = spread * (0.501 / 255) + 1e-8 + np.abs(part).max(axis=1) * 2.0 ** -22
        assert (np.abs(back[:, first:first + size] - part).max(axis=1) <= most).all()


def test_a_value_is_rounded_once():
    words = np.zeros((2_000, 10), np.uint32)
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 256, (2_000, 32))
    words[:, :8] = codes.astype(np.uint8).view(np.uint32)
    pairs = rng.uniform(-1, 1, (2_000, 2)).astype(np.float32)
    words[:, 8:] = pairs.view(np.uint32)
    values = CODECS["int8"].decode(words, 32)
    for at in range(0, 2_000, 50):
        scale, bias = (Fraction(float(each)) for each in pairs[at])
        for place in range(32):
            exact = scale * int(codes[at, place]) + bias
            got = values[at, place]
            below, above = (np.nextafter(got, np.float32(way), dtype=np.float32)
                            for way in (-np.inf, np.inf))
            error = abs(Fraction(float(got)) - exact)
            assert all(error <= abs(Fraction(float(each)) - exact) for each in (below, above))


def test_a_group_without_a_finite_range_becomes_nan_and_no_other_group():
    values = np.ones((4, 64), np.float32)
    values[0, 3], values[1, 40], values[2, 0] = np.nan, np.inf, -np.inf
    values[3, :2] = np.finfo(np.float32).max * np.array([1, -1])
    words = CODECS["int8"].encode(values)
    back = CODECS["int8"].decode(words, 64)
    wrong = np.repeat([[True, False], [False, True], [True, False], [True, False]], 32, axis=1)
    assert (back[wrong].view(np.uint32) == 0x7FC00000).all()
    assert (back[~wrong] == 1).all()
    assert not words[0, :8].any()

"""Every float unit by the hundred thousand, on the compiled engine, 16 lanes a beat, or 4."""

import numpy as np
import pytest

from host.dlrm.interaction import dot_interaction
from sim.engines import load
from tests.rtl.float.cases import (
    SPECIAL,
    canonical,
    directed_pairs,
    numpy_add,
    numpy_divide,
    numpy_multiply,
    numpy_quotient,
    numpy_root,
    random_factors,
    random_pairs,
    random_quotients,
    random_ratios,
    random_squares,
    random_vectors,
)
from tests.rtl.float.code_cases import (
    beats_of_codes,
    directed_codes,
    fused_values,
    random_codes,
)
from tests.rtl.float.softfloat import softfloat
from tests.rtl.float.vector_top import FEW, FloatTop

pytestmark = pytest.mark.thorough

LANES = 16
SAMPLE = 20_000
"""Random results that are also compared with SoftFloat, which takes about a microsecond each."""

# Rows a call, and calls: 160,000 operations in any test run, 10 million in the long one.
AMOUNTS = [pytest.param(160_000, 1, id="short"),
           pytest.param(1_000_000, 10, id="long", marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def units():
    return load(FloatTop(), "float_top")


def run(units, stream: str, beats: np.ndarray, stall: float = 0.0) -> np.ndarray:
    engine = units.instance()
    if stall:
        engine.set_stall(stream, 1, stall)
        engine.set_stall(f"{stream}_o", 2, stall)
    engine.push(stream, beats)
    engine.run(3 * len(beats) + 200)
    results, cycles = engine.pop(f"{stream}_o")
    assert len(results) == len(beats)
    if not stall:
        assert cycles[-1] - cycles[0] == len(beats) - 1, "one beat a cycle"
    return results


def compare(results: np.ndarray, expected: np.ndarray, *operands: np.ndarray) -> None:
    wrong = np.flatnonzero(results.ravel() != expected.ravel())
    assert not len(wrong), [
        " ".join(f"{operand.ravel()[k]:08x}" for operand in operands)
        + f" = {results.ravel()[k]:08x}, not {expected.ravel()[k]:08x}" for k in wrong[:5]]


def pair_beats(pairs: np.ndarray, extra: int = 0, lanes: int = LANES) -> np.ndarray:
    beats = np.zeros((len(pairs) // lanes, 2 * lanes + extra), dtype=np.uint32)
    beats[:, :lanes] = pairs[:, 0].reshape(-1, lanes)
    beats[:, lanes:2 * lanes] = pairs[:, 1].reshape(-1, lanes)
    return beats


def whole_beats(pairs: np.ndarray) -> np.ndarray:
    return pairs[:len(pairs) // LANES * LANES]


@pytest.mark.parametrize("stall", [0.0, 0.3])
def test_edges_of_pairs(units, stall):
    pairs = whole_beats(directed_pairs())
    compare(run(units, "add", pair_beats(pairs, 1), stall), numpy_add(pairs), *pairs.T)
    compare(run(units, "multiply", pair_beats(pairs), stall), numpy_multiply(pairs), *pairs.T)
    compare(run(units, "quotient", pair_beats(pairs, lanes=FEW), stall), numpy_quotient(pairs),
            *pairs.T)


@pytest.mark.parametrize("rows, calls", AMOUNTS)
def test_random_sums(units, rows, calls):
    for seed in range(calls):
        pairs = random_pairs(rows, 11 + seed)
        sums = run(units, "add", pair_beats(pairs, 1))
        compare(sums, numpy_add(pairs), *pairs.T)
        compare(sums.ravel()[::rows // SAMPLE], softfloat("add", *pairs[::rows // SAMPLE].T),
                *pairs[::rows // SAMPLE].T)


@pytest.mark.parametrize("rows, calls", AMOUNTS)
def test_random_products(units, rows, calls):
    for seed in range(calls):
        pairs = random_factors(rows, 21 + seed)
        products = run(units, "multiply", pair_beats(pairs))
        compare(products, numpy_multiply(pairs), *pairs.T)
        compare(products.ravel()[::rows // SAMPLE],
                softfloat("mul", *pairs[::rows // SAMPLE].T), *pairs[::rows // SAMPLE].T)


@pytest.mark.parametrize("rows, calls", AMOUNTS)
def test_random_ratios(units, rows, calls):
    for seed in range(calls):
        pairs = random_ratios(rows, 51 + seed)
        quotients = run(units, "quotient", pair_beats(pairs, lanes=FEW))
        compare(quotients, numpy_quotient(pairs), *pairs.T)
        compare(quotients.ravel()[::rows // SAMPLE],
                softfloat("div", *pairs[::rows // SAMPLE].T), *pairs[::rows // SAMPLE].T)


@pytest.mark.parametrize("rows, calls", AMOUNTS)
def test_random_roots(units, rows, calls):
    for seed in range(calls):
        operands = random_squares(rows, 61 + seed)
        compare(run(units, "root", operands.reshape(-1, FEW)), numpy_root(operands), operands)


@pytest.mark.slow
def test_every_root_of_two_exponents(units):
    """A root's significand depends on the operand's and on whether its exponent is even."""
    for exponent in (127, 128):
        operands = np.arange(exponent << 23, (exponent + 1) << 23, dtype=np.uint32)
        compare(run(units, "root", operands.reshape(-1, FEW)), numpy_root(operands), operands)


@pytest.mark.parametrize("stall", [0.0, 0.3])
def test_edges_of_codes(units, stall):
    operands = directed_codes()
    compare(run(units, "code", beats_of_codes(*operands), stall), fused_values(*operands),
            operands[0], *(np.repeat(each, LANES) for each in operands[1:]))


@pytest.mark.parametrize("rows, calls", AMOUNTS)
def test_random_codes(units, rows, calls):
    for seed in range(calls):
        operands = random_codes(rows // LANES, 71 + seed)
        compare(run(units, "code", beats_of_codes(*operands)), fused_values(*operands),
                operands[0], *(np.repeat(each, LANES) for each in operands[1:]))


@pytest.mark.slow
def test_every_code_of_many_pairs(units):
    """All 256 codes, in 16 beats, of each pair."""
    _, scale, bias = random_codes(20_000, 81)
    operands = (np.tile(np.arange(256, dtype=np.uint8).reshape(LANES, LANES), (len(scale), 1)),
                scale.repeat(LANES), bias.repeat(LANES))
    compare(run(units, "code", beats_of_codes(*operands)), fused_values(*operands),
            operands[0], *(np.repeat(each, LANES) for each in operands[1:]))


def divide(units, x: np.ndarray, n: np.ndarray) -> np.ndarray:
    return run(units, "divide", np.concatenate([x, n[:, None]], axis=1).astype(np.uint32))


def test_every_count(units):
    n = np.arange(1, 1 << 16, dtype=np.uint32)
    special = np.concatenate([SPECIAL, SPECIAL | np.uint32(1 << 31), n[:7919]])
    x = special[(7 * n[:, None] + np.arange(LANES)) % len(special)]
    compare(divide(units, x, n), numpy_divide(x, n), x, np.repeat(n, LANES))


@pytest.mark.parametrize("rows, calls", AMOUNTS)
def test_random_quotients(units, rows, calls):
    for seed in range(calls):
        x, n = random_quotients(rows // LANES, 31 + seed)
        quotients = divide(units, x, n)
        compare(quotients, numpy_divide(x, n), x, np.repeat(n, LANES))
        step = max(1, rows // SAMPLE) | 1
        count = np.repeat(n.astype(np.float32).view(np.uint32), LANES)
        compare(quotients.ravel()[::step],
                softfloat("div", x.ravel()[::step], count[::step]), x.ravel()[::step],
                count[::step])


@pytest.mark.parametrize("dimension", [16, 48])
@pytest.mark.parametrize("rows, calls", [
    pytest.param(100_000, 1, id="short"),
    pytest.param(500_000, 20, id="long", marks=pytest.mark.slow)])
def test_random_dot_products(units, rows, calls, dimension):
    rows //= dimension // LANES
    for seed in range(calls):
        a, b = random_vectors(rows, dimension, 41 + seed)
        # The result of the first call must not matter, so its rest is not zero.
        dots = np.full(rows, 0x40490FDB, dtype=np.uint32)
        for low in range(0, dimension, LANES):
            beats = np.zeros((rows, 2 * LANES + 2), dtype=np.uint32)
            beats[:, :LANES] = a[:, low:low + LANES]
            beats[:, LANES:2 * LANES] = b[:, low:low + LANES]
            beats[:, 2 * LANES], beats[:, 2 * LANES + 1] = dots, low == 0
            dots = run(units, "dot", beats).ravel()
        with np.errstate(all="ignore"):
            whole = dot_interaction(a.view(np.float32), b.view(np.float32)[:, None])
        compare(dots, canonical(np.ascontiguousarray(whole[:, dimension])))

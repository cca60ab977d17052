"""AdagradStep, bit for bit against numpy's float32: one row per cycle, results LATENCY later."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from amaranth.lib import data

from host.dlrm.optimizer import Optimizer
from rtl.float import RECIPROCAL_LATENCY, RECODED
from rtl.gradient.adagrad import ADAGRAD_STATE_CYCLE, AdagradStep
from tests.rtl.float.cases import NAN, SPECIAL, canonical, random_quotients, random_squares
from tests.rtl.float.drive import drive
from tests.support import made

LATENCY = AdagradStep.LATENCY["total and state", "new state and step"]
RATE, EPSILON = np.float32(0.1), np.float32(1e-8)
ANY_SIGN = np.concatenate([SPECIAL, SPECIAL | np.uint32(1 << 31)])


@dataclass
class Batch:
    """Consecutive rows with common settings: float32 totals and states."""

    dimension: int
    totals: np.ndarray
    states: np.ndarray
    rate: np.float32 = RATE
    epsilon: np.float32 = EPSILON

    def expected(self):
        """Return the bits of the expected new states and steps."""
        with np.errstate(all="ignore"):
            states = self.states + self.totals / np.float32(self.dimension)
            steps = self.rate / (np.sqrt(states) + self.epsilon)
        assert states.dtype == steps.dtype == np.float32
        return canonical(states), canonical(steps)


def plain(recoded):
    """Return the bits of the binary32 for a :data:`RECODED`."""
    fields = data.Const(RECODED, recoded)
    sign = fields.sign << 31
    if fields.nan:
        return NAN
    if fields.infinite:
        return sign | 0x7F800000
    if fields.exponent == -256:
        return sign
    value = np.float32(math.ldexp((1 << 23) + fields.fraction, fields.exponent + 64 - 150))
    return sign | int(value.view(np.uint32))


def computed(batches):
    """Return the bits of (states, steps) of each batch, one row per cycle.

    The dimension of a batch is stable for the least allowed time before its first row. Other
    settings change after the rows before it have left. Rows in between are not part of a batch.
    """
    columns: dict[str, list[int]] = {name: [] for name in (
        "total", "state", "dimension", "learning_rate", "epsilon")}
    starts, lead = [], RECIPROCAL_LATENCY
    for batch in batches:
        count = len(batch.totals)
        starts.append(len(columns["total"]) + lead)
        for name, values in (("total", batch.totals), ("state", batch.states)):
            columns[name] += [0xBADBAD] * lead + values.view(np.uint32).tolist()
            columns[name] += [0xBADBAD] * LATENCY
        for name, value in (("dimension", batch.dimension),
                            ("learning_rate", int(batch.rate.view(np.uint32))),
                            ("epsilon", int(batch.epsilon.view(np.uint32)))):
            columns[name] += [value] * (lead + count + LATENCY)
    results = drive(made(AdagradStep), LATENCY, columns, {"state": ADAGRAD_STATE_CYCLE},
                    ("new_state", "step"))
    parts = [results[start:start + len(batch.totals)] for start, batch in zip(starts, batches)]
    return [(np.array([state for state, _ in part], np.uint32),
             np.array([plain(step) for _, step in part], np.uint32)) for part in parts]


def check(batches):
    for batch, found in zip(batches, computed(batches), strict=True):
        for name, got, wanted in zip(("state", "step"), found, batch.expected(), strict=True):
            for k in np.flatnonzero(got != wanted)[:3]:
                pytest.fail(
                    f"{name} of total {batch.totals[k]!r}, state {batch.states[k]!r}, dimension "
                    f"{batch.dimension}: {got[k]:08x}, not {wanted[k]:08x}")


def of_training(count, seed):
    """Return totals and states of typical sizes in training; some rows are new."""
    rng = np.random.default_rng(seed)
    totals, states = (np.ldexp(rng.random(count), rng.integers(low, high, count)).astype(np.float32)
                      for low, high in ((-24, 6), (-20, 10)))
    states[rng.random(count) < 0.25] = 0
    totals[rng.random(count) < 0.1] = 0
    return totals, states


def test_rows_of_training():
    """Dimensions from one value to the most, a power of two or not."""
    check([Batch(dimension, *of_training(60, dimension))
           for dimension in (1, 3, 4, 16, 48, 100, 255, 256)])


def test_the_mean_is_rounded_once():
    """Totals at or next to a tie of their division; a new row keeps the quotient as it is."""
    totals, counts = random_quotients(120, 4)
    kept = np.flatnonzero(counts <= 256)[:14]
    assert len(kept) == 14
    check([Batch(int(counts[k]), totals[k].view(np.float32), np.zeros(16, np.float32))
           for k in kept])


def test_states_next_to_squares():
    """Roots that are hard to round, and steps of divisors from the smallest to the largest."""
    roots = random_squares(200, 6).view(np.float32)
    zero = np.zeros(200, np.float32)
    check([Batch(1, roots, zero, epsilon=np.float32(0)), Batch(7, zero, roots),
           Batch(64, zero, roots, np.float32(3e38), np.float32(1e-40))])


def test_special_values():
    """Zeros, subnormals, infinities and NaN of both signs, in every port."""
    rng = np.random.default_rng(8)
    infinite = np.float32(np.inf)
    batches = []
    for k, (rate, epsilon) in enumerate([
            (RATE, np.float32(0)), (np.float32(-0.0), np.float32(1e-45)), (infinite, EPSILON),
            (np.float32(np.nan), EPSILON), (np.float32(-3e38), infinite)]):
        totals, states = (ANY_SIGN[rng.integers(0, len(ANY_SIGN), 70)] for _ in range(2))
        states[::5] = 0
        batches.append(Batch(1 + 50 * k, totals.view(np.float32), states.view(np.float32), rate,
                             epsilon))
    expected = np.concatenate([word for batch in batches for word in batch.expected()])
    assert {0x00000000, 0x7F800000, NAN} < set(expected.tolist())
    check(batches)


@pytest.mark.parametrize("rate, epsilon", [(RATE, EPSILON), (np.float32(0.02), np.float32(1e-3))])
def test_as_the_host_updates_a_row(rate, epsilon):
    """Of a gradient of one value g the sum is g * g, and a row of zeros becomes -step * g."""
    dimension, rng = 48, np.random.default_rng(5)
    values = np.ldexp(rng.standard_normal(50), rng.integers(-12, 3, 50)).astype(np.float32)
    states = of_training(50, 3)[1]
    gradients = np.zeros((50, dimension), np.float32)
    gradients[:, 17] = values
    rows, expected = Optimizer("rowwise-adagrad", float(rate), float(epsilon)).apply(
        np.zeros_like(gradients), states, gradients)
    (found, steps), = computed([Batch(dimension, values * values, states, rate, epsilon)])
    np.testing.assert_array_equal(found, expected.view(np.uint32))
    np.testing.assert_array_equal((0 - steps.view(np.float32) * values).view(np.uint32),
                                  rows[:, 17].view(np.uint32))

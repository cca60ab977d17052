"""GradientReducer with sums in float32: whole where nothing is rounded, within the bound of
rounding otherwise, and the rate of the exact sums."""

from collections import defaultdict

import numpy as np
import pytest

from host.dlrm.exact import exact_sums, nearest
from rtl.gradient import GradientReducer
from tests.rtl.gradient.reducing import (
    Item,
    Play,
    check,
    key_of,
    numbered,
    power_law,
    shuffled,
    vectors_of,
)
from tests.rtl.gradient.test_reducer_rates import BEATS, NUMBERS, beats_per_cycle
from tests.support import made

FLOAT32 = {"gradient_sums": "float32"}
UNIT = 2.0 ** -24
"""Largest relative error of an addition."""


def whole(items: list[Item], seed: int) -> list[Item]:
    """Return ``items`` with small integers as values, of one lane."""
    values = np.random.default_rng(seed).integers(-99, 100, len(items)).astype(np.float32)
    return [(key, place, bits)
            for (key, place, _), bits in zip(items, values.view(np.uint32).tolist())]


@pytest.mark.few(2)
@pytest.mark.parametrize("split, rounded, beats, stall", [
    (False, True, 1, 0.4), (True, False, 3, 0.2), (True, True, 2, 0.0), (False, True, 4, 0.0)])
def test_whole_numbers_add_up_in_any_order(split, rounded, beats, stall):
    """More keys than places, so beats are passed on and return."""
    steps = [whole(shuffled(vectors_of(power_law(40, 20, step), beats, 1, ["gaussian"], step),
                            step, 0.8), step) for step in range(2)]
    dut = made(GradientReducer, 8, 4, beats=beats, split=split, lanes=1, **FLOAT32)
    play = Play(dut, steps, rounded=rounded, stalls=(stall, stall))
    check(play, keys=8, ways=4, beats=beats, rounded=rounded)
    assert len(play.passes) > 2


def test_rounding_stays_within_its_bound():
    """n terms in any order: at most (n - 1) units of the sum of magnitudes, and a bit more."""
    items = vectors_of(power_law(300, 12, 1), 1, 1, ["gaussian"], 7)
    play = Play(made(GradientReducer, 64, 8, split=False, lanes=1, **FLOAT32), [items])
    terms, differ = defaultdict(list), 0
    for key, _, bits in items:
        terms[numbered(key_of(key))].append(bits)
    taken = {numbered(item["key"]): item["data"] for item in play.passes[0].taken}
    assert taken.keys() == terms.keys()
    for key, bits in taken.items():
        values = np.array(terms[key], np.uint32).view(np.float32)
        right = nearest(exact_sums(values[:, None])[0])
        differ += right != bits
        error, total = (np.uint32([bits, right]).view(np.float32).astype(np.float64),
                        np.abs(values.astype(np.float64)).sum())
        assert abs(error[0] - error[1]) <= (len(values) + 1) * UNIT * total
    assert differ > 0, "the terms must need rounding"


@pytest.mark.few(3)
@pytest.mark.parametrize("numbers", ["100 %", "50 %", "1 %", "power law", "two in turn", "one set"])
def test_beats_per_cycle(numbers):
    items = vectors_of(NUMBERS[numbers], 1, 1, ["gaussian"], 1)
    rate, passed = beats_per_cycle(items, keys=64, ways=8, split=False, **FLOAT32)
    assert rate >= 0.97
    if numbers == "one set":
        assert passed == BEATS - 8 * (BEATS // 40)


def test_unknown_sums():
    with pytest.raises(ValueError, match="gradient_sums must be exact or float32, not 'double'"):
        GradientReducer(16, 4, split=True, gradient_sums="double")

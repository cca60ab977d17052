"""Values are numbered as by a dictionary, in any order of arrival, within the stated memory."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.data.readers.first_seen import FirstSeen


def plain(values):
    """Number values as facebookresearch/dlrm does."""
    numbers: dict[int, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values]


@given(st.lists(st.lists(st.one_of(st.integers(0, 5), st.integers(0, (1 << 32) - 1)))))
def test_numbers_are_those_of_a_dictionary(parts):
    seen = FirstSeen()
    found = [number for part in parts for number in seen.numbers(np.array(part, np.uint32))]
    values = [value for part in parts for value in part]
    assert found == plain(values) and len(seen) == len(set(values))


@pytest.mark.parametrize("spread", [1, 4096, 1 << 20])
def test_tables_that_grow(spread):
    # Consecutive values, and values with equal low bits.
    values = np.random.default_rng(spread).integers(0, (1 << 32) // spread, 20_000) * spread
    seen = FirstSeen()
    found = np.concatenate([seen.numbers(part.astype(np.uint32))
                            for part in np.split(values, [1, 900, 901, 7000])])
    assert found.tolist() == plain(values.tolist())


def test_a_value_takes_the_memory_that_is_said():
    values = np.random.default_rng(1).integers(0, 1 << 32, 1 << 20, np.uint32)
    tracemalloc.start()
    seen = FirstSeen()
    for part in np.split(values, 256):
        seen.numbers(part)
    held, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Memory peaks when half of the final number of values lets the table grow.
    assert held <= 32 * len(seen) and most <= 44 * len(seen)

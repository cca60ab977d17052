"""The reorder buffer releases values when all lower numbers have arrived."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sim.run.reorder import ReorderBuffer


@given(st.permutations(range(5, 30)), st.lists(st.integers(1, 6), min_size=25, max_size=25))
def test_values_are_released_as_soon_as_possible(numbers, sizes):
    buffer, given_, released = ReorderBuffer(5), set(), []
    for size in sizes:
        part, numbers = numbers[:size], numbers[size:]
        released += buffer.add(np.array(part, np.int64), np.array(part, np.float32) / 2).tolist()
        given_ |= set(part)
        following = next(number for number in range(5, 31) if number not in given_)
        assert buffer.next == following
        assert released == [number / 2 for number in range(5, following)]
        assert buffer.held.tolist() == [number / 2 for number in sorted(given_)
                                        if number > following]
    assert len(released) == 25

"""The order of pairs against the loops that define it."""

import pytest

from rtl.interaction.pairs import pair, pair_count, pair_groups


@pytest.mark.parametrize("vectors", [1, 2, 3, 22, 27, 64])
def test_order_and_number(vectors):
    apart = [(i, j) for i in range(vectors) for j in range(i)]
    itself = [(i, j) for i in range(vectors) for j in range(i + 1)]
    assert [pair(k) for k in range(pair_count(vectors))] == apart
    assert [(i - 1, j) for i, j in map(pair, range(pair_count(vectors, itself=True)))] == itself
    for units in (1, 2, 11, 13, 16):
        assert pair_groups(vectors, units) == len(range(0, len(apart), units))

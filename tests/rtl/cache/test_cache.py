"""EmbeddingCache against a scoreboard: answers, counters and LRU, under stalls and any fill order."""

import random

import pytest

from .driver import check_lru, make, run

SIZES = [
    # rows, ways, in_flight, waiters, largest vector, beats now, sets in use
    (32, 4, 16, 32, 1, 1, None),
    (32, 4, 16, 32, 3, 3, None),
    (64, 8, 8, 8, 3, 1, 5),
    (24, 4, 4, 4, 2, 2, None),
    (8, 1, 8, 16, 1, 1, 7),
    (32, 2, 16, 16, 1, 1, 1),
    (32, 16, 2, 2, 2, 2, None),
]
STALLS = [(0.0, 0.0, 0.0, 0.0), (0.3, 0.3, 0.3, 0.3), (0.0, 0.7, 0.0, 0.0), (0.0, 0.0, 0.7, 0.5)]


def skewed(count: int, population: int, seed: int) -> list[int]:
    """Return keys of which few come often, with runs of one key among them."""
    rng = random.Random(seed)
    names = [rng.getrandbits(48) for _ in range(population)]
    keys: list[int] = []
    while len(keys) < count:
        key = names[min(int(rng.paretovariate(0.7)) - 1, population - 1)]
        keys += [key] * rng.choice((1, 1, 1, 2, 5))
    return keys[:count]


@pytest.mark.parametrize("stalls", STALLS)
@pytest.mark.parametrize("size", SIZES, ids=lambda s: "-".join(map(str, s)))
def test_every_lookup_is_answered(size, stalls):
    rows, ways, in_flight, waiters, largest, beats, sets = size
    dut = make(rows=rows, ways=ways, in_flight=in_flight, waiters=waiters, vector_beats=largest)
    result = run(dut, skewed(250, 100, seed=rows), sets=sets, beats=beats, stalls=stalls,
                 seed=ways)
    check_lru(result, sets or rows // ways, ways)
    assert result.counters["hits"] > result.counters["hits_pending"] > 0

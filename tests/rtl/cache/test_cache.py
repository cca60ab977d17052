"""EmbeddingCache against a scoreboard: answers, counters and LRU, under stalls, fills any order."""

import random

import pytest

from rtl.cache import EmbeddingCache
from rtl.config import POLICY_CODES
from rtl.keys.hashing import hash_bits
from tests.rtl.cache.driver import check_decisions, make, run

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
    """Return skewed keys, with runs of one key among them."""
    rng = random.Random(seed)
    names = [rng.getrandbits(48) for _ in range(population)]
    keys: list[int] = []
    while len(keys) < count:
        key = names[min(int(rng.paretovariate(0.7)) - 1, population - 1)]
        keys += [key] * rng.choice((1, 1, 1, 2, 5))
    return keys[:count]


# Every size meets two of the four stall patterns, every pattern half of the sizes.
@pytest.mark.thorough
@pytest.mark.few(5)
@pytest.mark.parametrize("size, stalls", [
    (size, STALLS[(n + k) % 4]) for n, size in enumerate(SIZES) for k in (0, 1)],
    ids=lambda s: "-".join(map(str, s)))
def test_every_lookup_is_answered(size, stalls):
    rows, ways, in_flight, waiters, largest, beats, sets = size
    dut = make(rows=rows, ways=ways, in_flight=in_flight, waiters=waiters, vector_beats=largest)
    result = run(dut, skewed(250, 100, seed=rows), sets=sets, beats=beats, stalls=stalls,
                 seed=ways)
    check_decisions(result, sets or rows // ways, ways)
    assert result.counters["hits"] > result.counters["hits_pending"] > 0


@pytest.mark.thorough
def test_hits_are_those_of_a_textbook_lru():
    rng = random.Random(3)
    keys = [int(rng.paretovariate(0.4)) % 500 for _ in range(900)]
    result = run(make(rows=128, ways=8), keys, sets=11, latency=(1, 4))
    assert result.counters["conflict_misses"] == 0
    assert result.counters["evictions"] > 50
    check_decisions(result, 11, 8)


def test_disabled_cache_fetches_each_lookup():
    keys = skewed(150, 20, seed=8)
    result = run(make(), keys, enable=0, stalls=STALLS[1])
    assert result.fetched == keys


def test_bad_fills_change_nothing():
    for beats in (1, 3):
        result = run(make(vector_beats=3), skewed(120, 60, seed=beats), beats=beats, bad_rate=0.5)
        assert result.bad > 20
        check_decisions(result, 8, 4)


@pytest.mark.parametrize("cycles", [30, 113])
def test_reset_in_full_work_leaves_no_trace(cycles):
    keys = skewed(150, 50, seed=cycles)
    result = run(make(vector_beats=2), keys, beats=2, reset_at=cycles)
    check_decisions(result, 8, 4)


def test_lanes_that_are_not_kept_are_given_out_as_zero():
    result = run(make(store_bits=128), skewed(120, 60, seed=4), stalls=STALLS[1])
    check_decisions(result, 8, 4)


def test_a_cache_larger_than_its_table_misses_each_key_once():
    keys = [key for _ in range(8) for key in random.Random(1).sample(range(1 << 48), 16)]
    result = run(make(rows=32, ways=16), keys, sets=1, stalls=STALLS[1])
    assert result.counters["misses"] == 16 and result.counters["evictions"] == 0


def test_conflict_misses_are_those_that_meet_a_pending_way():
    """Six keys for four ways while nothing comes back: the last two and their repeats conflict."""
    keys = [1, 2, 3, 4, 5, 6, 5, 1, 6, 4]
    result = run(make(), keys, sets=1, latency=(500, 500))
    conflicts = [entry[3] for entry in result.tap]
    assert conflicts == [0, 0, 0, 0, 1, 1, 1, 0, 1, 0]
    assert result.counters["hits_pending"] == 2 and result.counters["misses"] == 8


@pytest.mark.thorough
@pytest.mark.parametrize("beats", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_a_row_is_not_replaced_while_a_read_of_it_waits(beats):
    """Runs of hits on the only row, then its eviction, whose vector comes back at once."""
    rng = random.Random(beats)
    keys = [key for n in range(26) for key in [n % 5] * rng.randint(1, 30)]
    dut = make(rows=2, ways=1, vector_beats=beats)
    result = run(dut, keys, sets=1, beats=beats, latency=(0, 0), stalls=(0.1, 0.6, 0.0, 0.0))
    assert result.counters["evictions"] > 20
    assert result.counters["hits"] > result.counters["hits_pending"]
    check_decisions(result, 1, 1)


@pytest.mark.parametrize("settings, sets, beats", [
    ({"sets": 0, "vector_beats": 0}, 1, 1), ({"sets": 7, "vector_beats": 3}, 5, 2)])
def test_settings_out_of_range_stand_for_the_nearest(settings, sets, beats):
    dut = make(rows=20, vector_beats=2)
    result = run(dut, skewed(80, 40, seed=5), beats=beats, settings=settings)
    check_decisions(result, sets, 4)


@pytest.mark.parametrize("name, value, message", [
    ("ways", 3, "ways must be a power of two, not 3"),
    ("in_flight", 12, "in_flight must be a power of two, not 12"),
    ("rows", 30, r"rows must be a multiple of ways \(4\), at least twice, not 30"),
    ("rows", 4, "rows must be a multiple"), ("waiters", 1, "waiters must be at least 2, not 1"),
    ("vector_beats", 0, "vector_beats must be at least 1, not 0"),
    ("in_flight", 1 << 17, "in_flight must be at most 65536, not 131072"),
    ("policy", "belady", f"policy must be one of {', '.join(POLICY_CODES)}, not 'belady'")])
def test_sizes_are_checked(name, value, message):
    with pytest.raises(ValueError, match=message):
        make(**{name: value})


def test_sizes_are_integers():
    with pytest.raises(TypeError, match="rows must be an integer, not '32'"):
        EmbeddingCache(48, 16, rows="32", ways=4, in_flight=4, waiters=4, vector_beats=1,
                       hash_key=hash_bits)


# A requester's cache with its two settings; both on and both off are tested above.


# Vectors of one beat meet two patterns of stalls, vectors of three beats the other two.
SHARED = pytest.mark.parametrize("beats, stalls", [
    (1, STALLS[1]), (1, STALLS[2]), (3, STALLS[0]), (3, STALLS[3]), *(
        pytest.param(beats, STALLS[k], marks=pytest.mark.slow)
        for beats, k in ((1, 0), (1, 3), (3, 1), (3, 2)))],
    ids=lambda s: "-".join(map(str, s)) if isinstance(s, tuple) else s)


@pytest.mark.few(1, "thorough")
@SHARED
def test_without_merge_a_key_on_its_way_travels_again(stalls, beats):
    keys = skewed(250, 60, seed=beats)
    result = run(make(rows=32, ways=4, vector_beats=3), keys, beats=beats, merge=0, stalls=stalls)
    check_decisions(result, 8, 4)
    assert result.counters["unmerged"] > 10
    assert result.counters["hits"] > 10


@pytest.mark.few(1, "thorough")
@SHARED
def test_merge_alone_serves_what_waits_and_nothing_later(stalls, beats):
    keys = skewed(250, 60, seed=beats)
    result = run(make(rows=32, ways=4, vector_beats=3), keys, beats=beats, enable=0, merge=1,
                 stalls=stalls)
    check_decisions(result, 8, 4, enable=0)
    assert result.counters["hits_pending"] > 10
    assert result.counters["misses"] > 2 * len(set(keys))


def test_merge_alone_is_exact_when_lookups_come_far_apart():
    """A key is asked for again once its vector has arrived, in its own way: none is put out."""
    keys = [5, 6, 7, 8] * 12
    result = run(make(), keys, sets=1, enable=0, merge=1, latency=(0, 0),
                 stalls=(0.97, 0.0, 0.0, 0.0))
    assert result.fetched == keys
    assert result.counters["evictions"] == result.counters["hits"] == 0


def test_merge_alone_sends_a_key_once_while_it_is_on_its_way():
    keys = [1, 2, 1, 1, 3, 2, 3, 4, 4, 1]
    result = run(make(), keys, sets=1, enable=0, merge=1, latency=(600, 600))
    assert sorted(result.fetched) == [1, 2, 3, 4]
    assert result.counters["hits_pending"] == 6


def test_without_merge_each_lookup_on_its_way_is_sent():
    keys = [1, 2, 1, 1, 3, 2, 3, 4, 4, 1]
    result = run(make(), keys, sets=1, merge=0, latency=(600, 600))
    assert result.fetched == keys
    assert result.counters["unmerged"] == 6 and result.counters["evictions"] == 0

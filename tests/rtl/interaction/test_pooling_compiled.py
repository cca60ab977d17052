"""Pooler on the compiled engine: many bags bit for bit, and rates at many bag lengths."""

import random

import numpy as np
import pytest

from rtl.config import preset
from rtl.interaction import Pooler
from sim.engines import load
from tests.rtl.interaction.bags import pooled_beats, random_samples, slot_beats


@pytest.fixture(scope="module")
def pooler():
    return load(Pooler(preset("tiny")), "pooler")


def words(items: list[dict], fields: list[tuple[str, int]], count: int) -> np.ndarray:
    """Return ``items`` as words, the fields packed from the lowest bit on."""
    packed = bytearray()
    for item in items:
        value, at = 0, 0
        for name, bits in fields:
            value |= item[name] << at
            at += bits
        packed += value.to_bytes(4 * count, "little")
    return np.frombuffer(bytes(packed), dtype="<u4").reshape(-1, count)


def run(pooler, samples, beats, *, stall=0.0, mean=False):
    """Check the pooled vectors; return beats per cycle from the first beat to the last sum."""
    items, expected = slot_beats(samples, beats), pooled_beats(samples, beats, mean=mean)
    engine = pooler.instance(random_init=beats)
    engine.set_signal("vector_beats", beats)
    engine.set_signal("mean", int(mean))
    if stall:
        engine.set_stall("i", 3, stall)
        engine.set_stall("o", 4, stall)
    engine.push("i", words(items, [("data", 512), ("kind", 2), ("sample", 32), ("step", 16),
                                   ("beat_last", 1), ("sample_last", 1)], 18))
    engine.run(20 * len(items) + 3000)
    sums, cycles = engine.pop("o")
    right = words(expected, [("data", 512), ("beat_last", 1), ("bag_last_of_sample", 1),
                             ("sample", 32), ("step", 16)], 18)
    assert len(sums) == len(expected)
    wrong = np.flatnonzero((sums != right).any(axis=1))
    assert not len(wrong), f"sum {wrong[0]} of {len(right)} differs"
    return len(items) / int(cycles[-1] + 1)


@pytest.mark.thorough
@pytest.mark.few(6)
@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("beats", [1, 2, 3, 4])
@pytest.mark.parametrize("mean", [False, True])
def test_many_bags(pooler, beats, stall, mean):
    rng = random.Random(beats)
    sizes = [[rng.choice((0, 1, 1, 2, 7, rng.randrange(100))) for _ in range(8)]
             for _ in range(40)]
    run(pooler, random_samples(beats, sizes, beats), beats, stall=stall, mean=mean)


@pytest.mark.thorough
@pytest.mark.few(10)
@pytest.mark.parametrize("beats", [1, 4])
@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("keys", [0, 1, 2, 3, 8, 50, 100])
def test_a_beat_a_cycle_at_any_bag_length(pooler, beats, keys, mean):
    slots = 16_000 // beats
    samples = random_samples(keys, [[keys] * 10] * (slots // (10 * max(1, keys)) + 1), beats)
    assert run(pooler, samples, beats, mean=mean) >= 0.95


@pytest.mark.thorough
@pytest.mark.parametrize("beats, longest", [(1, 10), (1, 100), (3, 30), (4, 100)])
def test_rate_of_mixed_bag_lengths(pooler, beats, longest):
    """Long and short bags in turn: short ones wait for their turn to leave behind long ones."""
    rng = random.Random(longest)
    sizes = [[rng.randrange(1, longest + 1) for _ in range(10)]
             for _ in range(6400 // (longest * beats))]
    assert run(pooler, random_samples(1, sizes, beats), beats, mean=True) >= 0.95

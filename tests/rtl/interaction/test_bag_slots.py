"""Slots of bags that their owner has pooled, from the hold buffer to the pooled vectors."""

import random
from itertools import pairwise

import numpy as np
import pytest

from rtl.config import preset
from rtl.formats import RecordKind
from rtl.interaction import HoldBuffer, Pooler
from tests.rtl.interaction.bags import pooled_beats, random_samples, slot_beats
from tests.rtl.power_up import powered_up
from tests.support import counts_of, made, receiver, sender, simulate

KINDS = (RecordKind.KEY, RecordKind.KEY_END, RecordKind.EMPTY)


def config(beats=1, bags=16):
    return preset("tiny").with_fields(
        max_dimension=16 * beats, hold_vectors=16, owner_bags=bags)


def random_slots(rng, number, beats):
    """Return slots of keys, empty bags and pooled bags, whose vectors have up to ``beats``."""
    slots = []
    for _ in range(number):
        pooled = rng.random() < 0.5
        slots.append({"kind": int(RecordKind.KEY_END if pooled else rng.choice(KINDS)),
                      "sample": rng.getrandbits(32), "step": rng.getrandbits(16),
                      "last": rng.getrandbits(1), "keys": rng.getrandbits(16) if pooled else 0,
                      "mean": rng.getrandbits(1) if pooled else 0,
                      "final_beat": rng.randrange(beats) if pooled else beats - 1})
    return slots


@pytest.mark.parametrize("beats, stall", [(1, 0.0), (2, 0.4), (4, 0.0)])
def test_the_hold_buffer_keeps_the_keys_of_a_bag(beats, stall):
    """Every beat has the keys and the mean bit of its slot; an EMPTY slot has beats too. Beats of
    +0 follow the vector of a bag; a vector of another size is dropped."""
    dut, rng = made(HoldBuffer, config(beats)), random.Random(beats)
    slots, taken, waiting, bad = random_slots(rng, 200, beats), [], [], []
    vectors = [[0 if slot["kind"] == RecordKind.EMPTY or n > slot["final_beat"]
                else rng.getrandbits(512) for n in range(beats)] for slot in slots]

    async def reserve(ctx):
        ctx.set(dut.vector_beats, beats)
        for k, slot in enumerate(slots):
            ctx.set(dut.reserve.payload, slot)
            ctx.set(dut.reserve.valid, 1)
            await ctx.tick().until(dut.reserve.ready)
            ctx.set(dut.reserve.valid, 0)
            if slot["kind"] != RecordKind.EMPTY:
                waiting.append(k)

    async def land(ctx):
        for _ in range(sum(slot["kind"] != RecordKind.EMPTY for slot in slots)):
            while not waiting or rng.random() < stall:
                await ctx.tick()
            k = waiting.pop(rng.randrange(len(waiting)))
            size = slots[k]["final_beat"] + 1
            if rng.random() < 0.3:
                wrong = rng.choice([n for n in range(1, beats + 2) if n != size])
                bad.append(wrong)
                await vector(ctx, k, [rng.getrandbits(512) for _ in range(wrong)])
            await vector(ctx, k, vectors[k][:size])
        await ctx.tick().repeat(6)
        assert ctx.get(dut.counters.bad_landings) == len(bad)

    async def vector(ctx, k, data):
        for n, beat in enumerate(data):
            ctx.set(dut.remote.payload, {"tag": k % 16, "data": beat,
                                         "last": int(n == len(data) - 1)})
            ctx.set(dut.remote.valid, 1)
            await ctx.tick()
        ctx.set(dut.remote.valid, 0)

    simulate(powered_up(dut), reserve, land,
             receiver(dut.o, taken, len(slots) * beats, stall=stall))
    assert taken == [
        {"data": beat, "kind": slot["kind"], "sample": slot["sample"], "step": slot["step"],
         "beat_last": int(n == beats - 1), "sample_last": slot["last"], "lost": 0,
         **{name: slot[name] for name in ("keys", "mean")}}
        for slot, vector in zip(slots, vectors) for n, beat in enumerate(vector)]


def divided(vector, keys):
    """Return a vector of float32 bits, divided by float32 ``keys``; NaN is 0x7FC00000."""
    with np.errstate(all="ignore"):
        mean = vector.view(np.float32) / np.float32(keys)
    return np.where(np.isnan(mean), np.uint32(0x7FC00000), mean.view(np.uint32))


def pool(seed, sizes, beats, mean, stall=0.0):
    """Pool samples in which some bags of one vector were pooled by their owner.

    mean: whether the bags pool to their mean; None: as the mean bit of their last slot says.
    """
    dut, rng = made(Pooler, config(beats), queue_beats=64), random.Random(seed)
    samples = random_samples(seed, sizes, beats, bits=True)
    for _, _, bags in samples:
        for vectors in bags:
            vectors[:, :3] = vectors[:, :3] & 0x80FFFFFF | 0x7F000000  # NaN, and large numbers
    items = [item | {"keys": 0, "mean": 0} for item in slot_beats(samples, beats)]
    expected, means = (pooled_beats(samples, beats, mean=bool(divides))
                       for divides in (mean, True))
    taken, counters, pooled = [], {}, 0
    for number, (vectors, beat) in enumerate(bags_of(samples, beats)):
        divides, last = mean, beat + max(1, len(vectors)) * beats
        if mean is None:
            for item in items[beat:last]:
                item["mean"] = rng.getrandbits(1)
            divides = rng.getrandbits(1)
            for n in range(1, beats + 1):
                items[last - n]["mean"] = divides
            if divides:
                expected[number * beats:(number + 1) * beats] = means[
                    number * beats:(number + 1) * beats]
        if len(vectors) != 1 or rng.random() < 0.3:
            continue
        keys = rng.choice([3, 100, 65535, 1 << rng.randrange(16), rng.randrange(1, 1 << 16)])
        pooled += 1
        for n in range(beats):
            items[beat + n] |= {"keys": keys} | (
                {} if mean is None else {"mean": rng.getrandbits(1)})
        if divides:
            words = divided(vectors[0], keys).reshape(beats, 16)
            for n in range(beats):
                expected[number * beats + n]["data"] = int.from_bytes(
                    words[n].tobytes(), "little")
    assert pooled > 5

    async def feed(ctx):
        ctx.set(dut.vector_beats, beats)
        ctx.set(dut.mean, rng.getrandbits(1) if mean is None else mean)
        ctx.set(dut.by_table, mean is None)
        await sender(dut.i, items, stall=stall, seed=seed)(ctx)

    async def take(ctx):
        await receiver(dut.o, taken, len(expected), stall=stall, seed=seed + 1)(ctx)
        await ctx.tick().repeat(40)
        assert ctx.get(dut.idle)
        counters.update(counts_of(ctx, dut.counters))

    simulate(powered_up(dut, seed), feed, take)
    assert taken == expected
    assert counters["adds"] == len(items) - len(expected)


def bags_of(samples, beats):
    """Yield the vectors of each bag, and the number of its first beat."""
    beat = 0
    for _, _, bags in samples:
        for vectors in bags:
            yield vectors, beat
            beat += max(1, len(vectors)) * beats


@pytest.mark.few(1, "thorough")
@pytest.mark.parametrize("beats, mean, stall", [
    (1, False, 0.3), (1, True, 0.0), (4, False, 0.0), (2, True, 0.4), (1, None, 0.0),
    (2, None, 0.3)])
def test_a_pooled_bag_passes_and_a_mean_divides_by_its_keys(beats, mean, stall):
    """The sum of a bag that its owner pooled keeps every bit; its mean is one division by its
    number of keys. Bags of keys beside it divide by their vectors. Sums keep their order beside
    means."""
    rng = random.Random(beats)
    pool(beats, [[rng.choice((1, 1, 1, 0, 2, 3)) for _ in range(8)] for _ in range(6 // beats + 2)],
         beats, mean, stall)


def test_keys_of_bags_in_flight_are_kept_apart():
    """More bags than numbers of bags: each keeps its own keys, next to long bags of keys."""
    pool(7, [[1] * 40 + [30] + [1] * 90], 1, True)


def test_layouts_without_bags_are_as_before():
    plain, bags = (Pooler(config(bags=number)).i.payload.shape() for number in (0, 16))
    assert bags.size == plain.size + 17 and set(plain.members) < set(bags.members)
    for number, (one, two) in zip((0, 16), pairwise((plain, bags, plain))):
        assert HoldBuffer(config(bags=number)).o.payload.shape() == one != two

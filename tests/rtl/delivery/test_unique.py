"""UniqueFinder against numpy.unique and Python sets, under random stalls."""

import random

import numpy as np
import pytest

from host.data.generator import generate
from host.model import MODELS
from host.placement.sets import set_of
from host.samples import concatenate
from rtl.config import preset
from rtl.delivery import UniqueFinder
from rtl.formats import RecordKind
from rtl.keys.hash_columns import key_hash
from tests.mutants import variant
from tests.rtl.delivery.slots import EMPTY, Table, end_of, key_of, slots_of, some_keys
from tests.rtl.power_up import powered_up
from tests.support import a_bit_apart, counts_of, made, quiet_while_idle, receiver, sender, simulate

TO_O = UniqueFinder.LATENCY["slot", "the same slot on o"]
TO_INDEX = UniqueFinder.LATENCY["slot", "its index"]
STALLS = [(0.0, 0.0, 0.0), (0.4, 0.0, 0.0), (0.0, 0.5, 0.0), (0.0, 0.0, 0.5), (0.3, 0.3, 0.3)]

SHORT_LAPS = variant(UniqueFinder, EPOCH_BITS=2)
"""A finder that sweeps after 4 steps."""

FEW_INDICES = variant(UniqueFinder, NO_INDEX=20)
"""A finder whose steps have 20 indices."""


def build(keys=64, kind=UniqueFinder):
    return made(kind, preset("tiny").with_fields(unique_keys=keys))


class Run:
    """Slots through a finder, and the finder's results, in ``table``.

    Members: ``came``, ``sent``, ``told``, cycles in which slots entered and left, and their indices
        left.
    """

    def __init__(self, dut, slots, keys=64, stalls=STALLS[0], limit=0xFFFE, laps=1 << 10):
        self.table = table = Table(keys, limit)
        for slot in slots:
            table.add(slot)
        self.came, self.sent, self.told = [], [], []
        out: list[dict] = []
        indices: list[dict] = []
        ports = (dut.i, dut.o, dut.indices)

        async def feed(ctx):
            ctx.set(dut.enable, 1)
            for number, slot in enumerate(slots):
                await sender(dut.i, [slot], stall=stalls[0], seed=number)(ctx)

        async def feed_at_once(ctx):
            ctx.set(dut.enable, 1)
            while not ctx.get(dut.idle):
                await ctx.tick()
            await sender(dut.i, slots)(ctx)

        async def watch(ctx):
            cycle = 0
            async for _, _, came, sent, told in ctx.tick().sample(*(
                    port.valid & port.ready for port in ports)):
                self.came += [cycle] * came
                self.sent += [cycle] * sent
                self.told += [cycle] * told
                cycle += 1

        async def finish(ctx):
            await receiver(dut.indices, indices, len(slots), stall=stalls[2], seed=5)(ctx)
            while len(out) < len(table.sent) or not ctx.get(dut.idle):
                await ctx.tick()
            for _ in range(8):
                assert not ctx.get(dut.o.valid) and not ctx.get(dut.indices.valid)
                await ctx.tick()
            found = counts_of(ctx, dut.counters)
            stalled = found.pop("stall_output"), found.pop("stall_sweep")
            assert any(stalls[1:]) == (stalled[0] > 0)
            assert (found["sweeps"] > 0) == (stalled[1] > 0)
            assert found == {
                "slots": len(slots), "unique": table.unique, "repeats": table.repeats,
                "retired_early": table.retired, "no_index": table.none, "steps": table.steps,
                "sweeps": max(0, table.steps - 1) // laps}

        simulate(powered_up(dut), feed if any(stalls) else feed_at_once, finish,
                 receiver(dut.o, out, len(table.sent), stall=stalls[1], seed=3),
                 background=[watch, quiet_while_idle(
                     dut.idle, [dut.i.valid],
                     [dut.o.valid & dut.o.ready, dut.indices.valid & dut.indices.ready])],
                 limit=20_000)
        assert out == table.sent and indices == table.indices
        assert all(sent < self.told[number] for sent, number in zip(self.sent, table.first))


def expected_of(slots):
    """Return for each step the keys in order of first use and the indices, by numpy."""
    for step in dict.fromkeys(slot["step"] for slot in slots):
        of = [slot for slot in slots if slot["step"] == step]
        keys = np.array([slot["key"]["table"] << 36 | slot["key"]["row"] for slot in of
                         if slot["kind"] != RecordKind.EMPTY], np.uint64)
        unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))
        yield step, unique[np.argsort(first)].tolist(), rank[inverse].tolist()


@pytest.mark.few(3)
@pytest.mark.parametrize("stalls", STALLS)
def test_as_numpy_unique_in_order_of_first_use(stalls):
    slots = slots_of([(7, some_keys(120, 40, 1)), (8, some_keys(90, 30, 2)),
                      (9, [EMPTY] * 3), (10, some_keys(90, 35, 3))])
    run = Run(build(512), slots, 512, stalls)
    assert run.table.retired == 0 and run.table.repeats > 100
    for step, keys, indices in expected_of(slots):
        assert keys == [s["key"]["table"] << 36 | s["key"]["row"] for s in run.table.sent
                        if s["step"] == step]
        assert indices == [i["index"] for i in run.table.indices
                           if i["step"] == step and not i["empty"]]


def test_steps_are_compared_in_all_their_bits():
    """Use one key in steps that differ by one bit."""
    steps = [step for other in a_bit_apart(0xFFFE) for step in (0xFFFE, other)]
    assert Run(build(64), slots_of([(step, [1, 1]) for step in steps])).table.steps == len(steps)


def test_entries_of_any_earlier_step_are_not_retired_early():
    """Look up entries of the first step again 4, 8 and so on to 512 steps later."""
    keys = iter(same_set(16, 64 // 8))
    shares = [(0, [next(keys) for _ in range(8)])]
    shares += [(step, [EMPTY] if step & step - 1 or step < 4 else [next(keys)])
               for step in range(1, 513)]
    run = Run(build(64), slots_of(shares))
    assert run.table.retired == 0 and run.table.unique == 16


def same_set(count: int, sets: int) -> list[int]:
    found = (n for n in range(100_000) if set_of(key_hash(**key_of(n)), sets) == 0)
    return [next(found) for _ in range(count)]


@pytest.mark.few(3)
@pytest.mark.parametrize("stalls", STALLS)
@pytest.mark.parametrize("keys", [16, 64])
def test_more_keys_than_it_holds_are_sent_again(keys, stalls):
    crowd, rng = same_set(11, keys // 8), random.Random(1)
    steps = [(1, some_keys(150, 120, 1)), (2, [rng.choice(crowd) for _ in range(150)]),
             (3, [*range(60), *range(60)]), (4, crowd[:8] * 3), (3, crowd[8:] * 2)]
    run = Run(build(keys), slots_of(steps), keys, stalls)
    assert run.table.retired > 30
    assert run.table.unique > sum(len({*of} - {EMPTY}) for _, of in steps)


@pytest.mark.parametrize("name", ["kaggle", "terabyte"])
def test_keys_of_a_data_set(name):
    samples = concatenate(generate(MODELS[name], 24, 1))
    numbers = {key: n for n, key in enumerate(dict.fromkeys(samples.keys.tolist()))}
    keys = [numbers[key] for key in samples.keys.tolist()]
    steps = [(step, keys[step * len(keys) // 3:(step + 1) * len(keys) // 3]) for step in range(3)]
    run = Run(build(1024), slots_of(steps, longest=26), 1024, (0.0, 0.2, 0.1))
    assert run.table.repeats > 100


@pytest.mark.parametrize("keys", [
    [5] * 60, [5, 6] * 30, [*range(60)], same_set(9, 8) * 6, [EMPTY, 1, EMPTY, 1] * 15,
    some_keys(80, 20, 4)])
def test_a_slot_a_cycle_whatever_the_keys(keys):
    """Each slot leaves after the latency, also at the beginnings of steps."""
    slots = slots_of([(1, keys), (2, keys), (1, keys)])
    run = Run(build(), slots)
    assert run.came == list(range(run.came[0], run.came[0] + len(slots)))
    assert run.told == [cycle + TO_INDEX for cycle in run.came]
    assert run.sent == [run.came[number] + TO_O for number in run.table.first]


@pytest.mark.parametrize("stalls", [STALLS[0], STALLS[4]])
def test_a_step_begins_anew_although_numbers_and_epochs_come_again(stalls):
    """Four epochs per lap: each step has the keys of the step four before, which are still in the
    sets."""
    steps = [(step % 2, [*range(4 * step % 24, 4 * step % 24 + 9)] * 2) for step in range(30)]
    run = Run(build(64, SHORT_LAPS), slots_of(steps), stalls=stalls, laps=4)
    assert run.table.steps == 30 and run.table.retired == 0


def test_a_step_of_few_slots_still_takes_an_epoch():
    run = Run(build(64, SHORT_LAPS), slots_of([(step, [1]) for step in range(23)]), laps=4)
    assert run.table.unique == 23 and [i["index"] for i in run.table.indices] == [0] * 23


@pytest.mark.parametrize("stalls", [STALLS[0], STALLS[4]])
def test_the_end_of_a_step_tells_it_from_one_of_the_same_number(stalls):
    share, rest = (slots_of([(5, keys)]) for keys in (some_keys(40, 10, 1), [1, 1, 1]))
    run = Run(build(), [*share, end_of(5), *share, end_of(5), *rest], stalls=stalls)
    assert run.table.steps == 3
    indices = [i["index"] for i in run.table.indices]
    assert indices[:41] == indices[41:82] and indices[82:] == [0, 0, 0]


@pytest.mark.parametrize("stalls", [STALLS[0], STALLS[4]])
def test_a_share_without_slots_ends_too(stalls):
    """The end of the share is passed on, and sent, in its place."""
    slots = [end_of(4), *slots_of([(5, [3, 4, 3])]), end_of(5), end_of(5), end_of(6)]
    run = Run(build(), slots, stalls=stalls)
    assert [index["index"] for index in run.table.indices] == [0xFFFF, 0, 1, 0, *3 * [0xFFFF]]
    assert run.table.steps == 4


@pytest.mark.parametrize("stalls", [STALLS[0], STALLS[4]])
def test_keys_beyond_the_last_index_have_none(stalls):
    """Keys beyond the last index are sent once, like all keys. Their slots are sent and counted."""
    keys = [*range(30), *range(30)]
    run = Run(build(512, FEW_INDICES), slots_of([(1, keys), (2, keys[:20])]), 512, stalls, limit=20)
    assert [i["index"] for i in run.table.indices] == [
        *(min(key, 20) for key in keys), *range(20)]
    assert run.table.none == 20 and run.table.unique == 50


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_switched_off_all_goes_on_unchanged(stall):
    """The latency is the same, and slots have no index."""
    dut, slots = build(), slots_of([(1, some_keys(60, 10, 1)), (2, some_keys(30, 10, 1))])
    out: list[dict] = []
    came, sent = [], []

    async def watch(ctx):
        cycle = 0
        async for _, _, i, o, told in ctx.tick().sample(
                dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready, dut.indices.valid):
            assert not told
            came.extend([cycle] * i)
            sent.extend([cycle] * o)
            cycle += 1

    async def feed(ctx):
        while not ctx.get(dut.idle):
            await ctx.tick()
        await sender(dut.i, slots, stall=stall)(ctx)

    simulate(powered_up(dut), feed, receiver(dut.o, out, len(slots), stall=stall),
             background=[watch])
    assert out == slots
    assert stall or sent == [cycle + TO_O for cycle in came]


def test_switched_on_and_off_between_steps():
    dut, told, out = build(), [], []
    steps = [slots_of([(step, some_keys(40, 12, step))]) for step in range(6)]
    tables = [Table(64) for _ in steps]

    async def bench(ctx):
        for number, slots in enumerate(steps):
            while not ctx.get(dut.idle):
                await ctx.tick()
            ctx.set(dut.enable, number % 2)
            await ctx.tick().repeat(2)
            await sender(dut.i, slots)(ctx)
            for slot in slots:
                tables[number].add(slot)
        await ctx.tick().repeat(30)

    simulate(powered_up(dut), bench, background=[
        receiver(dut.o, out, 1 << 20), receiver(dut.indices, told, 1 << 20)])
    assert told == [index for table in tables[1::2] for index in table.indices]
    assert out == [slot for number, slots in enumerate(steps)
                   for slot in (tables[number].sent if number % 2 else slots)]


def test_what_waits_for_one_side_loses_nothing():
    """While the output of indices is stalled, slots advance only as far as there is room for
    indices."""
    dut, slots, out = build(), slots_of([(1, [*range(40)])]), []
    told: list[dict] = []

    async def bench(ctx):
        ctx.set(dut.enable, 1)
        await ctx.tick().repeat(100)
        assert len(out) <= 2 and not ctx.get(dut.i.ready)
        await receiver(dut.indices, told, len(slots))(ctx)

    simulate(powered_up(dut), bench, sender(dut.i, slots), receiver(dut.o, out, len(slots)))
    assert out == slots and [index["index"] for index in told] == [*range(40)]


def test_config_is_checked():
    with pytest.raises(TypeError, match="config must be a NicConfig, not 'tiny'"):
        UniqueFinder("tiny")
    with pytest.raises(ValueError, match="unique_keys must be at least 16, not 0"):
        UniqueFinder(preset("tiny").with_fields(unique_keys=0))

"""ShareDelivery: a share on its way to the dispatcher becomes its distinct keys, numbered from
0."""

import pytest
from amaranth.hdl import Signal

from rtl.config import preset
from rtl.delivery import ShareDelivery
from rtl.formats import NO_SAMPLE, RecordKind
from tests.rtl.delivery.slots import (
    EMPTY,
    Table,
    end_of,
    slots_of,
    some_keys,
    with_bags,
    with_repeats,
)
from tests.rtl.power_up import powered_up
from tests.support import a_bit_apart, counts_of, made, quiet_while_idle, receiver, sender, simulate

STALLS = [(0.0, 0.0, 0.0), (0.4, 0.0, 0.0), (0.0, 0.5, 0.0), (0.0, 0.0, 0.5), (0.3, 0.3, 0.3)]


class Clocked(ShareDelivery):
    """A block without a register, in a clock's domain."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.sync += Signal().eq(1)
        return m


def build(keys=64):
    kind = ShareDelivery if keys else Clocked
    return made(kind, preset("tiny").with_fields(unique_keys=keys))


def end(step):
    """Return the end of the share of ``step``, as it leaves."""
    return {"kind": int(RecordKind.EMPTY), "sample": NO_SAMPLE, "step": step, "last": 1, "mine": 0}


def expected_of(slots, keys):
    """Return the expected output, and the indices, with None at the end of a share."""
    table, out, open_step = Table(keys), [], None
    for slot in slots:
        table.add(slot)
    for slot in table.sent:
        if open_step not in (None, slot["step"]):
            out.append(end(open_step))
        if slot["ends"]:
            out.append(end(slot["step"]))
        else:
            out.append({"kind": int(RecordKind.KEY_END), "sample": NO_SAMPLE, "last": 0,
                        "step": slot["step"], "key": slot["key"], "owner": slot["owner"],
                        "mine": slot["mine"]} | (
                            {"bag": slot["bag"], "mean": 0,
                             "final_beat": slot["final_beat"]} if "bag" in slot else {}))
        open_step = None if slot["ends"] else slot["step"]
    return out, [None if index["ends"] else index for index in table.indices]


def run(slots, *, keys=64, stalls=STALLS[0], unique=1, dut=None):
    """Return the output, the indices with None at the end of a share, and the counters."""
    dut = dut or build(keys)
    out: list[dict] = []
    indices: list[dict] = []
    told: list[dict | None] = []
    counters = {}

    async def feed(ctx):
        ctx.set(dut.unique, unique)
        await ctx.tick().repeat(2)
        await sender(dut.i, slots, stall=stalls[0], seed=1)(ctx)
        still = 0
        while still < 30:
            await ctx.tick()
            still = still + 1 if ctx.get(dut.idle) else 0
        counters.update(counts_of(ctx, dut.counters))

    async def ends(ctx):
        number = 0
        async for _, _, moves, step_end in ctx.tick().sample(
                dut.indices.valid & dut.indices.ready, dut.step_end):
            assert not (moves and step_end)
            if moves or step_end:
                told.append(number if moves else None)
                number += bool(moves)

    # The bypass has no state, and is idle if its input is.
    way, other = (dut.shares, dut.o) if unique else (dut.o, dut.shares)
    quiet = quiet_while_idle(dut.idle, [dut.i.valid], [
        way.valid & way.ready, dut.indices.valid & dut.indices.ready, dut.step_end])
    nothing: list[dict] = []
    simulate(powered_up(dut), feed, background=[
        ends, receiver(way, out, 1 << 30, stall=stalls[1], seed=2), receiver(other, nothing, 1),
        receiver(dut.indices, indices, 1 << 30, stall=stalls[2], seed=3), *[quiet] * unique],
        limit=10_000)
    assert not nothing
    return out, [None if number is None else indices[number] for number in told], counters


def check(slots, **options):
    out, told, counters = run(slots, **options)
    expected, indices = expected_of(slots, options.get("keys", 64))
    assert len(out) == len(expected)
    for got, want in zip(out, expected):
        assert {name: got[name] for name in want} == want and not got["ends"]
    assert told == indices
    return expected, counters


@pytest.mark.few(3)
@pytest.mark.parametrize("stalls", STALLS)
def test_shares_leave_as_their_different_keys_and_an_end(stalls):
    slots = []
    for step, keys in ((3, some_keys(60, 20, 1)), (4, some_keys(70, 9, 2)), (9, [EMPTY, EMPTY]),
                       (9, []), (9, some_keys(30, 30, 3)), (0xFFFF, [1, 1, 1]), (0, [1])):
        slots += [*slots_of([(step, keys)], seed=step), end_of(step)]
    expected, counters = check(slots, stalls=stalls)
    assert sum(item["last"] for item in expected) == 7
    assert counters["cut"] == 0 and counters["repeats"] > 60


@pytest.mark.parametrize("stalls", [STALLS[0], STALLS[4]])
def test_bags_leave_with_an_index_each(stalls):
    """Send keys and bags whose table and row are equal: a bag matches no key and no bag."""
    slots = []
    for step, keys in ((3, some_keys(60, 20, 1)), (4, some_keys(60, 2, 2)), (5, [1, 1])):
        slots += with_bags([*slots_of([(step, keys)], seed=step), end_of(step)], step)
    dut = made(ShareDelivery, preset("tiny").with_fields(unique_keys=64, owner_bags=16))
    expected, counters = check(slots, stalls=stalls, dut=dut)
    assert sum(item.get("bag", 0) for item in expected) > 30
    assert counters["unique"] == sum(not item["last"] for item in expected)
    assert counters["repeats"] > 20


@pytest.mark.parametrize("stalls", [STALLS[0], STALLS[4]])
def test_a_repeated_bag_has_the_index_of_its_bag(stalls):
    positions, slots = 4, []
    for step, longest in ((3, 5), (4, 1), (5, 2), (6, 8)):
        own = with_bags(slots_of([(step, some_keys(150, 20, step))], seed=step, longest=longest),
                        step)
        slots += with_repeats([*own, *with_bags([end_of(step)], step)], positions, step)
    dut = made(ShareDelivery, preset("tiny").with_fields(
        unique_keys=64, owner_bags=16, repeat_words=64, repeat_vectors=positions))
    expected, counters = check(slots, stalls=stalls, dut=dut)
    assert counters["unique"] == sum(not item["last"] for item in expected)
    assert sum(slot["repeat"] for slot in slots) > 20


@pytest.mark.parametrize("stalls", [STALLS[0], STALLS[4]])
def test_a_share_that_nobody_ends_ends_where_another_step_begins(stalls):
    slots = [*slots_of([(1, [1, 2, 1, 3]), (2, [2, 2, 4]), (3, [5])]), end_of(3),
             *slots_of([(4, [1])]), end_of(5), *slots_of([(6, [7])])]
    expected, counters = check(slots, stalls=stalls)
    assert [item["step"] for item in expected if item["last"]] == [1, 2, 3, 4, 5]
    assert counters["cut"] == 3


def test_steps_are_compared_in_all_their_bits():
    """Send shares without ends, of steps that differ by one bit."""
    steps = [step for other in a_bit_apart(0xFFFE) for step in (0xFFFE, other)]
    _, counters = check(slots_of([(step, [1, 1]) for step in steps]))
    assert counters["cut"] == len(steps) - 1 and counters["unique"] == len(steps)


def test_keys_beyond_the_table_leave_again():
    slots = [*slots_of([(1, [*range(64), *range(64)])]), end_of(1)]
    expected, counters = check(slots, keys=16)
    assert len(expected) > 65 and counters["retired_early"] >= len(expected) - 65


@pytest.mark.parametrize("keys", [0, 64])
def test_slots_pass_as_they_are_without(keys):
    slots = [*slots_of([(1, some_keys(50, 9, 1))]), end_of(1), *slots_of([(2, [1, 1])])]
    out, told, counters = run(slots, unique=0, dut=build(keys))
    assert out == slots and not told and not counters["unique"]


def test_latency():
    dut, times = build(), {}

    async def bench(ctx):
        ctx.set(dut.unique, 1)
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.shares.ready, 1)
        ctx.set(dut.indices.ready, 1)
        while not ctx.get(dut.idle):
            await ctx.tick()
        ctx.set(dut.i.payload, slots_of([(1, [5])])[0])
        ctx.set(dut.i.valid, 1)
        for cycle in range(30):
            if cycle and ctx.get(dut.i.ready):
                ctx.set(dut.i.valid, 0)
            for name, port in (
                    ("the same slot in its share", dut.shares), ("its index", dut.indices)):
                if ctx.get(port.valid):
                    times.setdefault(name, cycle)
            await ctx.tick()

    simulate(powered_up(dut), bench)
    assert times == {name: ShareDelivery.LATENCY["slot", name] for name in times}
    assert len(times) == 2


def test_config_is_checked():
    with pytest.raises(TypeError, match="config must be a NicConfig"):
        ShareDelivery(None)  # type: ignore[arg-type]

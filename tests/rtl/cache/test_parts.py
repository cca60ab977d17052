"""The parts of a cache: free list, scatter lists, miss table, fill writer."""

import random

import pytest

from rtl.cache.free_list import FreeList
from rtl.cache.miss_table import MissTable
from rtl.cache.scatter_list import ScatterList
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, simulate


@pytest.mark.parametrize("count", [2, 5, 100])
def test_free_list_gives_each_number_to_one(count):
    dut, rng = made(FreeList, count), random.Random(count)

    async def bench(ctx):
        held: set[int] = set()
        most = 0
        for turn in range(600):
            take = rng.random() < 0.6
            give = bool(held) and rng.random() < (0.1 if turn < 300 else 0.5)
            returned = rng.choice(sorted(held)) if give else 0
            ctx.set(dut.taken.ready, take)
            ctx.set(dut.given.valid, int(give))
            ctx.set(dut.given.number, returned)
            if take and ctx.get(dut.taken.valid):
                number = ctx.get(dut.taken.payload)
                assert number not in held and number < count
                held.add(number)
            if give:
                held.remove(returned)
            idle, valid = ctx.get(dut.idle), ctx.get(dut.taken.valid)
            await ctx.tick()
            if idle and not take and not give:
                assert ctx.get(dut.idle) and ctx.get(dut.taken.valid) == valid
            most = max(most, len(held))
        assert most == count

    simulate(powered_up(dut), bench)


@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("ids, nodes", [(8, 8), (32, 70)])
def test_scatter_lists_come_out_whole_and_in_order(ids, nodes, stall):
    dut, rng = made(ScatterList, 16, in_flight=ids, waiters=nodes), random.Random(ids)
    expected, taken, total = [], [], 600

    async def bench(ctx):
        open_lists: dict[int, list[int]] = {}
        seen = number = closed = 0
        reserved = [False, False]
        while closed < total:
            # An output waiter frees its id after the last one of its list.
            while seen < len(taken):
                if taken[seen]["last"]:
                    busy.discard(taken[seen]["id"])
                seen += 1
            free_ids = [i for i in range(ids) if i not in open_lists and i not in busy]
            close = bool(open_lists) and rng.random() < 0.4
            id_ = rng.choice(sorted(open_lists)) if close else 0
            ctx.set(dut.close, int(close))
            ctx.set(dut.close_id, id_)
            reserved.append(number < total and ctx.get(dut.space) and rng.random() < 0.9)
            ctx.set(dut.reserve, int(reserved[-1]))
            add = reserved[-3] and number < total
            target = None
            if add:
                # Often to the list that is being closed.
                target = id_ if close and rng.random() < 0.5 else rng.choice(
                    sorted(open_lists) + free_ids[:2] or [None])
            ctx.set(dut.add, int(target is not None))
            ctx.set(dut.unused, int(reserved[-3] and target is None))
            if target is not None:
                ctx.set(dut.add_id, target)
                ctx.set(dut.add_first, int(target not in open_lists))
                ctx.set(dut.add_meta, number)
                open_lists.setdefault(target, []).append(number)
                number += 1
            if close:
                metas = open_lists.pop(id_)
                busy.add(id_)
                closed += len(metas)
                expected.extend({"meta": meta, "id": id_, "last": int(meta == metas[-1])}
                                for meta in metas)
            await ctx.tick()
        for port in (dut.add, dut.close, dut.reserve):
            ctx.set(port, 0)
        for given in reserved[-2:]:
            ctx.set(dut.unused, int(given))
            await ctx.tick()
        ctx.set(dut.unused, 0)
        while len(taken) < total:
            await ctx.tick()
        await ctx.tick().repeat(4)
        assert ctx.get(dut.idle)

    busy: set[int] = set()
    simulate(powered_up(dut), bench, receiver(dut.waiters, taken, total, stall=stall))
    assert taken == expected


@pytest.mark.parametrize("length", [1, 2, 7])
def test_a_waiter_a_cycle(length):
    """All lists are there at the start: not a cycle is lost within or between them."""
    dut, taken, total = made(ScatterList, 16, in_flight=256, waiters=256), [], 252

    async def bench(ctx):
        while not ctx.get(dut.space):
            await ctx.tick()
        ctx.set(dut.reserve, 1)
        await ctx.tick().repeat(2)
        ctx.set(dut.add, 1)
        for n in range(total):
            ctx.set(dut.reserve, int(n < total - 2))
            ctx.set(dut.add_id, n // length)
            ctx.set(dut.add_first, int(n % length == 0))
            ctx.set(dut.add_meta, n)
            await ctx.tick()
        ctx.set(dut.add, 0)
        ctx.set(dut.close, 1)
        for id_ in range(total // length):
            ctx.set(dut.close_id, id_)
            await ctx.tick()
        ctx.set(dut.close, 0)

    async def cycles(ctx):
        count = 0
        while len(taken) < total:
            await ctx.tick()
            count += len(taken) > 0
        assert count <= total / 0.95

    simulate(powered_up(dut), bench, cycles, receiver(dut.waiters, taken, total))
    assert [item["meta"] for item in taken] == list(range(total))


def test_miss_table_knows_whose_an_id_is():
    dut, rng = made(MissTable, rows=32, in_flight=8), random.Random(2)

    async def bench(ctx):
        for address in range(8):
            ctx.set(dut.clear, 1)
            ctx.set(dut.clear_address, address)
            await ctx.tick()
        ctx.set(dut.clear, 0)
        held: dict[int, tuple[int, int, int]] = {}
        # in the previous cycle: the id of the vector, its entry, the answer
        asked = None, None, None
        for _ in range(1600):
            id_, fill_id = rng.randrange(8), rng.randrange(8)
            entry = rng.randrange(32), rng.randrange(2), rng.randrange(2)
            for port, value in zip((dut.id, dut.slot, dut.allocated, dut.phase, dut.fill_id),
                                   (id_, *entry, fill_id), strict=True):
                ctx.set(port, value)
            closing, known, waiting = asked
            if closing is not None:
                assert ctx.get(dut.busy) == (known is not None)
                assert ctx.get(dut.waiting) == waiting
                if known is not None:
                    assert known == (ctx.get(dut.fill_slot), ctx.get(dut.fill_allocated),
                                     ctx.get(dut.fill_phase))
            start, stop = rng.random() < 0.5 and id_ not in held, (
                known is not None and rng.random() < 0.5)
            ctx.set(dut.open, int(start))
            ctx.set(dut.close, int(stop))
            waiting = id_ in held and held[id_][:2] == (entry[0], 1)
            if stop:  # of which the fill's side learns at once
                del held[closing]
            asked = fill_id, held.get(fill_id), waiting
            if start:
                held[id_] = entry
            await ctx.tick()

    simulate(powered_up(dut, seed=4), bench)


@pytest.mark.parametrize("count", [1, "4"])
def test_free_list_count_is_checked(count):
    with pytest.raises(ValueError, match="count must be an integer of at least 2, not"):
        FreeList(count)

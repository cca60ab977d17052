"""Owner split against a Python model of the descriptors."""

import random

import pytest

from rtl.formats import Status
from rtl.keys.owner_split import OwnerSplit
from tests.rtl.descriptors import (
    COLUMN,
    REPLICATED,
    ROW,
    TABLE,
    Table,
    descriptor_writer,
    key_hash,
    split,
)
from tests.support import made, receiver, sender, simulate

NODE = 5


def some_tables(count: int, rng: random.Random) -> dict[int, Table]:
    """Return descriptors of every kind; one of six is invalid and one of eight is not written."""
    return {
        number: Table(kind=rng.choice([TABLE, TABLE, ROW, ROW, REPLICATED, COLUMN]),
                      owner=rng.randrange(12), owners=rng.choice([1, 2, 3, 8, 64, 255]),
                      rows=rng.choice([1, 2, 7, 1000, (1 << 32) - 1, (1 << 32) + 5, 1 << 35]),
                      valid=int(rng.random() < 5 / 6))
        for number in range(count) if rng.random() < 7 / 8}


def keys_around(tables: dict[int, Table], count: int, limit: int, rng: random.Random):
    """Return keys inside and just outside the tables."""
    for _ in range(count):
        table = rng.randrange(limit + 3)
        rows = tables[table].rows if table in tables else 10
        row = rng.choice([0, rows - 1, rows, rows + 1, rng.randrange(rows), rng.randrange(1 << 36)])
        yield {"row": row, "table": table & 0xFFF}


def run(dut, tables, keys, stalls=(0.0, 0.0), nodes=None):
    items = [{"key": key, "user": k & 0xFF} for k, key in enumerate(keys)]
    taken: list[dict] = []
    simulate(dut, descriptor_writer(dut, tables, NODE, nodes, then=sender(
        dut.i, items, stall=stalls[0])), receiver(dut.o, taken, len(items), stall=stalls[1]))
    return taken


@pytest.mark.few(3)
@pytest.mark.parametrize("count, stalls", [
    (1, (0.4, 0.4)), (6, (0.0, 0.5)), (32, (0.5, 0.0)), (32, (0.4, 0.4)), (100, (0.0, 0.0)),
    (100, (0.4, 0.4))])
def test_owner_and_status(count, stalls):
    rng = random.Random(count)
    tables = some_tables(count, rng)
    keys = list(keys_around(tables, 400, count, rng))
    dut = made(OwnerSplit, 8, count)
    taken = run(dut, tables, keys, stalls, nodes=64)
    assert len(taken) == len(keys)
    statuses = set()
    for k, (got, key) in enumerate(zip(taken, keys)):
        owner, status = split(tables, key["table"], key["row"], NODE, 64)
        statuses.add(status)
        assert (got["key"], got["user"], got["status"]) == (key, k & 0xFF, status)
        if status == 0:
            assert (got["owner"], got["own"]) == (owner, owner == NODE)
    assert count < 30 or statuses == {0, Status.TABLE, Status.ROW, Status.KIND}


@pytest.mark.parametrize("stalls", [(0.0, 0.0), (0.4, 0.4)])
def test_tables_that_pool_at_their_owner(stalls):
    """Bags need a table that pools at its owner, keys one that does not. The rows of a bag are
    compared elsewhere, with the number that appears with the bag's user data."""
    rng = random.Random(5)
    tables = some_tables(40, rng)
    for table in tables.values():
        table.pool, table.mean = rng.randrange(2), rng.randrange(2)
        table.final_beat = rng.randrange(7)
    keys = list(keys_around(tables, 400, 40, rng))
    bags = [tables[key["table"]].pool ^ (rng.random() < 0.2) if key["table"] in tables else 1
            for key in keys]
    dut, coming = made(OwnerSplit, 8, 40, bags=True), []

    async def watch(ctx):
        ctx.set(dut.vector_beats, 5)
        async for _, _, moves, comes, user, rows in ctx.tick().sample(
                dut.moves, dut.comes, dut.coming, dut.rows):
            if moves and comes:
                coming.append((user, rows))

    items = [{"key": key, "user": k & 0xFF, "bag": bags[k]} for k, key in enumerate(keys)]
    taken: list[dict] = []
    simulate(dut, descriptor_writer(dut, tables, NODE, 64, then=sender(
        dut.i, items, stall=stalls[0])), receiver(dut.o, taken, len(items), stall=stalls[1]),
        background=[watch])
    statuses = set()
    for k, (got, key, bag) in enumerate(zip(taken, keys, bags, strict=True)):
        owner, status = split(tables, key["table"], key["row"], NODE, 64, bag=bag, beats=5)
        statuses.add((bag, status))
        assert (got["key"], got["user"], got["status"]) == (key, k & 0xFF, status)
        assert coming[k][0] == k & 0xFF
        if status == 0:
            table = tables[key["table"]]
            assert (got["owner"], got["mean"], got["final_beat"], coming[k][1]) == (
                owner, table.mean, table.final_beat, table.rows)
    assert statuses == {(0, 0), (1, 0), (0, Status.TABLE), (1, Status.TABLE), (0, Status.KIND),
                        (1, Status.KIND), (0, Status.ROW)}


def test_copies_are_refused_where_rows_have_one_owner():
    tables = {0: Table(kind=REPLICATED), 1: Table(kind=COLUMN), 2: Table(owner=1)}
    taken = run(OwnerSplit(8, 4, replicated=False), tables,
                [{"row": 1, "table": t} for t in range(3)])
    assert [t["status"] for t in taken] == [Status.KIND, Status.KIND, 0]


def test_rows_are_spread_evenly():
    tables = {0: Table(kind=ROW, owner=2, owners=4, rows=1 << 20)}
    rows = random.Random(1).sample(range(1 << 20), 800)
    taken = run(made(OwnerSplit, 8, 2), tables, [{"row": r, "table": 0} for r in rows])
    shares = [sum(t["owner"] == owner for t in taken) for owner in (2, 3, 4, 5)]
    assert sum(shares) == 800 and all(150 <= share <= 250 for share in shares)
    assert [t["owner"] for t in taken] == [2 + ((key_hash(0, r) & 0xFFFF) * 4 >> 16) for r in rows]


def test_owner_outside_the_cluster_is_refused():
    tables = {0: Table(owner=3), 1: Table(owner=4), 2: Table(kind=REPLICATED)}
    taken = run(made(OwnerSplit, 8, 4), tables, [{"row": 1, "table": t} for t in range(3)], nodes=4)
    assert [t["status"] for t in taken] == [0, Status.TABLE, Status.TABLE]


@pytest.mark.parametrize("owner, owners", [(250, 16), (255, 255), (1, 255), (200, 64)])
def test_the_sum_of_owner_and_offset_does_not_wrap(owner, owners):
    tables = {0: Table(kind=ROW, owner=owner, owners=owners, rows=1 << 30)}
    rows = random.Random(owner).sample(range(1 << 30), 300)
    wanted = [split(tables, 0, row, NODE, 8) for row in rows]
    taken = run(made(OwnerSplit, 8, 1), tables, [{"row": row, "table": 0} for row in rows],
                nodes=8)
    assert [t["status"] for t in taken] == [status for _, status in wanted]
    assert [t["owner"] for t in taken if not t["refused"]] == [
        o for o, status in wanted if status == 0]
    # Some sums exceed eight bits; the last node remains reachable where it exists.
    offsets = [(key_hash(0, row) & 0xFFFF) * owners >> 16 for row in rows]
    assert any(owner + offset > 255 for offset in offsets) == (owner > 1)
    assert owner == 1 or all(t["refused"] and not t["own"] for t in taken)


def test_one_key_a_cycle_and_latency():
    dut = made(OwnerSplit, 8, 8)
    tables = {t: Table() for t in range(8)}
    seen: list[int] = []

    async def drive(ctx):
        for k in range(200):
            ctx.set(dut.i.payload, {"key": {"row": k % 100, "table": k % 8}, "user": k})
            ctx.set(dut.i.valid, 1)
            assert ctx.get(dut.i.ready)
            await ctx.tick()
        ctx.set(dut.i.valid, 0)

    async def watch(ctx):
        ctx.set(dut.o.ready, 1)
        await ctx.tick().until(dut.i.valid & dut.i.ready)
        for cycle in range(1, 205):
            _, _, valid = await ctx.tick().sample(dut.o.valid)
            if valid:
                seen.append(cycle)

    simulate(dut, descriptor_writer(dut, tables, then=drive), watch)
    assert seen == list(range(5, 205))


def test_sweep_forgets_and_is_not_idle():
    dut = made(OwnerSplit, 4, 20)
    taken: list[dict] = []

    async def bench(ctx):
        for cycle in range(20):
            assert not ctx.get(dut.idle) and not ctx.get(dut.write_ready)
            assert not ctx.get(dut.i.ready)
            # Writes during the sweep are ignored, regardless of its progress.
            ctx.set(dut.write_en, 1)
            ctx.set(dut.write_table, cycle)
            ctx.set(dut.write_word, 0)
            ctx.set(dut.write_data, 1)
            await ctx.tick()
        ctx.set(dut.write_en, 0)
        assert ctx.get(dut.idle) and ctx.get(dut.write_ready) and ctx.get(dut.i.ready)
        await sender(dut.i, [{"key": {"row": 0, "table": t}, "user": 0} for t in range(20)])(ctx)
        await ctx.tick().until(dut.idle)

    simulate(dut, bench, receiver(dut.o, taken, 20))
    assert [t["status"] for t in taken] == [Status.TABLE] * 20


def test_writes_beyond_the_tables_are_ignored():
    dut, taken = made(OwnerSplit, 4, 4), []
    tables = {k: Table(rows=10 * (k + 1), owner=k) for k in range(4)}
    ghosts = tables | {k: Table(rows=1, owner=9) for k in range(4, 12)}
    simulate(dut, descriptor_writer(dut, ghosts, then=sender(
        dut.i, [{"key": {"row": 10 * t + 9, "table": t}, "user": 0} for t in range(4)])),
        receiver(dut.o, taken, 4))
    assert [(t["owner"], t["status"]) for t in taken] == [(k, 0) for k in range(4)]


@pytest.mark.parametrize("tables, error, message", [
    (0, ValueError, "tables must be between 1 and 4096, not 0"),
    (4097, ValueError, "tables must be between 1 and 4096, not 4097"),
    ("8", TypeError, "tables must be an integer, not '8'"),
    (True, TypeError, "tables must be an integer, not True"),
])
def test_tables_are_checked(tables, error, message):
    with pytest.raises(error, match=message):
        OwnerSplit(8, tables)


def test_user_shape_is_checked():
    with pytest.raises(TypeError, match="user_shape must be a shape, not 'x'"):
        OwnerSplit("x", 8)

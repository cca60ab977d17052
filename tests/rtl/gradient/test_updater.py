"""RowUpdater against the host's optimizer and rows: bit for bit, for any order of arrivals."""

import random
from contextlib import ExitStack
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest

from host.dlrm.optimizer import Optimizer
from rtl.config import preset
from rtl.gradient import arrivals, records, row_output, row_ring, updater
from rtl.gradient.state_unpacker import StateUnpacker
from tests.rtl.gradient.updating import Pass, SwiftHost, World, run, some_keys
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, simulate


def config(dimension: int, **fields):
    return preset("tiny").with_fields(
        **{"max_dimension": max(16, dimension), "local_cache_rows": 24, "update_rows": 16}
        | fields)


def passes(keys: list[int], dimension: int, seed: int, cuts: tuple[int, ...] = ()) -> list[Pass]:
    """Return the keys in passes that end at ``cuts`` and at the end, with random gradients."""
    rng = np.random.default_rng(seed)
    bounds = [0, *cuts, len(keys)]
    return [Pass(keys[start:end], rng.standard_normal((end - start, dimension)).astype(np.float32),
                 passed=len(keys) - end)
            for start, end in pairwise(bounds)]


@pytest.mark.thorough
@pytest.mark.parametrize("name, dimension, largest, cuts", [
    ("rowwise-adagrad", 8, 16, (5,)),
    *(pytest.param(*case, marks=pytest.mark.slow)
      for case in (("sgd", 16, 16, ()), ("rowwise-adagrad", 48, 64, (5,))))])
def test_rows_and_states_are_those_of_the_host(name, dimension, largest, cuts):
    """Two steps of the same keys in part, half of them in the cache."""
    rng = random.Random(dimension)
    keys = some_keys(30, rng)
    world = World(config(largest), dimension, Optimizer(name, 0.05, 1e-6), keys[::2],
                  seed=dimension, settled=True)
    counters = run(world, [passes(keys[:20], dimension, 1, cuts),
                           passes(keys[10:], dimension, 2)])
    assert counters["stall_rows"]


@pytest.mark.few(2)
@pytest.mark.parametrize("name, dimension, largest, stall, cuts", [
    ("sgd", 16, 16, 0.0, ()), ("rowwise-adagrad", 4, 16, 0.3, (20,)),
    ("rowwise-adagrad", 48, 64, 0.1, (0, 30, 35)), ("sgd", 32, 32, 0.5, (39,))])
def test_whatever_comes_when(name, dimension, largest, stall, cuts):
    """More keys than places, several passes, states that nobody asked for."""
    rng = random.Random(dimension)
    keys = some_keys(60, rng)
    world = World(config(largest), dimension, SwiftHost(name), keys[::3], seed=dimension,
                  stall=stall, bad_states=0.3)
    counters = run(world, [passes(keys[:40], dimension, 1, cuts),
                           passes(keys[:10] + keys[40:], dimension, 2)])
    assert counters["stall_places"] and counters["stall_rows"] and counters["stall_written"]
    assert world.bad > 10 and bool(counters["stall_states"]) == world.adagrad


def test_numbers_come_again():
    """With numbers of 5 bits, after 32 rows; what is said of one row is never another's."""
    keys = some_keys(90, random.Random(3))
    with ExitStack() as patches:
        for module in (arrivals, row_output, row_ring, updater):
            patches.enter_context(mock.patch.object(module, "ROW_NUMBER_BITS", 5))
        patches.enter_context(mock.patch.object(records, "ROW_NUMBER_BITS", 5))
        world = World(config(16), 16, SwiftHost("rowwise-adagrad"), keys[::4], seed=3)
        run(world, [passes(keys, 16, 3)])
    assert max(world.landings) == 31


def test_beats_that_are_not_there_count_as_zero():
    keys = some_keys(40, random.Random(4))
    part, = passes(keys, 64, 4)
    rng = random.Random(4)
    part.absent = {(key, beat) for key in keys for beat in rng.sample(range(4), rng.randrange(4))}
    run(World(config(64), 64, SwiftHost("sgd"), keys[::2], seed=4), [[part]])


def test_a_step_without_rows_is_done_at_once():
    world = World(config(16), 16, SwiftHost("sgd"), [], seed=5)
    part = Pass([], np.zeros((0, 16), np.float32))
    counters = run(world, [[part], [Pass([], part.gradients, passed=3), part], [part]])
    assert len(world.done) == 3 and counters["stall_written"] == 0


def test_a_step_may_begin_while_tables_are_swept():
    keys = some_keys(2, random.Random(9))
    run(World(config(16, update_rows=64), 16, SwiftHost("rowwise-adagrad"), keys[:1], seed=9,
              stall=0.0), [passes(keys, 16, 9)])


def test_a_step_is_not_done_before_the_host_has_written():
    keys = some_keys(6, random.Random(6))
    world = World(config(16), 16, SwiftHost("rowwise-adagrad"), keys, seed=6, written_late=300)
    counters = run(world, [passes(keys, 16, 6)])
    assert 250 < counters["stall_written"] < 400


def test_an_output_that_is_not_taken_holds_all_up_and_loses_nothing():
    keys = some_keys(40, random.Random(7))
    world = World(config(32), 32, SwiftHost("rowwise-adagrad"), keys[::2], seed=7, stall=0.8,
                  latency=(1, 3))
    counters = run(world, [passes(keys, 32, 7)])
    assert counters["stall_output"] and counters["stall_requests"]


def test_a_row_alone_waits_for_each_of_its_outputs():
    keys = some_keys(1, random.Random(10))
    world = World(config(16), 16, SwiftHost("rowwise-adagrad"), keys, seed=10, stall=0.9,
                  latency=(1, 1))
    run(world, [passes(keys, 16, k) for k in range(8)])


def test_idle_holds_while_nothing_but_unasked_states_come():
    class Quiet(World):
        async def before(self, ctx, keys):
            await ctx.tick().repeat(150)

    world = Quiet(config(16), 16, SwiftHost("sgd"), [], seed=11, bad_states=0.03)
    run(world, [[Pass([], np.zeros((0, 16), np.float32))]])
    assert world.bad > 8


@pytest.mark.few(2)
@pytest.mark.parametrize("name, beats", [("sgd", 1), ("sgd", 2), ("rowwise-adagrad", 2)])
def test_a_beat_a_cycle(name, beats):
    """All rows in the cache, which answers after 12 cycles."""
    keys = some_keys(120, random.Random(8))
    world = World(config(16 * beats, update_rows=64, local_cache_rows=128), 16 * beats,
                  SwiftHost(name), keys, seed=8, stall=0.0, latency=(12, 12), shuffled=False,
                  settled=True)
    counters = run(world, [passes(keys, 16 * beats, 8)])
    sums, rows = world.times["sum"], world.times["row"]
    assert sums[-1] - sums[0] == rows[-1] - rows[0] == 120 * beats - 1
    assert counters["stall_places"] == counters["stall_requests"] == 0
    assert counters["stall_output"] == 0
    assert 8 < counters["stall_rows"] + counters["stall_states"] < 40


@pytest.mark.parametrize("records", [1, 2, 3, 8])
def test_states_never_wait_however_they_are_packed(records):
    """All of 64 states that are asked for come at once, a beat a cycle, one by one out."""
    dut, taken = made(StateUnpacker, 64), []
    wanted = [{"state": 7 * k, "landing": k, "reserved": 0} for k in range(64)]

    async def bench(ctx):
        for start in range(0, 64, records):
            part = wanted[start:start + records]
            ctx.set(dut.i.payload, {"records": len(part), "data": sum(
                (item["state"] | item["landing"] << 32) << 64 * k for k, item in enumerate(part))})
            ctx.set(dut.i.valid, 1)
            assert ctx.get(dut.i.ready)
            await ctx.tick()
        ctx.set(dut.i.valid, 0)

    cycles = simulate(powered_up(dut), bench, receiver(dut.o, taken, 64))
    assert taken == wanted and cycles <= 64 + 3


def test_config_is_checked():
    with pytest.raises(TypeError, match="config must be a NicConfig, not 16"):
        updater.RowUpdater(16)

"""RowUpdater and LocalCache together: rows come from the cache or the GPU, and are found again."""

import random

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from host.dlrm.optimizer import OPTIMIZERS, Optimizer
from rtl.cache import LocalCache
from rtl.config import NicConfig, preset
from rtl.formats import ROW_BITS
from rtl.gradient import RowUpdater
from tests.rtl.gradient.test_updater import passes
from tests.rtl.gradient.updating import SwiftHost, World, run, some_keys, words

JOINED = ("lookups", "vectors", "write", "frozen")
CACHE = ("lookups", "vectors", "misses", "fills")


class Joined(wiring.Component):
    """Both blocks, connected as in the NIC; ``cache_*`` are ports of the cache."""

    def __init__(self, config: NicConfig):
        self._cache, self._updater = LocalCache(config), RowUpdater(config)
        self._sets = config.local_cache_sets
        members = self._updater.signature.members
        super().__init__(
            {name: member for name, member in members.items() if name not in JOINED[:3]}
            | {f"cache_{name}": self._cache.signature.members[name] for name in CACHE})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.cache, m.submodules.updater = cache, updater = self._cache, self._updater
        wiring.connect(m, updater.lookups, cache.updates)
        wiring.connect(m, cache.updated, updater.vectors)
        wiring.connect(m, updater.write, cache.write)
        m.d.comb += [cache.frozen.eq(updater.frozen), self.frozen.eq(updater.frozen),
                     cache.enable.eq(1), cache.sets.eq(self._sets),
                     cache.vector_beats.eq(self.vector_beats)]
        for name, member in self.signature.members.items():
            block, port = (cache, name[6:]) if name.startswith("cache_") else (updater, name)
            mine, its = getattr(self, name), getattr(block, port)
            if name in ("frozen", "idle"):
                continue
            if member.is_signature and member.flow == In:
                wiring.connect(m, wiring.flipped(mine), its)
            elif member.is_signature:
                wiring.connect(m, its, wiring.flipped(mine))
            elif member.flow == In:
                m.d.comb += its.eq(mine)
            else:
                m.d.comb += mine.eq(its)
        m.d.comb += self.idle.eq(cache.idle & updater.idle)
        return m


class CachedWorld(World):
    """A host and a GPU around both."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.dut, self.fetches, self.seen = Joined(self.config), [], {}
        self.cache = {}

    def outs(self) -> list:
        return [*self.hosts_ports(), self.dut.cache_misses, self.dut.cache_vectors]

    def ins(self) -> list:
        return [self.dut.sums, self.dut.flushed, self.dut.states, self.dut.cache_fills,
                self.dut.cache_lookups]

    def surroundings(self) -> list:
        return [self.take(self.dut.cache_misses, self.missed), self.fill,
                self.take(self.dut.cache_vectors, self.found)]

    def missed(self, item) -> None:
        key = item.key.row | item.key.table << ROW_BITS
        self.fetches.append((self.late(), item.id, words(self.store.read(
            np.array([key]))[0][0], self.beats)))

    async def fill(self, ctx):
        port = self.dut.cache_fills
        while True:
            entry = self.pick(self.fetches)
            if entry is None:
                await ctx.tick()
                continue
            for k, beat in enumerate(entry[2]):
                ctx.set(port.payload, {"id": entry[1], "data": beat,
                                       "last": int(k == self.beats - 1)})
                ctx.set(port.valid, 1)
                await ctx.tick()
            ctx.set(port.valid, 0)

    def found(self, item) -> None:
        self.seen.setdefault(item.meta, []).append(item.data)

    async def look_up(self, ctx, keys: list[int]) -> None:
        """Look ``keys`` up as the dedupe table would; they are then cached."""
        port, self.seen = self.dut.cache_lookups, {}
        for k, key in enumerate(keys):
            ctx.set(port.payload, {"key": {"row": key & (1 << ROW_BITS) - 1,
                                           "table": key >> ROW_BITS}, "meta": k})
            ctx.set(port.valid, 1)
            await ctx.tick().until(port.ready)
            ctx.set(port.valid, 0)
        while sum(map(len, self.seen.values())) < len(keys) * self.beats:
            await ctx.tick()
        for k, key in enumerate(keys):
            assert self.seen[k] == words(self.store.read(np.array([key]))[0][0], self.beats)

    async def before(self, ctx, keys: list[int]) -> None:
        await self.look_up(ctx, self.held)

    async def after(self, ctx, keys: list[int]) -> None:
        await self.look_up(ctx, keys)


def joined(dimension: int, **fields) -> NicConfig:
    return preset("tiny").with_fields(**{
        "training": True, "max_dimension": dimension, "local_cache_rows": 32,
        "misses_in_flight": 8} | fields)


@pytest.mark.thorough
@pytest.mark.parametrize("name, dimension, stall", [
    ("sgd", 16, 0.0), pytest.param("rowwise-adagrad", 32, 0.3, marks=pytest.mark.slow)])
def test_rows_are_found_after_their_step(name, dimension, stall):
    """Each step updates rows that were just looked up, most still in the cache, and others."""
    keys = some_keys(60, random.Random(dimension))
    world = CachedWorld(joined(dimension), dimension, SwiftHost(name), keys[::2], seed=1,
                        stall=stall)
    counters = run(world, [passes(keys[:40], dimension, 1, (15,)),
                           passes(keys[10:], dimension, 2)])
    assert 20 < counters["update_misses"] < 70


@pytest.mark.slow
@pytest.mark.parametrize("mode", range(2))
def test_a_beat_in_two_cycles_from_sums_to_rows(mode):
    """All rows in the cache, a sum a cycle, states after 20 cycles, the real optimizer."""
    keys = some_keys(160, random.Random(8))
    world = CachedWorld(
        joined(16, update_rows=256, local_cache_rows=1024, misses_in_flight=64), 16,
        Optimizer(OPTIMIZERS[mode], 0.05, 1e-6), keys, seed=8, stall=0.0, latency=(20, 20),
        shuffled=False, settled=True)
    counters = run(world, [passes(keys, 16, 8)])
    sums, rows = world.times["sum"], world.times["row"]
    # The first lookup waits two cycles: the cache registers ``settled``, then the turn changes.
    assert sums[-1] - sums[0] == len(keys) - 1 + 2
    assert rows[-1] - rows[0] == 2 * (len(keys) - 1)
    assert rows[0] - sums[0] == (48, 135)[mode]
    assert counters["update_misses"] == counters["stall_places"] == 0

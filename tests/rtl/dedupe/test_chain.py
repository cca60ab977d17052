"""Dedupe table in front of the local cache answers every request, also at the smallest sizes."""

from collections import Counter

import pytest
from amaranth.hdl import Module

from rtl.cache import LocalCache
from rtl.config import preset
from rtl.dedupe import DedupeTable
from tests.rtl.dedupe.test_table import Fetches, beat_of, requests_of, unique_of
from tests.rtl.power_up import powered_up
from tests.support import receiver, sender, simulate

SMALL = {"dedupe_in_flight": 4, "scatter_entries": 4, "misses_in_flight": 4, "dedupe_keys": 8,
         "local_cache_rows": 8}
ROOMY = {"dedupe_keys": 512}


@pytest.mark.few(2)
@pytest.mark.parametrize("changes, stall", [
    pytest.param(changes, stall, id=f"{name}-{stall}",
                 marks=pytest.mark.slow if slow == stall else ())
    for name, changes, slow in (("roomy", ROOMY, 0.0), ("smallest", SMALL, None),
                                ("more nodes", SMALL | {"scatter_entries": 16}, 0.6))
    for stall in (0.0, 0.6)])
def test_each_request_is_answered_once(changes, stall):
    config, beats = preset("tiny").with_fields(**changes), 2
    m = Module()
    m.submodules.dedupe = dedupe = DedupeTable(config)
    m.submodules.cache = cache = LocalCache(config)
    asked, given, found, fills = dedupe.misses, cache.lookups, cache.vectors, dedupe.fills
    m.d.comb += [
        given.valid.eq(asked.valid), given.payload.key.eq(asked.payload.key),
        given.payload.meta.eq(asked.payload.id), asked.ready.eq(given.ready),
        fills.valid.eq(found.valid), fills.payload.id.eq(found.payload.meta),
        fills.payload.data.eq(found.payload.data), fills.payload.last.eq(found.payload.last),
        found.ready.eq(fills.ready)]
    items = requests_of((4, 5, 6), 70, 60, seed=9, overlap=30)
    fetches, taken = Fetches(cache, latency=(5, 90), beats=beats), []

    async def configure(ctx):
        for block in (dedupe, cache):
            ctx.set(block.enable, 1)
            ctx.set(block.vector_beats, beats)
        ctx.set(cache.sets, config.local_cache_sets)
        ctx.set(dedupe.step_floor, 4)

    async def finish(ctx):
        while len(taken) < len(items) * beats or not (
                ctx.get(dedupe.idle) and ctx.get(cache.idle)):
            await ctx.tick()
        here, there = dedupe.counters, cache.counters
        assert ctx.get(here.unique) == ctx.get(there.accesses)
        assert ctx.get(there.misses) == len(fetches.keys)
        assert ctx.get(here.bad_fills) == ctx.get(there.bad_fills) == 0
        if changes == ROOMY:
            assert ctx.get(here.retired_early) == 0
            assert ctx.get(here.unique) == unique_of(items)

    simulate(powered_up(m), configure, sender(dedupe.requests, items, stall=stall / 2),
             receiver(dedupe.vectors, taken, len(items) * beats, stall=stall), finish,
             background=[fetches.take, fetches.give], limit=30_000)
    keys = {item["landing"]: item["key"] for item in items}
    assert Counter(got["tag"]["landing"] for got in taken[::beats]) == Counter(keys.keys())
    for number, got in enumerate(taken):
        key = keys[got["tag"]["landing"]]
        assert got["data"] == beat_of(key["table"], key["row"], number % beats)

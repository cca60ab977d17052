"""LocalCache: the cache of an owner's rows, between the dedupe table and the GPU."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.cache.cache import CACHE_COUNTERS, EmbeddingCache, tap_layout
from rtl.cache.fills import FILL_ID_BITS, FillBeat
from rtl.cache.flush import CacheFlush
from rtl.cache.vectors import row_write_layout, vector_beat_layout
from rtl.config import NicConfig
from rtl.formats import Key
from rtl.gateable import Gateable
from rtl.keys.hashing import hash_bits
from rtl.monitor.counters import CounterLayout

__all__ = ["LOCAL_CACHE_COUNTERS", "LocalCache"]

LOCAL_CACHE_COUNTERS = tuple(name for name in CACHE_COUNTERS if name != "unmerged")
"""Counters of an :class:`EmbeddingCache` in which a key in flight always serves its lookups.
Training adds ``frozen``."""


class LocalCache(Gateable, wiring.Component):
    """Cache the rows that this node owns; the GPU looks up its misses (paper, 4.1.1).

    Lookups come from the dedupe table, so ``meta`` is the id of the fetch in that table, and at
    most ``dedupe_in_flight`` lookups are inside. Each has a scatter node.

    With ``config.training``, rows are updated: they are looked up (``updates``, ``updated``) while
    the cache is ``frozen`` and, if they are cached, written back (``write``). A lookup for an
    update waits until the cache has settled, because a row still being fetched would be stale after
    the update. With honest peers no such fetch exists: gradients follow from the vectors of all
    lookups of their step.

    Without ``enable``, no row is cached; in unused sets, no row is found. Rows stored there become
    stale meanwhile. After an update of rows, the cache must therefore be reset before it is enabled
    again or ``sets`` changes.

    The block is an :class:`EmbeddingCache` of ``config.local_cache_rows``; see there for latency,
    throughput, progress and the meaning of the ports. The first lookup of a run for updates takes
    two more cycles; updates and other lookups take turns.

    Ports
    -----
    lookups: input stream of ``key`` (:data:`rtl.formats.Key`) and ``meta``, 16 bits.
    vectors: output stream of ``data``, ``meta``, ``last``.
    updates: input stream like ``lookups``: rows to update (training).
    updated: output stream of their vectors, with ``slot`` and ``held`` (training).
    frozen: 1 from before the first lookup for an update until its row is written, in the cache and
        in GPU memory (training).
    write: see :class:`EmbeddingCache` (training).
    misses: output stream of ``key`` and ``id``, 16 bits: vectors to fetch.
    fills: input stream of ``id``, ``data``, ``last``; always ready after the sweep.
    enable: 0: each lookup is fetched separately.
    flush, flushing: see :class:`~rtl.cache.flush.CacheFlush`.
    sets, vector_beats, evicted, landed, tap, idle: as in :class:`EmbeddingCache`.
    counters: see :data:`LOCAL_CACHE_COUNTERS`.
    """

    LATENCY = EmbeddingCache.LATENCY
    RATE = EmbeddingCache.RATE

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self._config = config
        self._counters = LOCAL_CACHE_COUNTERS + ("frozen",) * config.training
        super().__init__({
            "lookups": In(stream.Signature(
                data.StructLayout({"key": Key, "meta": FILL_ID_BITS}))),
            "vectors": Out(stream.Signature(vector_beat_layout(FILL_ID_BITS))),
            "misses": Out(stream.Signature(data.StructLayout({"key": Key, "id": FILL_ID_BITS}))),
            "fills": In(stream.Signature(FillBeat)),
            "sets": In(range(config.local_cache_sets + 1)), "enable": In(1),
            "flush": In(1), "flushing": Out(1),
            "vector_beats": In(range(config.vector_beats + 1)),
            "evicted": Out(data.StructLayout({"valid": 1, "key": Key})), "landed": Out(1),
            "tap": Out(tap_layout(Key)),
            "counters": Out(CounterLayout(*self._counters)), "idle": Out(1)} | ({
                "updates": In(stream.Signature(
                    data.StructLayout({"key": Key, "meta": FILL_ID_BITS}))),
                "updated": Out(stream.Signature(
                    vector_beat_layout(FILL_ID_BITS, config.local_cache_rows))),
                "frozen": In(1),
                "write": In(stream.Signature(
                    row_write_layout(config.local_cache_rows, config.vector_beats))),
            } if config.training else {}))

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        m.submodules.cache = cache = EmbeddingCache(
            Key.size, FILL_ID_BITS + config.training,
            rows=config.local_cache_rows, ways=config.local_cache_ways,
            in_flight=config.misses_in_flight, waiters=config.dedupe_in_flight,
            vector_beats=config.vector_beats, hash_key=hash_bits, store_bits=config.store_bits,
            updated=config.training, policy=config.policy)
        m.submodules.flushing = flush = CacheFlush(config.misses_in_flight)
        wiring.connect(m, wiring.flipped(self.fills), cache.fills)
        if config.training:
            self._share(m, cache, flush.flushing)
        else:
            wiring.connect(m, cache.vectors, wiring.flipped(self.vectors))
            m.d.comb += [
                cache.lookups.valid.eq(self.lookups.valid & ~flush.flushing),
                cache.lookups.payload.eq(Cat(self.lookups.payload)),
                self.lookups.ready.eq(cache.lookups.ready & ~flush.flushing),
            ]
        m.d.comb += [
            self.misses.valid.eq(cache.misses.valid),
            Cat(self.misses.payload.key).eq(cache.misses.payload.key),
            self.misses.payload.id.eq(cache.misses.payload.id),
            cache.misses.ready.eq(self.misses.ready),
            cache.sets.eq(self.sets), cache.enable.eq(self.enable), cache.merge.eq(self.enable),
            cache.vector_beats.eq(self.vector_beats),
            Cat(self.evicted).eq(cache.evicted), Cat(self.tap).eq(cache.tap),
            self.idle.eq(cache.idle & ~flush.flushing), self.landed.eq(cache.landed),
            flush.flush.eq(self.flush), self.flushing.eq(flush.flushing),
            flush.asked.eq(cache.misses.valid & cache.misses.ready),
            flush.landed.eq(cache.landed), flush.idle.eq(cache.idle),
            cache.forget.eq(flush.forget),
        ]
        m.d.comb += [self.counters[name].eq(cache.counters[name]) for name in self._counters]
        return m

    def _share(self, m: Module, cache: EmbeddingCache, flushing: Signal) -> None:
        """Let lookups and updates use the cache in turn, and route the vectors by the top bit of
        the meta.

        The turn is decided in the previous cycle, so no ready depends on the other input's valid.
        Lookups have the turn unless an update waits.
        """
        wiring.connect(m, wiring.flipped(self.write), cache.write)
        turn = Signal()
        m.d.comb += [
            cache.frozen.eq(self.frozen),
            cache.lookups.valid.eq(~flushing & Mux(
                turn, self.updates.valid & cache.settled, self.lookups.valid)),
            Cat(cache.lookups.payload).eq(Mux(turn, Cat(self.updates.payload, 1),
                                              Cat(self.lookups.payload, 0))),
            self.lookups.ready.eq(cache.lookups.ready & ~turn & ~flushing),
            self.updates.ready.eq(cache.lookups.ready & turn & cache.settled & ~flushing),
        ]
        with m.If(cache.lookups.ready):
            m.d.sync += turn.eq(cache.settled & Mux(turn, ~self.lookups.valid, self.updates.valid))
        found, mine = cache.vectors, cache.vectors.payload.meta[-1]
        m.d.comb += [
            self.vectors.valid.eq(found.valid & ~mine), self.updated.valid.eq(found.valid & mine),
            found.ready.eq(Mux(mine, self.updated.ready, self.vectors.ready)),
            *(port.payload[name].eq(found.payload[name]) for port in (self.vectors, self.updated)
              for name in port.payload.shape().members),
        ]

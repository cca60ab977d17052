"""LocalCache: the cache of an owner's rows, in front of the GPU."""

from amaranth.hdl import Cat, Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import NicConfig
from rtl.counters import CounterLayout
from rtl.formats import Key
from rtl.hashing import hash_bits

from .cache import CACHE_COUNTERS, EmbeddingCache, tap_layout
from .fills import FILL_ID_BITS, FillBeat
from .vectors import vector_beat_layout

__all__ = ["LOCAL_CACHE_COUNTERS", "LocalCache"]

LOCAL_CACHE_COUNTERS = tuple(name for name in CACHE_COUNTERS if name != "unmerged")
"""Those of an :class:`EmbeddingCache`, in which a key on its way always serves its lookups."""


class LocalCache(wiring.Component):
    """Cache of the rows that this node owns; what it misses, the GPU looks up (paper, 4.1.1).

    Its lookups come from the dedupe table, so ``meta`` is the id of the fetch there, and at most
    ``dedupe_in_flight`` lookups are here at once: there is a scatter node for each.

    An :class:`EmbeddingCache` of ``config.local_cache_rows``: latency, throughput, progress and
    the meaning of the ports are found there.

    Ports
    -----
    lookups: input stream of ``key`` (:data:`rtl.formats.Key`) and ``meta``, 16 bits.
    vectors: output stream of ``data``, ``meta``, ``last``.
    misses: output stream of ``key`` and ``id``, 16 bits: vectors to be fetched.
    fills: input stream of ``id``, ``data``, ``last``; always ready after the sweep.
    enable: 0: each lookup is fetched for itself.
    sets, vector_beats, evicted, landed, tap, idle: as in :class:`EmbeddingCache`. counters: see
        :data:`LOCAL_CACHE_COUNTERS`.
    """

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self._config = config
        super().__init__({
            "lookups": In(stream.Signature(
                data.StructLayout({"key": Key, "meta": FILL_ID_BITS}))),
            "vectors": Out(stream.Signature(vector_beat_layout(FILL_ID_BITS))),
            "misses": Out(stream.Signature(data.StructLayout({"key": Key, "id": FILL_ID_BITS}))),
            "fills": In(stream.Signature(FillBeat)),
            "sets": In(range(config.local_cache_sets + 1)), "enable": In(1),
            "vector_beats": In(range(config.vector_beats + 1)),
            "evicted": Out(data.StructLayout({"valid": 1, "key": Key})), "landed": Out(1),
            "tap": Out(tap_layout(Key)),
            "counters": Out(CounterLayout(*LOCAL_CACHE_COUNTERS)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        m.submodules.cache = cache = EmbeddingCache(
            Key.size, FILL_ID_BITS, rows=config.local_cache_rows, ways=config.local_cache_ways,
            in_flight=config.misses_in_flight, waiters=config.dedupe_in_flight,
            vector_beats=config.vector_beats, hash_key=hash_bits, store_bits=config.store_bits)
        wiring.connect(m, wiring.flipped(self.fills), cache.fills)
        wiring.connect(m, cache.vectors, wiring.flipped(self.vectors))
        m.d.comb += [
            cache.lookups.valid.eq(self.lookups.valid),
            cache.lookups.payload.eq(Cat(self.lookups.payload)),
            self.lookups.ready.eq(cache.lookups.ready),
            self.misses.valid.eq(cache.misses.valid),
            Cat(self.misses.payload.key).eq(cache.misses.payload.key),
            self.misses.payload.id.eq(cache.misses.payload.id),
            cache.misses.ready.eq(self.misses.ready),
            cache.sets.eq(self.sets), cache.enable.eq(self.enable), cache.merge.eq(self.enable),
            cache.vector_beats.eq(self.vector_beats),
            Cat(self.evicted).eq(cache.evicted), Cat(self.tap).eq(cache.tap),
            self.idle.eq(cache.idle), self.landed.eq(cache.landed),
        ]
        m.d.comb += [self.counters[name].eq(cache.counters[name]) for name in LOCAL_CACHE_COUNTERS]
        return m

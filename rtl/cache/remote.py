"""RemoteCache: the cache of other nodes' rows, at the requester."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.cache.answer_check import AnswerCheck
from rtl.cache.cache import CACHE_COUNTERS, EmbeddingCache, tap_layout
from rtl.cache.flush import CacheFlush
from rtl.config import NicConfig
from rtl.formats import (
    LANDING_BITS,
    NODE_BITS,
    STEP_BITS,
    Key,
    LookupRecord,
    OutgoingRecord,
    PeerBeat,
    TaggedBeat,
)
from rtl.gateable import Gateable
from rtl.keys.hashing import hash_bits
from rtl.monitor.counters import CounterLayout

__all__ = ["RemoteCache"]

_Wanted = data.StructLayout({"landing": LANDING_BITS, "step": STEP_BITS, "owner": NODE_BITS})
"""Data of a lookup: the place of its vector, its step and its owner."""


class RemoteCache(Gateable, wiring.Component):
    """Cache rows that other nodes own; each lookup passes it before it leaves (paper, 4.1.2).

    A lookup that misses goes to its owner with a miss id and its lap (:class:`AnswerCheck`) instead
    of the landing index. The owner echoes both; the vector fills the cache and goes from there to
    its reserved place. Identical keys therefore need to travel only once (requester-side merge):
    with ``merge``, one answer serves all waiting lookups. Without it, a key in flight is sent again
    for each lookup, as in the paper.

    The block is an :class:`EmbeddingCache` of ``config.remote_cache_rows``; see there for latency,
    throughput, progress and the exact meaning of the settings. Every vector from another node
    passes this block, even with both settings off. The scatter lists have a node for each place of
    the hold buffer, so they are never full.

    Ports
    -----
    lookups: input stream of :data:`rtl.formats.OutgoingRecord`, ``landing`` a reserved place.
    misses: output stream of :data:`rtl.formats.OutgoingRecord`, ``landing`` a miss id and its lap.
    fills: input stream of :data:`rtl.formats.PeerBeat`, ``tag`` the ``landing`` of a miss; always
        ready after the sweep. A vector is dropped and counted in ``bad_fills`` if no lookup waits
        for it, if another node sent it, or if it arrives in the cycle after its miss was taken.
    vectors: output stream of :data:`rtl.formats.TaggedBeat`, ``tag`` the place.
    enable: 0: a vector serves the lookups that wait for it, but no later lookup.
    merge: 0: each lookup of a key in flight is sent.
    flush, flushing: see :class:`~rtl.cache.flush.CacheFlush`.
    sets, vector_beats, evicted, landed, tap, counters, idle: as in :class:`EmbeddingCache`.

    Raises ``TypeError`` if ``config`` is not a :class:`~rtl.config.NicConfig`.
    """

    LATENCY = EmbeddingCache.LATENCY
    RATE = EmbeddingCache.RATE

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self._config = config
        super().__init__({
            "lookups": In(stream.Signature(OutgoingRecord)),
            "misses": Out(stream.Signature(OutgoingRecord)),
            "fills": In(stream.Signature(PeerBeat)),
            "vectors": Out(stream.Signature(TaggedBeat)),
            "sets": In(range(config.remote_cache_sets + 1)), "enable": In(1), "merge": In(1),
            "flush": In(1), "flushing": Out(1),
            "vector_beats": In(range(config.vector_beats + 1)),
            "evicted": Out(data.StructLayout({"valid": 1, "key": Key})), "landed": Out(1),
            "tap": Out(tap_layout(Key)),
            "counters": Out(CounterLayout(*CACHE_COUNTERS)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        m.submodules.cache = cache = EmbeddingCache(
            Key.size, _Wanted, rows=config.remote_cache_rows, ways=config.remote_cache_ways,
            in_flight=config.remote_in_flight, waiters=config.hold_vectors,
            vector_beats=config.vector_beats, hash_key=hash_bits, store_bits=config.store_bits,
            policy=config.policy, checked=True, lossy=config.link)
        m.submodules.check = check = AnswerCheck(config.remote_in_flight)
        m.submodules.flushing = flush = CacheFlush(config.remote_in_flight)
        wanted, asked = Signal(LookupRecord), Signal(LookupRecord)
        lookup, miss = self.lookups.payload, self.misses.payload
        key, missed = Signal(Key), Signal(Key)
        m.d.comb += [
            wanted.eq(lookup.record), key.row.eq(wanted.row), key.table.eq(wanted.table),
            cache.lookups.valid.eq(self.lookups.valid & ~flush.flushing),
            self.lookups.ready.eq(cache.lookups.ready & ~flush.flushing),
            cache.lookups.payload.key.eq(key),
            cache.lookups.payload.meta.landing.eq(wanted.landing),
            cache.lookups.payload.meta.step.eq(lookup.step),
            cache.lookups.payload.meta.owner.eq(lookup.destination),
            missed.eq(cache.misses.payload.key),
            asked.row.eq(missed.row), asked.table.eq(missed.table),
            check.asked.id.eq(cache.misses.payload.id), asked.landing.eq(check.tag),
            check.asked.node.eq(miss.destination),
            check.asked.valid.eq(self.misses.valid & self.misses.ready),
            self.misses.valid.eq(cache.misses.valid), cache.misses.ready.eq(self.misses.ready),
            miss.record.eq(asked), miss.step.eq(cache.misses.payload.meta.step),
            miss.destination.eq(cache.misses.payload.meta.owner),
            cache.fills.valid.eq(self.fills.valid), self.fills.ready.eq(cache.fills.ready),
            cache.fills.payload.id.eq(self.fills.payload.tag & (config.remote_in_flight - 1)),
            check.vector.tag.eq(self.fills.payload.tag),
            check.vector.source.eq(self.fills.payload.source),
            cache.owed.eq(check.owed), check.landed.eq(cache.landed),
            cache.fills.payload.data.eq(self.fills.payload.data),
            cache.fills.payload.last.eq(self.fills.payload.last),
            cache.fills.payload.lost.eq(self.fills.payload.lost),
            self.vectors.valid.eq(cache.vectors.valid),
            cache.vectors.ready.eq(self.vectors.ready),
            self.vectors.payload.tag.eq(cache.vectors.payload.meta.landing),
            self.vectors.payload.data.eq(cache.vectors.payload.data),
            self.vectors.payload.last.eq(cache.vectors.payload.last),
            self.vectors.payload.lost.eq(cache.vectors.payload.lost),
            cache.sets.eq(self.sets), cache.enable.eq(self.enable), cache.merge.eq(self.merge),
            cache.vector_beats.eq(self.vector_beats),
            Cat(self.evicted).eq(Cat(cache.evicted)), Cat(self.tap).eq(Cat(cache.tap)),
            self.counters.eq(cache.counters),
            self.idle.eq(cache.idle & check.idle & ~flush.flushing),
            flush.flush.eq(self.flush), self.flushing.eq(flush.flushing),
            flush.asked.eq(self.misses.valid & self.misses.ready),
            flush.landed.eq(cache.landed), flush.idle.eq(cache.idle),
            cache.forget.eq(flush.forget),
            self.landed.eq(cache.landed),
        ]
        return m

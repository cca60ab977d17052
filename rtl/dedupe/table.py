"""DedupeTable: each key is looked up only once per step."""

from amaranth.hdl import C, Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.cache import FILL_ID_BITS, EmbeddingCache, FillBeat
from rtl.cache.flush import CacheFlush
from rtl.config import NicConfig
from rtl.formats import STEP_BITS, Key, Request, ScatterTag, VectorBeat
from rtl.gateable import Gateable
from rtl.keys.hashing import hash_bits
from rtl.monitor.counters import CounterLayout, count

__all__ = ["DEDUPE_COUNTERS", "DedupeTable"]

_PASSED_ON = {  # counter here: the cache's counter with the same value
    "requests": "accesses", "unique": "misses", "merged": "hits", "conflict_misses":
    "conflict_misses", "bad_fills": "bad_fills", "beats_in": "beats_in", "beats_out": "beats_out",
    "stall_in_flight": "stall_in_flight", "stall_waiters": "stall_waiters",
    "stall_output": "stall_output"}

DEDUPE_COUNTERS = (*_PASSED_ON, "retired_early")


def _hash_request(key: Value) -> Value:
    """Return the hash of a key and of its step, which is above the key.

    The step, low bits first, is XORed with the top bits of the key's hash. Equal keys of
    neighbouring steps are then in different sets, and the use of sets stays uniform.
    """
    step = key[Key.size:]
    return hash_bits(key[:Key.size]) ^ Cat(C(0, 32 - STEP_BITS), *reversed(list(step)))


class DedupeTable(Gateable, wiring.Component):
    """Merge the requests of a step for the same key, from any node (paper, 4.1.1, figure 9).

    An :class:`~rtl.cache.EmbeddingCache` keyed by step and key, with the requester's node, reserved
    place and step as meta. The first request of a key in a step passes to ``misses``. Later
    requests wait in its scatter list, or read the vector from the entry once it has arrived. For
    latency, throughput and progress see the cache.

    An entry keeps its vector until it is the oldest of a full set. Entries of finished steps count
    as oldest and need no clearing. An entry of a step in use may be retired early: this is counted,
    and a later request of its key is looked up again. Steps count modulo 2^16: a request 65,536
    steps later could hit an old entry, unless ``dedupe_ways`` new keys have passed through its set
    in between. Training, where rows change from step to step, clears the entries before that.

    Parameters
    ----------
    config: sizes: ``dedupe_keys`` entries in sets of ``dedupe_ways``, ``dedupe_in_flight``,
        ``scatter_entries`` and ``max_dimension``.

    Ports
    -----
    requests: input stream of :data:`rtl.formats.Request`.
    vectors: output stream of :data:`rtl.formats.VectorBeat`, the beats of a vector in sequence.
    misses: output stream of ``key`` (:data:`rtl.formats.Key`) and ``id``, 16 bits.
    fills: input stream of ``id``, ``data``, ``last``; always ready after the sweep.
    step_floor: lowest step that requests may still belong to, modulo 2^16; within 2^15 of every
        step in use.
    forget: event: clear all entries. Requests wait from the next cycle on; when the requests inside
        are answered, the table is swept as after reset. forgetting: this is in progress.
    enable: 0: no requests are merged.
    vector_beats: beats of a vector, fixed after the first request.
    counters: see :data:`DEDUPE_COUNTERS`. ``requests`` = ``unique`` + ``merged``, where ``unique``
        counts requests that passed to ``misses``. ``retired_early`` counts evicted entries of steps
        in use, and conflict misses, which got no entry: while it is 0, ``unique`` is the number of
        distinct keys, summed over the steps.
    idle: no movement until an input moves.
    """

    LATENCY = EmbeddingCache.LATENCY
    RATE = EmbeddingCache.RATE

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self._config = config
        super().__init__({
            "requests": In(stream.Signature(Request)),
            "vectors": Out(stream.Signature(VectorBeat)),
            "misses": Out(stream.Signature(data.StructLayout({"key": Key, "id": FILL_ID_BITS}))),
            "fills": In(stream.Signature(FillBeat)),
            "step_floor": In(STEP_BITS), "enable": In(1),
            "vector_beats": In(range(config.vector_beats + 1)),
            "forget": In(1), "forgetting": Out(1),
            "counters": Out(CounterLayout(*DEDUPE_COUNTERS)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        m.submodules.entries = entries = EmbeddingCache(
            Key.size + STEP_BITS, ScatterTag.size, rows=config.dedupe_keys,
            ways=config.dedupe_ways, in_flight=config.dedupe_in_flight,
            waiters=config.scatter_entries, vector_beats=config.vector_beats,
            hash_key=_hash_request, store_bits=config.store_bits, policy="lru")
        m.submodules.flush = flush = CacheFlush(config.dedupe_in_flight)
        request, vector, tag = self.requests.payload, self.vectors.payload, Signal(ScatterTag)
        wiring.connect(m, wiring.flipped(self.fills), entries.fills)
        m.d.comb += [
            tag.landing.eq(request.landing), tag.node.eq(request.node), tag.step.eq(request.step),
            entries.lookups.valid.eq(self.requests.valid & ~flush.flushing),
            entries.lookups.payload.key.eq(Cat(request.key, request.step)),
            entries.lookups.payload.meta.eq(tag),
            self.requests.ready.eq(entries.lookups.ready & ~flush.flushing),
            self.vectors.valid.eq(entries.vectors.valid),
            vector.data.eq(entries.vectors.payload.data),
            Cat(vector.tag).eq(entries.vectors.payload.meta),
            vector.last.eq(entries.vectors.payload.last),
            entries.vectors.ready.eq(self.vectors.ready),
            self.misses.valid.eq(entries.misses.valid),
            Cat(self.misses.payload.key).eq(entries.misses.payload.key[:Key.size]),
            self.misses.payload.id.eq(entries.misses.payload.id),
            entries.misses.ready.eq(self.misses.ready),
            entries.sets.eq(config.dedupe_sets), entries.enable.eq(self.enable),
            entries.merge.eq(self.enable),
            entries.vector_beats.eq(self.vector_beats),
            self.idle.eq(entries.idle & ~flush.flushing), entries.forget.eq(flush.forget),
            flush.flush.eq(self.forget), self.forgetting.eq(flush.flushing),
            flush.asked.eq(self.misses.valid & self.misses.ready),
            flush.landed.eq(entries.landed), flush.idle.eq(entries.idle),
        ]
        ahead = Signal(STEP_BITS)
        m.d.comb += ahead.eq(entries.evicted.key[Key.size:] - self.step_floor)
        early = entries.evicted.valid & ~ahead[-1]  # at or above the floor, modulo 2^16
        m.d.comb += [self.counters[here].eq(entries.counters[there])
                     for here, there in _PASSED_ON.items()]
        count(m, self.counters, retired_early=early | (entries.tap.valid & entries.tap.conflict))
        return m

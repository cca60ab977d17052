"""EmbeddingCache: a set-associative, non-blocking cache of vectors."""

from collections.abc import Callable

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.cache.fills import FILL_ID_BITS, FillBeat, FillWriter
from rtl.cache.free_list import FreeList
from rtl.cache.miss_table import MissTable
from rtl.cache.policies import policy_of
from rtl.cache.resolver import Resolver
from rtl.cache.scatter_list import ScatterList
from rtl.cache.tags import TagPipeline
from rtl.cache.vectors import VectorStore, row_write_layout, vector_beat_layout
from rtl.config import BEAT_BITS
from rtl.memory import report_swept
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import SkidBuffer

__all__ = ["CACHE_COUNTERS", "EmbeddingCache", "tap_layout"]

CACHE_COUNTERS = (
    "accesses", "hits", "hits_pending", "misses", "conflict_misses", "unmerged", "evictions",
    "bad_fills", "beats_in", "beats_out", "stall_in_flight", "stall_waiters", "stall_output")


def tap_layout(key_shape) -> data.StructLayout:
    """Layout of the event that a lookup was decided, in lookup order."""
    return data.StructLayout({
        "valid": 1, "key": key_shape, "hit": 1, "pending": 1, "conflict": 1, "unmerged": 1})


class EmbeddingCache(wiring.Component):
    """Answer every lookup with the vector of its key; fetch vectors that are not cached.

    Each set has a replacement policy, by default exact LRU, and allocates at lookup (paper, section
    4.1.1). A lookup has one of three outcomes:

    * The vector is cached: the lookup reads its slot.
    * The vector is being fetched: the lookup waits in the scatter list of that fetch. This is a
      hit, also counted in ``hits_pending``.
    * A miss: the lookup takes a miss id and requests the vector. It allocates the policy's victim,
      or no way if the victim is still being fetched (a conflict miss, see :class:`TagPipeline`).

    Hits are served while misses are outstanding. Answers are therefore not in lookup order;
    ``meta`` identifies them.

    **No row is overwritten while a read of it is queued.** Direct hits and misses leave the tag
    pipeline through one queue. A miss passes to ``misses`` only after the reads of all earlier
    direct hits were issued, so the requested vector cannot reach the slot earlier. A waiting lookup
    reads the landing row of its miss id, which is released after its last read.

    **Rows are updated** in place with ``updated``. While ``frozen`` is 1, lookups hit, or fetch
    only for themselves, and no slot changes its key. New values of a ``held`` vector may therefore
    be written to its ``slot`` as long as ``frozen`` stays 1. A fetch that began earlier could still
    write an old row to a slot. ``settled`` is 1 when no such fetch is left; lookups for updates
    wait for it.

    **Progress.** Fills are accepted in every cycle. A lookup waits for a miss id or a node of the
    scatter lists. Both are released as fills arrive and vectors leave, so a full table delays
    lookups but never changes an answer.

    After reset, a sweep of the tables takes max(rows / ways, in_flight) cycles, without accepting
    input.

    Parameters
    ----------
    key_bits: bits of a key.
    meta_shape: shape of the data returned with the vector.
    rows: capacity in vectors, a multiple of ``ways``, at least two sets.
    ways: ways of a set, a power of two.
    in_flight: fetches that may be outstanding, a power of two.
    waiters: lookups that may wait in scatter lists.
    vector_beats: beats of the longest vector.
    hash_key: maps the value of a key to 32 hash bits.
    store_style: style of the RAM of the slots.
    store_bits: bits of a beat that are stored; the other bits, of unused lanes, are read as 0.
    updated: rows may be updated; adds ports.
    checked: another block decides which vectors may be taken; adds a port.
    lossy: a vector may be ``lost``, for all lookups that it serves.
    policy: the replacement policy, of :data:`rtl.config.POLICY_CODES`.

    Ports
    -----
    lookups: input stream of ``key`` and ``meta``.
    vectors: output stream of ``data``, ``meta``, ``last``: the beats of a vector are consecutive.
        With ``updated`` also ``slot`` and ``held``: the vector is in that slot; ``held`` is 0 for a
        vector that was fetched, or waited for a fetch.
    misses: output stream of ``key``, ``id`` and the ``meta`` of the lookup: vectors to fetch.
    fills: input stream of ``id``, ``data``, ``last``: a vector, in any order of ids. Always ready,
        except during the sweep. A vector is dropped and counted in ``bad_fills`` if its id is not
        outstanding or if it does not have ``vector_beats`` beats.
    owed: one cycle after a vector's first beat: 1 if it may be taken, 0 to drop it (checked).
    sets: sets in use, 1 to ``rows / ways``: set = hash[31:8] * sets / 2^24. May change while idle;
        rows in unused sets are not found.
    enable: vectors that have arrived serve later lookups.
    merge: a vector in flight serves the lookups of its key. With ``enable`` and ``merge`` 0, each
        lookup is fetched separately; see :class:`TagPipeline`.
    vector_beats: beats of a vector. Must not change after the first lookup; reset to change it.
    forget: clear all entries, as after reset; only while no lookup is inside or waits for a fill,
        and none arrives in that cycle.
    frozen: lookups leave slots, sets and the state of their policy unchanged (updated).
    settled: ``frozen``, and the row of every slot has arrived (updated).
    write: input stream of :func:`~rtl.cache.vectors.row_write_layout`: a beat of a row for its slot
        (updated). One per cycle, except in cycles that write a fill to a slot. No such cycle occurs
        while ``settled``; lookups taken after the write then read it.
    evicted: event: a cached key was removed.
    landed: event: a requested vector has arrived.
    tap: event: a lookup was decided, in order.
    counters: see :data:`CACHE_COUNTERS`. ``hits`` includes ``hits_pending``; ``misses`` includes
        ``conflict_misses`` and ``unmerged``, of a key in flight; ``stall_*`` are cycles in which a
        lookup waits, by cause. Lookups while ``frozen`` count only in ``frozen`` (updated), and are
        not in ``tap``.
    idle: inactive until an input changes. Lookups that wait for a fill do not clear it.

    Raises ``TypeError`` or ``ValueError`` for a size that is not an integer or out of range, and
    for an unknown policy.
    """

    LATENCY = {
        ("lookup that hits", "vector"): 18,
        ("lookup that misses", "miss"): 14,
        ("last beat of a fill", "vector"): 17,
    }
    RATE = (
        "1 lookup, 1 miss, 1 fill beat and 1 beat out per cycle, runs of one key or one set "
        "included; a hit takes 3 cycles while no node is free; with n miss ids to spare, fewer "
        "than 7, n lookups in 7 cycles")
    def __init__(self, key_bits: int, meta_shape, *, rows: int, ways: int, in_flight: int,
                 waiters: int, vector_beats: int, hash_key: Callable[[Value], Value],
                 store_style: str = "uram", store_bits: int = BEAT_BITS, updated: bool = False,
                 policy: str = "lru", checked: bool = False, lossy: bool = False):
        sizes = {"key_bits": (key_bits, 1), "ways": (ways, 1), "rows": (rows, 2),
                 "in_flight": (in_flight, 2), "waiters": (waiters, 2),
                 "vector_beats": (vector_beats, 1), "store_bits": (store_bits, 1)}
        for name, (value, low) in sizes.items():
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be an integer, not {value!r}")
            if value < low:
                raise ValueError(f"{name} must be at least {low}, not {value!r}")
        for name, value in (("ways", ways), ("in_flight", in_flight)):
            if value & (value - 1):
                raise ValueError(f"{name} must be a power of two, not {value!r}")
        if in_flight > 1 << FILL_ID_BITS:
            raise ValueError(f"in_flight must be at most {1 << FILL_ID_BITS}, not {in_flight!r}")
        if rows % ways or rows < 2 * ways:
            raise ValueError(f"rows must be a multiple of ways ({ways}), at least twice, "
                             f"not {rows!r}")
        policy_of(policy, ways)
        self._policy = policy
        self._key_bits, self._meta, self._hash = key_bits, meta_shape, hash_key
        self._rows, self._ways, self._ids, self._nodes = rows, ways, in_flight, waiters
        self._beats, self._style, self._bits = vector_beats, store_style, store_bits
        self._updated, self._checked, self._lossy = updated, checked, lossy
        self._lookup = data.StructLayout({"key": key_bits, "meta": meta_shape})
        self._miss = data.StructLayout(
            {"key": key_bits, "id": FILL_ID_BITS, "meta": meta_shape})
        super().__init__({
            "lookups": In(stream.Signature(self._lookup)),
            "vectors": Out(stream.Signature(
                vector_beat_layout(meta_shape, rows if updated else 0))),
            "misses": Out(stream.Signature(self._miss)),
            "fills": In(stream.Signature(FillBeat)),
            "sets": In(range(rows // ways + 1)), "enable": In(1), "merge": In(1),
            "vector_beats": In(range(vector_beats + 1)), "forget": In(1),
            "evicted": Out(data.StructLayout({"valid": 1, "key": key_bits})), "landed": Out(1),
            "tap": Out(tap_layout(key_bits)),
            "counters": Out(CounterLayout(*CACHE_COUNTERS, *(("frozen",) if updated else ()))),
            "idle": Out(1)} | ({
                "frozen": In(1), "settled": Out(1),
                "write": In(stream.Signature(row_write_layout(rows, vector_beats))),
            } if updated else {}) | ({"owed": In(1)} if checked else {}))

    def elaborate(self, platform) -> Module:
        m = Module()
        sizes = {"rows": self._rows, "in_flight": self._ids}
        m.submodules.entry = entry = SkidBuffer(self._lookup)
        m.submodules.tags = tags = TagPipeline(
            self._key_bits, self._meta, ways=self._ways, hash_key=self._hash,
            policy=self._policy, **sizes)
        m.submodules.ids = ids = FreeList(self._ids)
        m.submodules.table = table = MissTable(**sizes)
        m.submodules.resolver = resolver = Resolver(self._key_bits, self._meta, **sizes)
        m.submodules.scatter = scatter = ScatterList(
            self._meta, in_flight=self._ids, waiters=self._nodes)
        m.submodules.writer = writer = FillWriter(
            vector_beats=self._beats, checked=self._checked, **sizes)
        m.submodules.store = store = VectorStore(
            self._meta, vector_beats=self._beats, style=self._style, store_bits=self._bits,
            updated=self._updated, lossy=self._lossy, **sizes)
        m.submodules.asking = asking = SkidBuffer(self._miss)

        # After reset, and on forget, a sweep writes the words whose contents matter.
        sweep_length = max(self._rows // self._ways, self._ids)
        sweeping, sweep = Signal(init=1), Signal(range(sweep_length))
        with m.If(sweeping):
            m.d.sync += sweep.eq(sweep + 1)
            with m.If(sweep == sweep_length - 1):
                m.d.sync += [sweep.eq(0), sweeping.eq(0)]
        with m.Elif(self.forget):
            m.d.sync += sweeping.eq(1)
        report_swept(m, ~sweeping)
        m.d.comb += [
            tags.clear.eq(sweeping & (sweep < self._rows // self._ways)),
            tags.clear_address.eq(sweep),
            table.clear.eq(sweeping & (sweep < self._ids)), table.clear_address.eq(sweep),
        ]

        beats = Signal(range(self._beats + 1), init=1)
        # An invalid setting is replaced by the nearest valid one.
        m.d.sync += beats.eq(Mux(self.vector_beats == 0, 1, self.vector_beats))
        if self._beats + 1 < 1 << len(self.vector_beats):
            with m.If(self.vector_beats > self._beats):
                m.d.sync += beats.eq(self._beats)
        m.d.comb += [
            entry.i.payload.eq(self.lookups.payload),
            entry.i.valid.eq(self.lookups.valid & ~sweeping),
            self.lookups.ready.eq(entry.i.ready & ~sweeping),
            tags.sets.eq(self.sets), tags.enable.eq(self.enable), tags.merge.eq(self.merge),
            store.vector_beats.eq(beats), writer.vector_beats.eq(beats),
        ]
        wiring.connect(m, entry.o, tags.lookups)
        wiring.connect(m, ids.taken, tags.ids)
        wiring.connect(m, tags.decisions, resolver.decisions)
        wiring.connect(m, store.released, ids.given)
        wiring.connect(m, scatter.waiters, store.waiters)
        wiring.connect(m, asking.o, wiring.flipped(self.misses))
        wiring.connect(m, store.vectors, wiring.flipped(self.vectors))

        out = resolver.operations.payload
        m.d.comb += [
            store.hits.valid.eq(resolver.operations.valid & ~out.miss),
            store.hits.payload.slot.eq(out.slot), store.hits.payload.meta.eq(out.meta),
            asking.i.valid.eq(resolver.operations.valid & out.miss),
            asking.i.payload.key.eq(out.key), asking.i.payload.id.eq(out.id),
            asking.i.payload.meta.eq(out.meta),
            resolver.operations.ready.eq(Mux(out.miss, asking.i.ready, store.hits.ready)),
        ]
        for name in ("id", "slot", "allocated", "phase", "open"):
            m.d.comb += getattr(table, name).eq(getattr(resolver, name))
        for name in ("reserve", "unused", "add", "add_first", "add_id", "add_meta"):
            m.d.comb += getattr(scatter, name).eq(getattr(resolver, name))
        m.d.comb += [resolver.waiting.eq(table.waiting), resolver.space.eq(scatter.space)]

        # Arriving vectors.
        closed, closed_id = Signal(), Signal.like(writer.complete_id, reset_less=True)
        m.d.comb += [
            writer.fills.payload.eq(self.fills.payload),
            writer.fills.valid.eq(self.fills.valid & ~sweeping), self.fills.ready.eq(~sweeping),
            table.fill_id.eq(writer.fill_id), table.close.eq(writer.close),
            writer.busy.eq(table.busy), writer.fill_slot.eq(table.fill_slot),
            writer.fill_allocated.eq(table.fill_allocated),
            writer.fill_phase.eq(table.fill_phase),
            self.landed.eq(writer.complete),
            scatter.close.eq(closed), scatter.close_id.eq(closed_id),
        ]
        m.d.comb += [writer.owed.eq(self.owed)] if self._checked else []
        # A lookup that found an outstanding fetch appends itself two cycles later.
        m.d.sync += [closed.eq(writer.complete), closed_id.eq(writer.complete_id)]
        wiring.connect(m, writer.write, store.write)
        wiring.connect(m, writer.filled, tags.filled)

        done, decision = resolver.done, resolver.done.decision
        seen = done.valid & ~decision.frozen if self._updated else done.valid
        m.d.comb += [
            self.evicted.valid.eq(done.valid & decision.evict),
            self.evicted.key.eq(decision.evicted),
            self.tap.valid.eq(seen), self.tap.key.eq(decision.key), self.tap.hit.eq(decision.hit),
            self.tap.pending.eq(done.pending), self.tap.unmerged.eq(decision.unmerged),
            self.tap.conflict.eq(decision.conflict),
            self.idle.eq(~sweeping & entry.idle & tags.idle & ids.idle & scatter.idle & ~closed
                         & writer.idle & resolver.idle & asking.idle & store.idle),
        ]
        if self._updated:
            self._freeze(m)
            count(m, self.counters, frozen=done.valid & decision.frozen)
        blocked = resolver.blocked
        count(m, self.counters,
              accesses=seen, hits=seen & decision.hit, hits_pending=seen & done.pending,
              misses=seen & ~decision.hit, conflict_misses=done.valid & decision.conflict,
              unmerged=seen & decision.unmerged,
              evictions=done.valid & decision.evict, bad_fills=writer.bad,
              beats_in=self.fills.valid & ~sweeping,
              beats_out=self.vectors.valid & self.vectors.ready,
              stall_in_flight=tags.starved & ~blocked.valid,
              stall_waiters=blocked.valid & ~blocked.full,
              stall_output=blocked.valid & blocked.full)
        return m

    def _freeze(self, m: Module) -> None:
        """Connect the ports for updates: frozen lookups, and writes of rows in place."""
        tags, store, writer = m.submodules.tags, m.submodules.store, m.submodules.writer
        done = m.submodules.resolver.done
        wiring.connect(m, wiring.flipped(self.write), store.updates)
        # Lookups that may still take a slot, and those that wait for the slot's vector. The entry
        # of a lookup is a late signal, counted in the next cycle.
        unsettled, entered = Signal(range(self._ids + 64)), Signal()
        m.d.sync += [
            entered.eq(tags.lookups.valid & tags.lookups.ready & ~self.frozen),
            unsettled.eq(unsettled + entered
                         - (done.valid & ~done.decision.frozen & ~done.decision.allocate)
                         - writer.filled.valid),
        ]
        settled = Signal()
        m.d.sync += settled.eq(self.frozen & (unsettled == 0) & ~entered)
        m.d.comb += [tags.frozen.eq(self.frozen), self.settled.eq(self.frozen & settled)]

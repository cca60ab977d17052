"""Tag pipeline of a set-associative cache: one lookup per cycle, in order."""

from collections.abc import Callable

from amaranth.hdl import C, Cat, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.cache.number_pool import NumberPool
from rtl.cache.policies import policy_of
from rtl.keys.one_hot import any_of, number_of
from rtl.keys.set_loop import SetLoop
from rtl.memory import Ram
from rtl.stream import CreditQueue

__all__ = ["TagPipeline", "decision_layout", "filled_signature", "slot_bits"]

QUEUE = 16
"""Decisions in flight or waiting: each takes a place for 10 cycles."""


def slot_bits(rows: int) -> int:
    """Return the bits of a slot, the number ``set * ways + way`` of a row of the vector store."""
    return max(1, ceil_log2(rows))


def decision_layout(key_bits: int, meta_shape, rows: int, in_flight: int) -> data.StructLayout:
    """Layout of a decision: the result of a lookup, and its change of the set."""
    return data.StructLayout({
        "key": key_bits, "meta": meta_shape, "hit": 1, "allocate": 1, "conflict": 1,
        "unmerged": 1, "phase": 1, "frozen": 1,
        "id": max(1, ceil_log2(in_flight)), "slot": slot_bits(rows), "evict": 1,
        "evicted": key_bits})


def filled_signature(rows: int) -> wiring.Signature:
    """Signature of the event that the vector of a slot has arrived."""
    return wiring.Signature({"valid": Out(1), "slot": Out(slot_bits(rows)), "phase": Out(1)})


class TagPipeline(wiring.Component):
    """Decide for each lookup: hit, miss with allocation, or miss without.

    A set stores key, valid bit, phase and miss id of each way, and the state of the replacement
    policy (:class:`SetLoop`). Allocation is at lookup: the policy's victim takes the key while its
    vector is being fetched, so a later lookup of the key is a hit. If the victim itself is still
    being fetched, the lookup is a conflict miss: it is fetched for itself and leaves the set
    unchanged. No other way is taken instead. Without conflicts, hits and evictions therefore equal
    those of the textbook policy, access by access, and a set whose ways are all pending needs no
    extra rule.

    **Pending.** A way is pending while its phase in the set differs from its bit in the phase RAM.
    Allocation flips the phase; the arrival of the vector copies it into the phase RAM. The write
    port of the tag RAM therefore serves only lookups. The phase bit that a lookup reads may be a
    few cycles old. Then it can only make an arrived way look pending, which is safe. The reverse is
    impossible: it requires a second allocation of the way after the read, by a lookup that saw the
    arrival of the first vector. Lookups read in order, so every later lookup saw it as well.

    **Two kinds of hits.** With ``enable``, a key hits if its vector has arrived; with ``merge``, if
    its vector is being fetched. Without ``merge``, a lookup whose key is in flight is fetched for
    itself and changes only the policy's state (``unmerged``). Without ``enable``, an entry serves
    only while its vector is being fetched. Afterwards its own way is renewed, with a new fetch, so
    no key is ever twice in a set. The policy counts a hit in all these cases. An old bit in the
    phase RAM can make a lookup unmerged for a few cycles after the vector arrived, or serve it from
    the slot although ``enable`` is 0. The vector is correct in either case.

    **Frozen** lookups leave their set and the policy's state unchanged. They hit as usual. A frozen
    lookup whose key is not cached is fetched for itself, without counting as a conflict. Between
    two frozen lookups every row therefore keeps its slot.

    **No stalls** (:class:`~rtl.keys.set_loop.SetLoop`). A lookup enters once it has a place in the
    queue of decisions and a miss id, which it returns if it hits. Lookups wait before the pipeline
    while all miss ids are in use. With ``n`` spare miss ids, fewer than 7, the rate is ``n``
    lookups in 7 cycles.

    Parameters
    ----------
    key_bits: bits of a key.
    meta_shape: shape of the data of a lookup.
    rows, ways: number of rows, and ways of a set.
    in_flight: number of miss ids.
    hash_key: maps a key to 32 hash bits.
    policy: a name in :data:`rtl.config.POLICY_CODES`.

    Ports
    -----
    lookups: input stream of ``key`` and ``meta``; ready is a register.
    ids: input stream of free miss ids; a miss takes one.
    decisions: output stream of :func:`decision_layout`. ``id`` is the miss id of the lookup's own
        fetch or, for a hit, of the last fetch of its way.
    filled: the vector of a slot has arrived, with the phase of its allocation.
    sets: sets in use, 1 to ``rows / ways``; set = hash[31:8] * sets / 2^24.
    enable, merge: entries that hit. With both 0, every lookup is a miss without allocation.
    frozen: lookups that enter in this cycle leave their sets unchanged.
    clear, clear_address: write the set and the phases of an address as after reset.
    starved: a lookup waits for a free miss id.
    idle: no lookup inside.

    Raises ``ValueError`` for an unknown policy.
    """

    LATENCY = {("lookup", "its decision"): SetLoop.LATENCY["lookup", "its result"]
               + CreditQueue.LATENCY["item", "the same item"],
               ("lookup", "phases read"): SetLoop.LATENCY["lookup", "now"] - 2}
    RATE = "1 lookup per cycle, whatever the keys"

    def __init__(self, key_bits: int, meta_shape, *, rows: int, ways: int, in_flight: int,
                 hash_key: Callable[[Value], Value], policy: str = "lru"):
        self._key_bits, self._meta_bits = key_bits, Shape.cast(meta_shape).width
        self._ways, self._sets, self._hash = ways, rows // ways, hash_key
        self._ids, self._id_bits = in_flight, max(1, ceil_log2(in_flight))
        self._policy = policy_of(policy, ways)
        super().__init__({
            "lookups": In(stream.Signature(
                data.StructLayout({"key": key_bits, "meta": meta_shape}))),
            "ids": In(stream.Signature(self._id_bits)),
            "decisions": Out(stream.Signature(
                decision_layout(key_bits, meta_shape, rows, in_flight))),
            "filled": In(filled_signature(rows)),
            "sets": In(range(self._sets + 1)), "enable": In(1), "merge": In(1),
            "frozen": In(1), "clear": In(1), "clear_address": In(max(1, ceil_log2(self._sets))),
            "starved": Out(1), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        ways, sets, policy = self._ways, self._sets, self._policy
        way_bits, decided = ceil_log2(ways), Signal(self.decisions.payload.shape())
        # ``enable`` and ``merge`` are sampled once per lookup: a change between compare and
        # decision could put a key into its set twice.
        context = data.StructLayout({
            "meta": self._meta_bits, "keep": 1, "merge": 1, "frozen": 1, "allots": 1})
        m.submodules.loop = loop = SetLoop(
            self._key_bits, context, sets=sets, ways=ways, hash_key=self._hash, way=1,
            state_bits=policy.bits, label_bits=self._id_bits,
            style="lutram" if sets <= 64 else "bram" if sets < 2048 else "uram")
        m.submodules.pool = pool = NumberPool(self._ids)
        m.submodules.queue = queue = CreditQueue(decided.shape(), QUEUE)
        wiring.connect(m, wiring.flipped(self.ids), pool.numbers)
        wiring.connect(m, queue.o, wiring.flipped(self.decisions))
        lookup, looks, enters = self.lookups.payload, self.enable | self.merge, Signal()
        m.d.comb += [
            self.lookups.ready.eq(queue.free & pool.free), self.starved.eq(
                self.lookups.valid & ~pool.free),
            enters.eq(self.lookups.valid & self.lookups.ready),
            queue.reserve.eq(enters), pool.reserve.eq(enters),
            loop.i.valid.eq(enters), loop.i.key.eq(lookup.key), loop.i.looks.eq(looks),
            loop.i.writes.eq(~self.frozen), loop.i.context.meta.eq(lookup.meta),
            loop.i.context.keep.eq(self.enable), loop.i.context.merge.eq(self.merge),
            loop.i.context.frozen.eq(self.frozen),
            loop.i.context.allots.eq(looks & ~self.frozen),
            loop.limit.eq(self.sets), loop.clear.eq(self.clear),
            loop.clear_address.eq(self.clear_address),
            self.idle.eq(loop.idle & pool.idle & queue.idle),
        ]

        # Decision. A way is pending while its phase differs from that of the last vector. This is
        # computed one stage earlier, except for the way that is placed in that stage.
        now, after, arrived = loop.now, loop.after, self._arrived(m, loop.reading)
        phases, victim, placed = (Signal(ways, name=n) for n in ("phases", "victim", "placed"))
        pending = Signal(ways, reset_less=True)
        present, coming, taken, hit, renew, unmerged, fresh = (Signal(name=n) for n in (
            "present", "coming", "taken", "hit", "renew", "unmerged", "fresh"))
        m.d.comb += [
            phases.eq(Cat(now.bits)),
            victim.eq(policy.victim(m, now.state, now.held)),
            present.eq(now.match.any()),
            coming.eq((now.match & pending).any()), taken.eq((victim & pending).any()),
            # A key in flight serves its lookups with ``merge``, an arrived one with ``keep``.
            hit.eq((now.match & Mux(now.context.keep, -1, pending)
                    & Mux(now.context.merge, -1, ~pending)).any()),
            renew.eq(present & ~coming & ~now.context.keep),
            unmerged.eq(coming & ~now.context.merge),
            fresh.eq(~present & now.context.allots),
            # The late signal ``taken`` enters last.
            placed.eq(Mux(renew, now.match, 0) | (Mux(fresh, victim, 0) & Mux(taken, 0, -1))),
            after.placed.eq(placed), Cat(after.bits).eq(phases ^ placed),
            after.state.eq(policy.update(m, now.state, now.match, placed)),
        ]
        m.d.sync += pending.eq(
            (Mux(loop.next.same, phases, Cat(loop.next.bits)) ^ arrived)
            | Mux(loop.next.same, placed, 0))
        found = Signal(data.StructLayout({
            "hit": 1, "renew": 1, "unmerged": 1, "conflict": 1, "victim": ways}), reset_less=True)
        m.d.sync += [found.hit.eq(hit), found.renew.eq(renew), found.unmerged.eq(unmerged),
                     found.conflict.eq(fresh & taken), found.victim.eq(victim)]

        # Queue the decision.
        o, way = loop.o, Signal(way_bits)
        m.d.comb += [
            pool.use.eq(o.valid & ~found.hit), pool.unused.eq(o.valid & found.hit),
            loop.label.eq(pool.number),
            way.eq(number_of(o.match | o.placed)),
            decided.key.eq(o.key), decided.meta.eq(o.context.meta), decided.hit.eq(found.hit),
            decided.allocate.eq(o.placed.any()), decided.conflict.eq(found.conflict),
            decided.unmerged.eq(found.unmerged), decided.frozen.eq(o.context.frozen),
            decided.id.eq(Mux(found.hit, o.label, pool.number)),
            decided.phase.eq((o.placed & Cat(o.bits)).any()),
            decided.slot.eq(Cat(way, o.set)),
            decided.evict.eq(~found.renew & (o.placed & o.held).any()),
            decided.evicted.eq(any_of(
                Mux(found.victim[w], o.words[w].key, 0) for w in range(ways))),
            queue.i.valid.eq(o.valid), queue.i.payload.eq(decided),
        ]
        return m

    def _arrived(self, m: Module, reading: Value) -> Value:
        """Return the phase of the last vector of each way, one cycle after ``reading``.

        The RAM has a bit per way and set, written when a vector arrives.
        """
        ways, sets, way_bits = self._ways, self._sets, ceil_log2(self._ways)
        address, phase = Signal(max(1, ceil_log2(sets)), reset_less=True), Signal(reset_less=True)
        writes = Signal(ways)
        slot = self.filled.slot
        m.d.sync += [
            address.eq(Mux(self.clear, self.clear_address, slot[way_bits:])),
            phase.eq(~self.clear & self.filled.phase),
        ]
        bits = []
        for w in range(ways):
            mine = slot[:way_bits] == w if way_bits else C(1)
            m.d.sync += writes[w].eq(self.clear | (self.filled.valid & mine))
            m.submodules[f"phases{w}"] = ram = Ram(
                1, sets, style="lutram" if sets <= 256 else "bram")
            m.d.comb += [ram.write_en.eq(writes[w]), ram.write_addr.eq(address),
                         ram.write_data.eq(phase), ram.read_addr.eq(reading)]
            bits.append(ram.read_data)
        return Value.cast(Cat(*bits))

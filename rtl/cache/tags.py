"""Tag pipeline of a set-associative cache: one lookup per cycle, in order."""

from collections.abc import Callable

from amaranth.hdl import C, Cat, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.cache.policies import policy_of
from rtl.keys.hashing import scale
from rtl.memory import Ram

__all__ = ["TagPipeline", "decision_layout", "filled_signature", "slot_bits"]


def slot_bits(rows: int) -> int:
    """Return the bits of a slot, the number ``set * ways + way`` of a row of the vector store."""
    return max(1, ceil_log2(rows))


def decision_layout(key_bits: int, meta_shape, rows: int, in_flight: int) -> data.StructLayout:
    """Layout of a decision: what a lookup found, and how it changed its set."""
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

    A set is one word of a RAM: key, valid bit, phase and miss id of each way, and the state of the
    replacement policy. Allocation is at lookup: the policy's victim takes the key while its vector
    is being fetched, so a later lookup of the key is a hit. If the victim itself is still being
    fetched, the lookup is a conflict miss: it is fetched for itself and leaves the set unchanged.
    No other way is taken instead: without conflicts, hits and evictions are exactly those of the
    policy in a textbook, access by access, and a set whose ways are all pending needs no extra
    rule.

    **Pending.** A way is pending while its phase in the set differs from its bit in the phase RAM:
    allocation flips the phase, the arrival of the vector copies it into the phase RAM. So the tag
    RAM's write port serves only lookups. The bit that a lookup reads may be a few cycles old;
    then it can only make an arrived way look pending, which is safe. The reverse cannot happen: it
    takes a second allocation of the way after the bit was read, whose lookup must have seen the
    first vector's arrival; lookups read in order, so every later lookup saw it as well.

    **Two kinds of hits.** ``enable`` lets a key hit whose vector has arrived, ``merge`` one whose
    vector is being fetched. Without ``merge``, a lookup whose key is in flight is fetched for
    itself and changes only the policy's state (``unmerged``). Without ``enable``, an entry serves
    only while its vector is being fetched: afterwards its own way is renewed, with a new fetch, so
    that no key is ever twice in a set. The policy sees a hit in all these cases. A late bit in the
    phase RAM can, for a few cycles after the vector arrived, still make a lookup unmerged, or serve
    it from the slot although ``enable`` is 0: the vector is right in either case.

    **Frozen** lookups leave their set and the policy's state unchanged. They hit as others do; one
    whose key is not here is fetched for itself, without counting as a conflict. So between two
    frozen lookups every row keeps its slot.

    **Pipeline**, all stages moving together: 1 hash, 2 set, 3 RAM out, 4 compare, 5 decide and
    write back, 6 decision. A decision reaches the lookups behind it directly: whole sets at stages
    3 and 4, and at stage 4 the match of the way just allocated is whether the two keys are equal.

    Latency and rate: see ``LATENCY`` and ``RATE``.

    Parameters: ``key_bits``; ``meta_shape`` of the data carried with a lookup; ``rows``, ``ways``,
    ``in_flight`` (numbers of miss ids); ``hash_key``, from a key to 32 hash bits; ``policy``, the
    name of one of :data:`rtl.cache.policies.POLICIES`. Raises ``ValueError`` for another.

    Ports
    -----
    lookups: input stream of ``key`` and ``meta``; ready may depend on the other ports' ready.
    ids: input stream of free miss ids; a miss takes one.
    decisions: output stream of :func:`decision_layout`. ``id`` is the miss id of the lookup's own
        fetch, or, for a hit, of the last fetch of its way.
    filled: the vector of a slot has arrived, with the phase of its allocation.
    sets: sets in use, 1 to ``rows / ways``; set = hash[31:8] * sets / 2^24.
    enable, merge: which entries hit. Both 0: every lookup is a miss without allocation.
    frozen: lookups that enter now leave their sets unchanged.
    clear, clear_address: write the set and the phases of an address as after reset.
    starved: a lookup waits for a free miss id.
    idle: no lookup inside.
    """

    LATENCY = {("lookup", "its decision"): 6}
    RATE = "1 lookup per cycle, whatever the keys"

    def __init__(self, key_bits: int, meta_shape, *, rows: int, ways: int, in_flight: int,
                 hash_key: Callable[[Value], Value], policy: str = "lru"):
        self._key_bits, self._meta_bits = key_bits, Shape.cast(meta_shape).width
        self._ways, self._sets, self._hash = ways, rows // ways, hash_key
        self._id_bits = max(1, ceil_log2(in_flight))
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
        set_bits, way_bits = max(1, ceil_log2(sets)), ceil_log2(ways)
        line_layout = data.StructLayout({
            "ways": data.ArrayLayout(data.StructLayout({
                "key": self._key_bits, "id": self._id_bits, "valid": 1, "phase": 1}), ways),
            "state": policy.bits})
        width = line_layout.size
        m.submodules.lines = lines = Ram(
            width, sets, style="lutram" if sets <= 64 else "bram" if sets < 2048 else "uram")

        # Stage registers, indexed by stage.
        valid = {k: Signal(name=f"valid{k}") for k in range(1, 6)}
        key = {k: Signal(self._key_bits, name=f"key{k}") for k in range(1, 6)}
        meta = {k: Signal(self._meta_bits, name=f"meta{k}") for k in range(1, 6)}
        set_ = {k: Signal(set_bits, name=f"set{k}") for k in range(2, 6)}
        line = {k: Signal(line_layout, name=f"line{k}") for k in (4, 5, 6)}
        # Whether a lookup may hit is decided once: a change between compare and decide could put a
        # key into its set twice.
        keep = {k: Signal(name=f"keep{k}") for k in range(1, 6)}
        merge = {k: Signal(name=f"merge{k}") for k in range(1, 6)}
        frozen = {k: Signal(name=f"frozen{k}") for k in range(1, 6)}
        looks, allots = Signal(), Signal()
        writes = {k: Signal(name=f"writes{k}") for k in (5, 6)}
        hashed, match, arrived = Signal(32), Signal(ways), Signal(ways)
        # Same set at two stages, and same key at stages 4 and 5; all computed one cycle ahead.
        same35, same36, same45, same_key = (Signal(name=n) for n in (
            "same35", "same36", "same45", "same_key"))

        # Stage 5: decide.
        now = line[5]
        hit, pending, allocate, conflict = Signal(), Signal(), Signal(), Signal()
        present, coming, renew, unmerged, fresh = (Signal() for _ in range(5))
        victim, used, placed = Signal(ways), Signal(ways), Signal(ways)
        phases = Cat(now.ways[w].phase for w in range(ways))
        m.d.comb += [
            present.eq(match.any()),
            victim.eq(policy.victim(m, now.state, Cat(now.ways[w].valid for w in range(ways)))),
            coming.eq((match & (phases ^ arrived)).any()),
            pending.eq((victim & (phases ^ arrived)).any()),
            # A key in flight serves its lookups with ``merge``, one that has arrived with ``keep``.
            hit.eq((match & Mux(keep[5], -1, phases ^ arrived)
                    & Mux(merge[5], -1, ~(phases ^ arrived))).any()),
            renew.eq(present & ~coming & ~keep[5] & ~frozen[5]),
            unmerged.eq(coming & ~merge[5]),
            fresh.eq(~present & allots),
            allocate.eq(renew | (fresh & ~pending)),
            conflict.eq(fresh & pending),
            # The late signal ``pending`` enters last.
            placed.eq(Mux(renew, match, 0) | (Mux(fresh, victim, 0) & Mux(pending, 0, -1))),
            used.eq(match | placed),
        ]
        after = Signal(line_layout)
        m.d.comb += [after.eq(now), after.state.eq(policy.update(m, now.state, match, placed))]
        for w in range(ways):
            with m.If(placed[w]):
                m.d.comb += [
                    after.ways[w].key.eq(key[5]), after.ways[w].id.eq(self.ids.payload),
                    after.ways[w].valid.eq(1), after.ways[w].phase.eq(~now.ways[w].phase)]

        advance, decided, shown = Signal(), self.decisions.payload, Signal()
        m.d.comb += [
            self.starved.eq(valid[5] & ~hit & ~self.ids.valid),
            advance.eq((~shown | self.decisions.ready) & ~self.starved),
            self.lookups.ready.eq(advance),
            self.ids.ready.eq(advance & valid[5] & ~hit),
            self.decisions.valid.eq(shown),
            self.idle.eq(~shown & ~Cat(valid[k] for k in range(1, 6)).any()),
            lines.read_en.eq(advance), lines.read_addr.eq(set_[2]),
            lines.write_en.eq(self.clear | (advance & writes[5])),
            lines.write_addr.eq(Mux(self.clear, self.clear_address, set_[5])),
            lines.write_data.eq(Mux(self.clear, C(0, width), after)),
        ]

        def chosen(field: str, select: Value) -> Value:
            """Return ``field`` of the way that ``select`` names one-hot."""
            return _any_of(Mux(select[w], now.ways[w][field], 0) for w in range(ways))

        way = _any_of(Mux(used[w], C(w, max(1, way_bits)), 0) for w in range(ways))
        with m.If(advance):
            m.d.sync += [
                shown.eq(valid[5]),
                decided.key.eq(key[5]), decided.meta.eq(meta[5]),
                decided.hit.eq(hit), decided.allocate.eq(allocate), decided.conflict.eq(conflict),
                decided.unmerged.eq(unmerged), decided.frozen.eq(frozen[5]),
                decided.id.eq(Mux(hit, chosen("id", match), self.ids.payload)),
                decided.phase.eq(~chosen("phase", placed)),
                decided.slot.eq(Cat(way[:way_bits], set_[5])),
                decided.evict.eq(allocate & ~renew & chosen("valid", victim)),
                decided.evicted.eq(chosen("key", victim)),
            ]
        with m.Elif(self.decisions.ready):
            m.d.sync += shown.eq(0)

        # Stages 1 to 5. A word that is read while it is written has the old value, so stage 6 keeps
        # the last set written for that lookup. Frozen lookups write none.
        limit = Signal(range(sets + 1))
        m.d.sync += limit.eq(Mux(self.sets > sets, sets, self.sets))
        with m.If(advance):
            m.d.sync += [valid[1].eq(self.lookups.valid), key[1].eq(self.lookups.payload.key),
                         meta[1].eq(self.lookups.payload.meta),
                         keep[1].eq(self.enable), merge[1].eq(self.merge),
                         frozen[1].eq(self.frozen),
                         hashed.eq(self._hash(self.lookups.payload.key)),
                         set_[2].eq(scale(hashed[8:], limit))]
            for k in range(2, 6):
                m.d.sync += [valid[k].eq(valid[k - 1]), key[k].eq(key[k - 1]),
                             meta[k].eq(meta[k - 1]), keep[k].eq(keep[k - 1]),
                             merge[k].eq(merge[k - 1]), frozen[k].eq(frozen[k - 1])]
                if k > 2:
                    m.d.sync += set_[k].eq(set_[k - 1])
            m.d.sync += [
                looks.eq(keep[3] | merge[3]), allots.eq(looks & ~frozen[4]),
                writes[5].eq(valid[4] & ~frozen[4]), writes[6].eq(writes[5]),
                same35.eq(set_[2] == set_[4]), same36.eq(set_[2] == set_[5]),
                same45.eq(set_[3] == set_[4]), same_key.eq(key[3] == key[4]),
                line[4].eq(Mux(same35 & writes[5], after,
                               Mux(same36 & writes[6], line[6], lines.read_data))),
                line[5].eq(Mux(same45 & writes[5], after, line[4])),
                line[6].eq(after),
            ]
            for w in range(ways):
                stored = line[4].ways[w]
                m.d.sync += match[w].eq(looks & Mux(
                    same45 & writes[5] & placed[w], same_key,
                    stored.valid & (stored.key == key[4])))

        # Phase RAM: a bit per way and set, written when a vector arrives, read at stage 3.
        for w in range(ways):
            m.submodules[f"phases{w}"] = ram = Ram(
                1, sets, style="lutram" if sets <= 256 else "bram")
            mine = self.filled.slot[:way_bits] == w if way_bits else C(1)
            m.d.comb += [
                ram.write_en.eq(self.clear | (self.filled.valid & mine)),
                ram.write_addr.eq(
                    Mux(self.clear, self.clear_address, self.filled.slot[way_bits:])),
                ram.write_data.eq(~self.clear & self.filled.phase),
                ram.read_en.eq(advance), ram.read_addr.eq(set_[3]),
            ]
            with m.If(advance):
                m.d.sync += arrived[w].eq(ram.read_data)
        return m


def _any_of(values) -> Value:
    """Return the OR of the values, as a balanced tree."""
    values = list(values)
    while len(values) > 1:
        values = [a | b for a, b in zip(values[::2], values[1::2], strict=False)] + (
            values[-1:] if len(values) % 2 else [])
    return values[0]

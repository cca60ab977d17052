"""The allowed decisions of a tag pipeline, and a substitute for it in proofs that makes any of
them."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import Component

from rtl.cache.tags import TagPipeline
from tests.formal.bench import Bench

__all__ = ["Rows", "any_tags"]


class Rows:
    """The rows of a set after the decisions so far, and the allowed values of the current decision.

    A row has the key, the miss id and the phase of its last allocation. It is pending from the
    allocation until the event that its vector arrived. ``test_tags`` proves that
    :class:`rtl.cache.tags.TagPipeline` obeys ``allowed``; proofs of the blocks behind it may assume
    this.

    Members
    -------
    rows: ``key``, ``id``, ``phase``, ``valid`` and ``pending`` of each row.
    allowed: the current decision is allowed. A hit names a row of its key with the id of that row's
        fetch. An allocation takes a row that is not pending, inverts its phase, and reports the
        evicted key. A frozen lookup does not allocate.
    exact: the decision is a hit if the key is in a row, as with both settings on.
    expected: the event that a vector arrived names a pending row, with its phase.
    """

    def __init__(self, m: Module, count: int, tags):
        decided, filled, shown = tags.decisions.payload, tags.filled, tags.decisions.valid
        self.rows = rows = [Signal(data.StructLayout({
            "key": len(decided.key), "id": len(decided.id), "phase": 1, "valid": 1, "pending": 1,
        }), name=f"row{k}") for k in range(count)]
        at = [decided.slot == k for k in range(count)]
        hits = Bench.any_of(at[k] & row.valid & (row.key == decided.key) & (row.id == decided.id)
                            for k, row in enumerate(rows))
        takes = Bench.any_of(at[k] & ~row.pending & (row.phase != decided.phase)
                             for k, row in enumerate(rows))
        gone = Bench.any_of(at[k] & row.valid & (row.key != decided.key)
                            & ~(decided.evict & (row.key != decided.evicted))
                            for k, row in enumerate(rows))
        self.allowed = ~shown | Mux(
            decided.allocate, takes & ~decided.hit & (decided.evict == gone),
            ~decided.evict & (~decided.hit | hits))
        self.exact = ~shown | (decided.hit == Bench.any_of(
            row.valid & (row.key == decided.key) for row in rows))
        self.expected = ~filled.valid | Bench.any_of(
            (filled.slot == k) & row.pending & (row.phase == filled.phase)
            for k, row in enumerate(rows))
        for k, row in enumerate(rows):
            with m.If(filled.valid & (filled.slot == k)):
                m.d.sync += row.pending.eq(0)
            with m.If(shown & tags.decisions.ready & decided.allocate & at[k]):
                m.d.sync += [row.key.eq(decided.key), row.id.eq(decided.id),
                             row.phase.eq(decided.phase), row.valid.eq(1), row.pending.eq(1)]


def any_tags(bench: Bench, count: int, eager: Value | None = None, *, updated: bool = False,
             exact: bool = False) -> tuple[type, Value, Value, Value]:
    """Return a class with the ports of a tag pipeline that makes any allowed decision.

    Also return the assumption of ``bench``, the assumption in the proof of the pipeline about its
    surroundings, and whether a row is pending or the decision may take a row. A lookup is taken in
    the cycle of its decision: any cycle or, while ``eager``, the first possible one. The time
    inside the pipeline makes no difference to a bench that offers lookups at any time.

    count: rows in use.
    updated: lookups may be frozen.
    exact: a lookup whose key is in a row hits.
    """
    allowed, expected, pending = Signal(init=1), Signal(init=1), Signal()
    # Free signals must exist before the bench is converted, so they are created here.
    now, hit, allocate = (bench.free(name=name) for name in ("decide", "hit", "allocate"))
    slot = bench.free(range(count), "slot")

    class AnyTags(Component):
        def __init__(self, key_bits: int, meta_shape, **sizes):
            alike = TagPipeline(key_bits, meta_shape, **sizes)
            alike._MustUse__silence = True  # type: ignore[attr-defined]
            super().__init__(alike.signature)
            self.made = Module()
            self.rows = Rows(self.made, count, self)

        def elaborate(self, platform) -> Module:
            m, rows = self.made, self.rows
            shown, made, decided = Signal(), Signal(), self.decisions.payload
            kept, row = Signal.like(decided), Signal.like(rows.rows[0])
            m.d.comb += [
                made.eq((now if eager is None else now | eager) & self.lookups.valid
                        & (~shown | self.decisions.ready) & (hit | self.ids.valid)),
                self.lookups.ready.eq(made), self.ids.ready.eq(made & ~hit),
                self.decisions.valid.eq(shown), self.idle.eq(~shown)]
            with m.If(made):
                m.d.sync += [
                    shown.eq(1), kept.key.eq(self.lookups.payload.key),
                    kept.meta.eq(self.lookups.payload.meta), kept.hit.eq(hit),
                    kept.id.eq(self.ids.payload), kept.slot.eq(slot), kept.allocate.eq(allocate)]
            with m.Elif(self.decisions.ready):
                m.d.sync += shown.eq(0)
            # Values that follow from the chosen row are not free.
            with m.Switch(kept.slot):
                for k, each in enumerate(rows.rows):
                    with m.Case(k):
                        m.d.comb += row.eq(each)
            m.d.comb += [
                decided.eq(kept), decided.id.eq(Mux(kept.hit, row.id, kept.id)),
                decided.phase.eq(~row.phase), decided.evicted.eq(row.key),
                decided.evict.eq(kept.allocate & row.valid & (row.key != kept.key)),
                allowed.eq(self._allowed()), expected.eq(rows.expected)]
            if updated:
                self._freeze(m, rows, made, shown, kept)
            return m

        def _allowed(self) -> Value:
            return self.rows.allowed & self.rows.exact if exact else self.rows.allowed

        def _freeze(self, m: Module, rows: Rows, made: Value, shown: Value, kept) -> None:
            with m.If(made):
                m.d.sync += kept.frozen.eq(self.frozen)
            m.d.comb += [
                allowed.eq(self._allowed() & ~(shown & kept.frozen & kept.allocate)),
                pending.eq((shown & ~kept.frozen) | Bench.any_of(
                    row.pending for row in rows.rows))]

    return AnyTags, allowed, expected, pending

"""Proofs of the tag pipeline, without bound: its decisions, their order, and that each is made.

There is one set of one or two ways, four keys and two miss ids. Vectors arrive at any time from the
cycle after the decision that requests them; ids are free. The queue of decisions and the pool of
ids have separate proofs (``test_streams``). Over-approximations replace them: a place and an id are
free at any time, and the queue outputs an item at once.
"""

import pytest
from amaranth.hdl import C, Cat, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import Component

from rtl.cache.number_pool import NumberPool
from rtl.cache.tags import TagPipeline
from rtl.stream import CreditQueue
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.formal.rows import Rows
from tests.mutants import some_slow, variant

KEY_BITS, IDS = 2, 2


def alike(block: type, elaborate) -> type:
    """Return a class with the ports of ``block`` and the behaviour of ``elaborate``."""
    class Alike(Component):
        def __init__(self, *args, **kwargs):
            original = block(*args, **kwargs)
            original._MustUse__silence = True  # type: ignore[attr-defined]
            super().__init__(original.signature)

        def elaborate(self, platform) -> Module:
            m = Module()
            elaborate(m, self)
            return m

    return Alike


def tagged(ways: int, what: str, *edit: str) -> Bench:
    """Return a bench of the pipeline.

    what: "on": both settings on; decisions equal those of a textbook LRU cache, which frozen
    lookups, any of them, do not change. "any": the settings change at any time. "order": one key
    bit; lookups leave as they entered, in bounded time.
    """
    bench = Bench()
    m = bench.m
    key_bits, meta_bits = (1, 1) if what == "order" else (KEY_BITS, 1)
    place, number, some = (bench.free(name="place"), bench.free(range(IDS), "id"),
                           bench.free(name="some"))
    events = Signal(4, name="events")  # of the pool: a reservation, a use, a release; its number

    def queue(m, self):
        m.d.comb += [self.free.eq(place), self.o.valid.eq(self.i.valid),
                     self.o.payload.eq(self.i.payload), self.idle.eq(1)]

    def pool(m, self):
        m.d.comb += [self.free.eq(some), self.number.eq(number), self.idle.eq(1),
                     events.eq(Cat(self.reserve, self.use, self.unused, self.number))]

    m.submodules.dut = dut = variant(
        TagPipeline, *([edit] if edit else []), CreditQueue=alike(CreditQueue, queue),
        NumberPool=alike(NumberPool, pool))(
        key_bits, meta_bits, rows=2 * ways, ways=ways, in_flight=IDS, hash_key=lambda key: C(0, 32))
    clearing = Signal(init=1)
    m.d.sync += clearing.eq(0)
    m.d.comb += [dut.clear.eq(clearing), dut.sets.eq(1),
                 dut.enable.eq(bench.free(name="enable") if what == "any" else 1),
                 dut.merge.eq(bench.free(name="merge") if what == "any" else 1),
                 dut.frozen.eq(0 if what == "order" else bench.free(name="frozen"))]
    lookup = Signal(dut.lookups.payload.shape())
    m.d.comb += [lookup.key.eq(bench.free(key_bits, "key")),
                 lookup.meta.eq(bench.free(name="meta") if what == "order" else 0)]
    # No lookup is offered while the set is cleared.
    gate = stream.Signature(dut.lookups.payload.shape()).create()
    m.d.comb += [dut.lookups.valid.eq(gate.valid & ~clearing), dut.lookups.payload.eq(gate.payload),
                 gate.ready.eq(dut.lookups.ready & ~clearing)]
    entered = bench.source(gate, lookup)
    left, decided = dut.decisions.valid, dut.decisions.payload
    m.d.comb += dut.decisions.ready.eq(1)

    row = Rows(m, ways, dut)
    m.d.comb += [dut.filled.valid.eq(bench.free(name="filled")),
                 dut.filled.slot.eq(bench.free(range(ways), "filled_slot")),
                 dut.filled.phase.eq(bench.free(name="filled_phase"))]
    bench.assume(row.expected)
    bench.always("allowed", row.allowed)
    # Each lookup has a reserved place and id; each miss takes one id, the one in its decision.
    bench.always("one_id", (events[0] == entered) & (~entered | (place & some))
                 & (events[1] == (left & ~decided.hit)) & (events[2] == (left & decided.hit))
                 & (decided.hit | ~left | (decided.id == events[3])))
    if what == "order":
        inside = bench.in_order("lookups", entered, dut.lookups.payload, left,
                                Cat(decided.key, decided.meta), 6)
        bench.within("decided", 5, inside != 0, left)
        bench.always("idle", dut.idle == (inside == 0))
        return bench
    shown = dut.decisions.valid
    bench.always("frozen", ~(shown & decided.frozen & (decided.allocate | decided.conflict)))
    of_key = [each.valid & (each.key == decided.key) for each in row.rows]
    bench.always("never_twice", ~(shown & decided.allocate) | ~Bench.any_of(
        of_key[k] & (decided.slot != k) for k in range(ways)))
    if what == "on":
        bench.always("hit_if_here", row.exact)
        bench.always("conflict", ~shown | (
            decided.conflict == ~(decided.hit | decided.allocate | decided.frozen)))
        if ways == 2:
            oldest = Signal()
            with m.If(left & (decided.hit | decided.allocate) & ~decided.frozen):
                m.d.sync += oldest.eq(~decided.slot[0])
            bench.always("oldest", ~(shown & decided.allocate) | (decided.slot == oldest))
    return bench


@pytest.mark.thorough
@pytest.mark.parametrize("ways, what", [
    (1, "on"), (1, "order"), pytest.param(2, "on", marks=pytest.mark.slow), (2, "any")])
def test_tags(ways, what):
    verdict = prove(tagged(ways, what))
    assert verdict.holds, verdict


SLOW = ["phase-kept", "wrong-key-told", "setting-changed", "renewed-while-pending",
        "frozen-alone-writes"]
"""Mutants whose similar ones break the same statement."""


@pytest.mark.few(4)
@pytest.mark.parametrize("what, wrong, old, new", some_slow([
    ("on", "hit_if_here", "& Mux(now.context.merge, -1, ~pending)", "& ~pending"),
    ("on", "allowed", "Cat(after.bits).eq(phases ^ placed)", "Cat(after.bits).eq(phases)"),
    ("on", "allowed", "(Mux(fresh, victim, 0) & Mux(taken, 0, -1))", "Mux(fresh, victim, 0)"),
    ("on", "oldest", "policy.update(m, now.state, now.match, placed)",
     "policy.update(m, now.state, placed, placed)"),
    ("on", "conflict", "found.conflict.eq(fresh & taken)", "found.conflict.eq(0)"),
    ("on", "allowed", "Mux(found.victim[w], o.words[w].key, 0) for w", "o.key for w"),
    ("any", "never_twice", "fresh.eq(~present & now.context.allots)",
     "fresh.eq(~present & (self.enable | self.merge) & ~now.context.frozen)"),
    ("any", "allowed", "renew.eq(present & ~coming & ~now.context.keep",
     "renew.eq(present & ~now.context.keep"),
    ("any", "allowed", "decided.evict.eq(~found.renew &", "decided.evict.eq("),
    ("any", "frozen", "allots.eq(looks & ~self.frozen)", "allots.eq(looks)"),
    ("any", "frozen", "loop.i.writes.eq(~self.frozen)", "loop.i.writes.eq(1)"),
    ("on", "conflict", "loop.i.writes.eq(~self.frozen)", "loop.i.writes.eq(self.frozen)"),
    ("any", "one_id", "self.lookups.ready.eq(queue.free & pool.free)",
     "self.lookups.ready.eq(queue.free)"),
    ("any", "allowed", "decided.id.eq(Mux(found.hit, o.label, pool.number))",
     "decided.id.eq(pool.number)"),
    ("order", "lookups_in_order", "decided.meta.eq(o.context.meta)",
     "decided.meta.eq(now.context.meta)"),
    ("order", "decided", "queue.i.valid.eq(o.valid)", "queue.i.valid.eq(o.valid & enters)"),
], SLOW, ["waits-not", "phase-kept", "taken-while-pending", "hits-not-counted", "conflict-hidden",
          "wrong-key-told", "setting-changed", "renewed-while-pending", "renewal-evicts",
          "frozen-allocates", "frozen-renews", "frozen-alone-writes", "no-id", "id-of-another",
          "of-another", "pushed"]))
def test_broken_tags(what, wrong, old, new):
    verdict = prove(tagged(1 if what == "order" else 2, what, old, new))
    assert wrong in verdict.broken, verdict

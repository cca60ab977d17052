"""Proofs of the tag pipeline, without bound: what it decides, in which order, and that it does.

One set of one or two ways, four keys and two miss ids. Vectors arrive at any time from the cycle
after the decision that asks for them; ids are any at any time.
"""

import pytest
from amaranth.hdl import C, Cat, Signal
from amaranth.lib import data, stream

from rtl.cache.tags import TagPipeline
from tests.formal.bench import Bench
from tests.formal.mutants import some_slow, variant
from tests.formal.prove import prove
from tests.formal.rows import Rows

KEY_BITS, IDS = 2, 2


def tagged(ways: int, what: str, *edit: str) -> Bench:
    """Return a bench of the pipeline.

    ``what``: "on": both settings on, and decisions are those of a textbook LRU cache, which
    lookups that are frozen, any, only look at. "any": the settings change at any time. "order":
    one key bit, and lookups leave as they entered, in time.
    """
    bench = Bench()
    m = bench.m
    key_bits, meta_bits = (1, 1) if what == "order" else (KEY_BITS, 1)
    m.submodules.dut = dut = variant(TagPipeline, *([edit] if edit else []))(
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
    # Nothing is offered while the set is cleared.
    gate = stream.Signature(dut.lookups.payload.shape()).create()
    m.d.comb += [dut.lookups.valid.eq(gate.valid & ~clearing), dut.lookups.payload.eq(gate.payload),
                 gate.ready.eq(dut.lookups.ready & ~clearing)]
    entered = bench.source(gate, lookup)
    m.d.comb += [dut.ids.valid.eq(bench.free(name="id_valid")),
                 dut.ids.payload.eq(bench.free(range(IDS), "id"))]
    left, decided = bench.sink(dut.decisions, "decisions"), dut.decisions.payload

    row = Rows(m, ways, dut)
    m.d.comb += [dut.filled.valid.eq(bench.free(name="filled")),
                 dut.filled.slot.eq(bench.free(range(ways), "filled_slot")),
                 dut.filled.phase.eq(bench.free(name="filled_phase"))]
    bench.assume(row.expected)
    bench.always("allowed", row.allowed)
    # Each miss takes one id, the one that it bears; nobody else takes any.
    took, taken = dut.ids.valid & dut.ids.ready, Signal(data.StructLayout({"one": 1, "id": 1}))
    with m.If(took):
        m.d.sync += [taken.one.eq(1), taken.id.eq(dut.ids.payload)]
    with m.Elif(left):
        m.d.sync += taken.one.eq(0)
    bench.always("one_id", (taken.one == (dut.decisions.valid & ~decided.hit))
                 & (~taken.one | (taken.id == decided.id)) & (~took | ~taken.one | left))
    if what == "order":
        inside = bench.in_order("lookups", entered, dut.lookups.payload, left,
                                Cat(decided.key, decided.meta), 6)
        bench.within("decided", 5, dut.decisions.ready & dut.ids.valid & (inside != 0), left)
        bench.always("idle", dut.idle == (inside == 0))
        return bench
    shown = dut.decisions.valid
    bench.always("frozen", ~(shown & decided.frozen & (decided.allocate | decided.conflict)))
    of_key = [each.valid & (each.key == decided.key) for each in row.rows]
    bench.always("never_twice", ~(shown & decided.allocate) | ~Bench.any_of(
        of_key[k] & (decided.slot != k) for k in range(ways)))
    if what == "on":
        bench.always("hit_if_here", ~shown | (decided.hit == Bench.any_of(of_key)))
        bench.always("conflict", ~shown | (
            decided.conflict == ~(decided.hit | decided.allocate | decided.frozen)))
        if ways == 2:
            oldest = Signal()
            with m.If(left & (decided.hit | decided.allocate) & ~decided.frozen):
                m.d.sync += oldest.eq(~decided.slot[0])
            bench.always("oldest", ~(shown & decided.allocate) | (decided.slot == oldest))
    return bench


@pytest.mark.parametrize("ways, what", [
    (1, "on"), (1, "order"), pytest.param(2, "on", marks=pytest.mark.slow), (2, "any")])
def test_tags(ways, what):
    verdict = prove(tagged(ways, what))
    assert verdict.holds, verdict


SLOW = ["any-key", "old-set", "phase-kept", "wrong-key-told", "setting-changed",
        "renewed-while-pending", "frozen-touches", "frozen-renews", "frozen-alone-writes"]
"""Mutants of which others break the same statement."""


@pytest.mark.few(4)
@pytest.mark.parametrize("what, wrong, old, new", some_slow([
    ("on", "allowed", "placed[w], same_key", "placed[w], 1"),
    ("on", "never_twice", "placed[w], same_key", "placed[w], 0"),
    ("on", "hit_if_here", "& Mux(merge[5], -1, ~(phases ^ arrived))",
     "& ~(phases ^ arrived)"),
    ("on", "allowed", "Mux(same36 & writes[6], line[6], lines.read_data)", "lines.read_data"),
    ("on", "allowed", "after.ways[w].phase.eq(~now.ways[w].phase)",
     "after.ways[w].phase.eq(now.ways[w].phase)"),
    ("on", "allowed", "(fresh & ~pending)),", "fresh),"),
    ("on", "oldest", "policy.update(m, now.state, match, placed)",
     "policy.update(m, now.state, placed, placed)"),
    ("on", "conflict", "conflict.eq(fresh & pending)", "conflict.eq(0)"),
    ("on", "allowed", "decided.evicted.eq(chosen(\"key\", victim))", "decided.evicted.eq(key[5])"),
    ("any", "never_twice", "fresh.eq(~present & allots)",
     "fresh.eq(~present & (self.enable | self.merge) & ~frozen[5])"),
    ("any", "allowed", "renew.eq(present & ~coming & ~keep[5]", "renew.eq(present & ~keep[5]"),
    ("any", "allowed", "decided.evict.eq(allocate & ~renew &", "decided.evict.eq(allocate &"),
    ("on", "oldest", "same45 & writes[5], after, line[4]", "same45 & valid[5], after, line[4]"),
    ("any", "frozen", "allots.eq(looks & ~frozen[4])", "allots.eq(looks)"),
    ("any", "allowed", "& ~coming & ~keep[5] & ~frozen[5]", "& ~coming & ~keep[5]"),
    ("any", "allowed", "writes[5].eq(valid[4] & ~frozen[4])", "writes[5].eq(valid[4] & frozen[4])"),
    ("any", "one_id", "self.starved.eq(valid[5] & ~hit & ~self.ids.valid)", "self.starved.eq(0)"),
    ("order", "lookups_in_order", "decided.meta.eq(meta[5])", "decided.meta.eq(meta[4])"),
    ("order", "decided", "advance.eq((~shown | self.decisions.ready) & ~self.starved)",
     "advance.eq((~shown | self.decisions.ready) & ~self.starved & (self.lookups.valid | shown))"),
], SLOW, ["any-key", "not-the-last-key", "waits-not", "old-set", "phase-kept",
          "taken-while-pending", "hits-not-counted", "conflict-hidden", "wrong-key-told",
          "setting-changed", "renewed-while-pending", "renewal-evicts", "frozen-touches",
          "frozen-allocates", "frozen-renews", "frozen-alone-writes", "no-id", "of-another",
          "pushed"]))
def test_broken_tags(what, wrong, old, new):
    verdict = prove(tagged(1 if what == "order" else 2, what, old, new))
    assert wrong in verdict.broken, verdict

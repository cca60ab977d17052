"""Proof of updates of cached rows, bounded: a lookup after the update of its row gets new values.

What training does with a row: the cache is frozen; once it has settled, the row is looked up, its
new vector is written to its slot, if it has one, and to GPU memory; then the cache goes on. All of
that at any times, among lookups at any times, before, meanwhile and after. A fetch brings what GPU
memory held when it was asked for, however late. The tag pipeline is replaced
by all that it may do, as in :mod:`~tests.formal.test_cache_rows`, and the row lies in its slot at
the beginning; a test shows that the cycles searched reach a hit on the slot that was written.
"""

import pytest
from amaranth.hdl import Cat, Mux, Signal
from amaranth.lib import data

from tests.formal.behind import fetched, small_cache
from tests.formal.bench import Bench
from tests.formal.mutants import some_slow
from tests.formal.prove import prove

DEPTH = 22
META = data.StructLayout({"key": 1, "after": 1, "update": 1})
RUNS, FREEZES, LOOKED, FOUND = range(4)


def updated(*edits: tuple[str, str, str], reached: bool = False) -> Bench:
    """Return a bench that updates row 0 once, from 0 to 1; row 1 is 0 all the time.

    ``reached``: the statement is that no lookup after the update is served by the slot.
    """
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = small_cache(
        bench, *edits, lists=False, first={"valid": 1})(1, META)
    m.d.comb += [dut.sets.eq(1), dut.enable.eq(1), dut.merge.eq(1), dut.vector_beats.eq(1)]

    # Where the update is: what memory and the slot have, and whether the cache stays frozen.
    state, held, slot = Signal(2), Signal(), Signal.like(dut.vectors.payload.slot)
    memory, written, over = Signal(), Signal(), Signal()
    asks, key = bench.free(name="asks"), bench.free(name="key")
    lookup = Signal(dut.lookups.payload.shape())
    update = asks & (state == FREEZES) & dut.settled
    new = memory & written
    m.d.comb += [
        dut.frozen.eq((state != RUNS) & ~over), lookup.key.eq(~update & key),
        lookup.meta.eq(Cat(lookup.key, new & ~lookup.key, update))]
    entered = bench.source(dut.lookups, lookup)
    taken = data.View(META, dut.lookups.payload.meta)
    left = bench.sink(dut.vectors, "vectors", Cat(
        dut.vectors.payload.data[0], dut.vectors.payload.meta))
    answer = dut.vectors.payload
    found = left & answer.meta.update
    fetched(bench, dut, lambda key: (key == 0) & memory)
    writes = bench.free(name="writes")
    m.d.comb += [
        dut.write.valid.eq((state == FOUND) & held & ~written & writes),
        dut.write.payload.slot.eq(slot), dut.write.payload.data.eq(1)]
    with m.Switch(state):
        with m.Case(RUNS):
            m.d.sync += state.eq(Mux(bench.free(name="freezes"), FREEZES, RUNS))
        with m.Case(FREEZES):
            m.d.sync += state.eq(Mux(entered & taken.update, LOOKED, FREEZES))
        with m.Case(LOOKED):
            m.d.sync += [state.eq(Mux(found, FOUND, LOOKED)), held.eq(answer.held),
                         slot.eq(answer.slot), written.eq(found & ~answer.held)]
        with m.Case(FOUND):
            m.d.sync += [
                memory.eq(memory | bench.free(name="to_memory")),
                written.eq(written | (dut.write.valid & dut.write.ready)),
                over.eq(over | (new & bench.free(name="goes_on")))]
    if reached:
        bench.broken.clear()
        bench.always("reached", ~(left & answer.meta.after & answer.held & held & over))
        return bench
    bench.always("new", ~(left & answer.meta.after) | answer.data[0])
    bench.always("other", ~(left & answer.meta.key) | ~answer.data[0])
    # A slot that may be written is the row's.
    bench.always("held", ~(found & answer.held) | (answer.slot == 0))
    return bench


def test_depth_reaches():
    verdict = prove(updated(reached=True), depth=DEPTH)
    assert verdict.broken == ("reached",), verdict


def test_updates():
    verdict = prove(updated(), depth=DEPTH)
    assert verdict.holds, verdict


@pytest.mark.few(2)
@pytest.mark.parametrize("what, edit", some_slow([
    ("settled", ("EmbeddingCache", "(unsettled == 0) & ~entered", "~entered")),
    ("settled", ("EmbeddingCache", "(unsettled == 0) & ~entered", "(unsettled == 0)")),
    ("settled", ("EmbeddingCache", "& ~done.decision.allocate)", ")")),
    ("other", ("EmbeddingCache", "tags.frozen.eq(self.frozen)", "tags.frozen.eq(0)")),
    ("new", ("VectorStore", '[pins["write_en"].eq(updates.o.valid)',
             '[pins["write_en"].eq(0)')),
], ["not-written"], ["unsettled", "one-enters", "allocated-is-settled", "thaws", "not-written"]))
def test_broken_updates(what, edit):
    verdict = prove(updated(edit), depth=DEPTH)
    assert set(verdict.broken) & {what, "settled"}, verdict

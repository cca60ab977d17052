"""Proofs of the cache behind its tag pipeline, bounded: rows are filled, hit, evicted and refilled.

The tag pipeline and the scatter lists are replaced by over-approximations, proved without bound in
``test_tags`` and ``test_scatter_list``. This proof states that the cache satisfies the assumptions
of those proofs. In the remaining cache, all lookups of a row follow each other within few cycles. A
test shows that the search reaches from the first fetch of a key over a hit and an eviction to a hit
on the refilled row, and no further. Two cycles fewer reach the lookups after the eviction. Both
proofs are slow; :mod:`~tests.formal.test_cache_whole` proves the same for any run, with more
substitutes.

Each lookup is answered at least once. If the cache is idle and no fetch is outstanding, no lookup
is left. With eager surroundings, the real scatter lists and lookups at any time, an answer of some
lookup leaves at most 21 cycles after the previous one while any lookup waits, in the first 31
cycles.
"""

import pytest
from amaranth.hdl import C, Cat, Signal

from tests.formal.behind import fetched, small_cache
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import some_slow

DEPTH, QUICK_DEPTH = 23, 21
IN_TIME, TIME_DEPTH = 21, 31


def rows(what: str, *edits: tuple[str, str, str], steps: int = 5) -> Bench:
    """Return a bench that looks up two keys; one of them represents all keys but one.

    what: "once": any one lookup is marked and followed. "reached": states that the marked lookup
    never leaves after the first ``steps`` of the sequence above. "in_time": the surroundings are
    eager, and answers leave while there are lookups.
    """
    bench = Bench()
    m = bench.m
    eager = C(1) if what == "in_time" else None
    m.submodules.dut = dut = small_cache(bench, *edits, eager=eager, lists=what != "in_time")(1, 1)
    m.d.comb += [dut.sets.eq(1), dut.enable.eq(1), dut.merge.eq(1), dut.vector_beats.eq(1)]

    lookup, marked, due, kept = (Signal(dut.lookups.payload.shape()), Signal(), Signal(), Signal())
    m.d.comb += [lookup.key.eq(bench.free(name="key")),
                 lookup.meta.eq(bench.free(name="mark") & ~marked)]
    entered, offered = bench.source(dut.lookups, lookup), dut.lookups.payload
    answer = dut.vectors.payload
    left = bench.sink(dut.vectors, "vectors", Cat(answer.data[0], answer.meta), eager)
    busy = fetched(bench, dut, lambda key: key == 0, eager)
    enters, leaves = entered & offered.meta, left & answer.meta
    with m.If(enters):
        m.d.sync += [marked.eq(1), due.eq(1), kept.eq(offered.key == 0)]
    with m.Elif(leaves):
        m.d.sync += due.eq(0)

    if what == "in_time":
        inside = Signal(4)
        m.d.sync += inside.eq(inside + entered - left)
        bench.within("in_time", IN_TIME, (inside != 0) | dut.lookups.valid, left)
        return bench
    if what == "reached":
        tap, stage = dut.tap, Signal(3)
        direct = tap.valid & tap.hit & ~tap.pending
        path = [tap.valid & ~tap.hit & (tap.key == 0), direct & (tap.key == 0), dut.evicted.valid,
                enters & (offered.key == 1), direct & (tap.key == 1)]
        with m.Switch(stage):
            for k, step in enumerate(path[:steps]):
                with m.Case(k):
                    m.d.sync += stage.eq(stage + step)
        bench.always("reached", ~((stage == steps) & leaves))
        return bench
    bench.always("vector", ~leaves | (answer.data[0] == kept))
    bench.always("not_twice", ~leaves | due)
    # If the cache is idle and no fetch is outstanding, no lookup waits.
    bench.always("answered", ~(dut.idle & (busy == 0) & due))
    return bench


@pytest.mark.slow
@pytest.mark.parametrize("steps, depth", [(3, QUICK_DEPTH), (5, DEPTH)])
def test_depth_reaches(steps, depth):
    """The search includes an eviction after a hit and, with all cycles, a hit on the refilled row.
    """
    verdict = prove(rows("reached", steps=steps), depth=depth)
    assert verdict.broken == ("reached",), verdict


@pytest.mark.slow
@pytest.mark.parametrize("depth", [QUICK_DEPTH, DEPTH])
def test_rows(depth):
    verdict = prove(rows("once"), depth=depth, seconds=1800)
    assert verdict.holds, verdict


@pytest.mark.thorough
def test_answered_in_time():
    verdict = prove(rows("in_time"), depth=TIME_DEPTH)
    assert verdict.holds, verdict


@pytest.mark.few(1, "thorough")
@pytest.mark.few(3)
@pytest.mark.parametrize("what, wrong, edit", some_slow([
    ("once", "vector", ("VectorStore", "Mux(read.waiter, landing.read_data, slots.read_data)",
                        "landing.read_data")),
    ("once", "vector", ("VectorStore", "[\"write_en\"].eq(write.stored)",
                        "[\"write_en\"].eq(write.valid)")),
    ("once", "vector", ("VectorStore", "[\"write_en\"].eq(write.stored)",
                        "[\"write_en\"].eq(write.stored & ~write.id[0])")),
    ("once", "answered", ("Resolver", "asked & (~kept.hit | self.waiting)", "asked & ~kept.hit")),
    ("once", "answered", ("Resolver", "asked & ~(kept.hit & self.waiting)", "asked & ~kept.hit")),
    # A lookup that waited is answered in the 15th cycle at the earliest. With the mutant, it reads
    # its slot in the 10th cycle. Both are far within the depth.
    ("once", "vector", ("EmbeddingCache", "resolver.waiting.eq(table.waiting)",
                        "resolver.waiting.eq(0)")),
    ("once", "not_twice", ("VectorStore", "self.hits.ready.eq(queue.free & final",
                           "self.hits.ready.eq(queue.free & final & (passed != 0)")),
    ("once", "rows_expected", ("EmbeddingCache", "writer.fill_phase.eq(table.fill_phase)",
                               "writer.fill_phase.eq(0)")),
    ("once", "lists_expected", ("Resolver", "self.add_first.eq(~now.hit)",
                                "self.add_first.eq(1)")),
    ("in_time", "in_time", ("EmbeddingCache", "scatter.close.eq(closed)",
                            "scatter.close.eq(closed & closed_id[0])")),
], ["stored-without-a-row", "waiter-lost"],
    ["landing-row", "stored-without-a-row", "refill-lost", "waiter-lost", "hit-lost", "waiter-now",
     "hit-twice", "phase-lost", "list-begun-again", "never-closed"]))
def test_broken_rows(what, wrong, edit):
    verdict = prove(rows(what, edit), depth=TIME_DEPTH if what == "in_time" else DEPTH)
    assert wrong in verdict.broken, verdict

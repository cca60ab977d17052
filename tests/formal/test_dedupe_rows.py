"""Proofs of the dedupe table behind its tag pipeline, bounded: each request is scattered once.

The cache inside is that of ``test_cache_rows``, with one entry, so a second key of the step retires
the first key early. ``test_cache_rows`` proves that lookups are answered. A test shows that the
search reaches the answer to a request after such a retirement, but not a second fetch of the
retired key. Two cycles fewer, in a quarter of the time, reach the answer to a request before it.
All proofs are slow.
"""

import pytest
from amaranth.hdl import Cat, Signal

from rtl.config import NicConfig
from rtl.dedupe import DedupeTable
from tests.formal.behind import fetched, small_cache
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import some_slow, variant

DEPTH, QUICK_DEPTH = 23, 21


def scattered(what: str, *edits: tuple[str, str, str]) -> Bench:
    """Return a bench that follows any one request, of two rows, steps and nodes.

    what: "once": it is scattered at most once, to its requester; if the table is idle and no fetch
    is outstanding, it was scattered. "reached": states that within a step no request after an early
    retirement is answered; "retired": also no request before it.
    """
    bench = Bench()
    m = bench.m
    own = [edit[1:] for edit in edits if edit[0] == "DedupeTable"]
    m.submodules.dut = dut = variant(DedupeTable, *own, EmbeddingCache=small_cache(
        bench, *edits))(NicConfig(max_dimension=16))
    m.d.comb += [dut.enable.eq(1), dut.vector_beats.eq(1)]
    request, marked, due, kept = (
        Signal(dut.requests.payload.shape()), Signal(), Signal(), Signal(3))
    m.d.comb += [request.key.row.eq(bench.free(name="row")),
                 request.step.eq(bench.free(name="step")),
                 request.node.eq(bench.free(name="node")),
                 request.landing.eq(bench.free(name="mark") & ~marked)]
    entered, offered = bench.source(dut.requests, request), dut.requests.payload
    vector = dut.vectors.payload
    left = bench.sink(dut.vectors, "vectors", Cat(vector.data[0], vector.tag))
    busy = fetched(bench, dut, lambda key: key.row[0])
    enters, leaves = entered & offered.landing[0], left & vector.tag.landing[0]
    with m.If(enters):
        m.d.sync += [marked.eq(1), due.eq(1),
                     kept.eq(Cat(offered.key.row[0], offered.node[0], offered.step[0]))]
    with m.Elif(leaves):
        m.d.sync += due.eq(0)

    if what in ("reached", "retired"):
        one_step, after = Signal(init=1), Signal()
        m.d.sync += [
            one_step.eq(one_step & ~(entered & offered.step[0])),
            after.eq(after | (enters & (dut.counters.retired_early != 0)))]
        early = after if what == "reached" else dut.counters.retired_early != 0
        bench.always("reached", ~(early & leaves & one_step))
    else:
        bench.always("to_its_requester", ~leaves | (
            Cat(vector.data[0], vector.tag.node[0], vector.tag.step[0]) == kept))
        bench.always("not_twice", ~leaves | due)
        bench.always("answered", ~(dut.idle & (busy == 0) & due))
    return bench


@pytest.mark.parametrize("what, depth", [
    ("retired", QUICK_DEPTH), pytest.param("reached", DEPTH, marks=pytest.mark.slow)])
def test_depth_reaches_an_answer_after_early_retirement(what, depth):
    verdict = prove(scattered(what), depth=depth)
    assert verdict.broken == ("reached",), verdict


@pytest.mark.thorough
@pytest.mark.parametrize("depth", [QUICK_DEPTH, pytest.param(DEPTH, marks=pytest.mark.slow)])
def test_dedupe_rows(depth):
    verdict = prove(scattered("once"), depth=depth)
    assert verdict.holds, verdict


@pytest.mark.thorough
@pytest.mark.few(2)
@pytest.mark.parametrize("wrong, edit", some_slow([
    # Detected in the 10th cycle, as in ``test_cache_rows``.
    ("to_its_requester", ("EmbeddingCache", "resolver.waiting.eq(table.waiting)",
                          "resolver.waiting.eq(0)")),
    ("not_twice", ("VectorStore", "self.hits.ready.eq(queue.free & final",
                   "self.hits.ready.eq(queue.free & final & (passed != 0)")),
    ("answered", ("Resolver", "asked & ~(kept.hit & self.waiting)", "asked & ~kept.hit")),
    ("to_its_requester", ("DedupeTable", "tag.node.eq(request.node)", "tag.node.eq(0)")),
    ("to_its_requester", ("VectorStore", "Mux(waiter, waiter_meta, hit_meta)",
                          "Mux(waiter, waiter_meta, waiter_meta)")),
    ("to_its_requester", ("VectorStore", "[\"write_en\"].eq(write.stored)",
                          "[\"write_en\"].eq(write.stored & ~write.id[0])")),
], ["hit-as-waiter"],
    ["waiter-now", "hit-twice", "hit-lost", "to-node-0", "hit-as-waiter", "refill-lost"]))
def test_broken_dedupe_rows(wrong, edit):
    verdict = prove(scattered("once", edit), depth=DEPTH)
    assert wrong in verdict.broken, verdict

"""Proof of the cache as a whole, without bound: each lookup is answered once, with its vector.

The answer of a lookup is the vector of its key, and leaves once. If the cache is idle and no fetch
is outstanding, no lookup is left. The cache, its resolver and its fill writer are real. Tag
pipeline, scatter lists, miss table, free list, vector store and the queue of operations are
replaced by over-approximations. Each is proved without bound (``test_tags``, ``test_scatter_list``,
``test_miss_table``, ``test_vector_store``, ``test_credit_queue``); this file states the assumptions
of those proofs. Induction needs an invariant, which is stated too: see
:class:`~tests.formal.whole.Whole`, also for the sizes.

:mod:`~tests.formal.test_cache_rows` searches the bound of the time until an answer.
"""

import pytest
from amaranth.hdl import Signal

from tests.formal.prove import prove
from tests.formal.whole import Whole

DEPTH = 20


def whole(*edits: tuple[str, str, str]) -> Whole:
    """Return the cache with the statements to prove and the invariant."""
    made = Whole(*edits)
    made.answered()
    made.invariant()
    made.values()
    return made


def test_rows_are_refilled():
    """The proof includes runs in which a row is filled, evicted, filled again and hit."""
    made = Whole()
    bench, dut, m = made.bench, made.dut, made.bench.m
    bench.broken.clear()
    evicted = Signal()
    with m.If(dut.evicted.valid):
        m.d.sync += evicted.eq(1)
    hits = made.parts.store.hits
    bench.always("reached", ~(made.leaves & hits.valid & hits.ready & evicted))
    assert prove(bench, depth=DEPTH + 4).broken == ("reached",)


@pytest.mark.thorough
def test_cache():
    verdict = prove(whole().bench, seconds=900)
    assert verdict.holds, verdict


@pytest.mark.few(1, "thorough")
@pytest.mark.few(4)
@pytest.mark.parametrize("edit", [
    ("Resolver", "asked & (~kept.hit | self.waiting)", "asked & ~kept.hit"),
    ("Resolver", "asked & ~(kept.hit & self.waiting)", "asked & ~kept.hit"),
    ("Resolver", "asked & ~(kept.hit & self.waiting)", "asked"),
    ("Resolver", "direct.eq(stayed & ~go &", "direct.eq(self.decisions.valid & ~go &"),
    ("EmbeddingCache", "resolver.waiting.eq(table.waiting)", "resolver.waiting.eq(0)"),
    ("EmbeddingCache", "scatter.close.eq(closed), scatter.close_id.eq(closed_id)",
     "scatter.close.eq(writer.complete), scatter.close_id.eq(writer.complete_id)"),
    ("EmbeddingCache", "scatter.close.eq(closed)", "scatter.close.eq(closed & closed_id[0])"),
    ("EmbeddingCache", "resolver.operations.valid & out.miss", "resolver.operations.valid"),
    ("EmbeddingCache", "writer.fill_phase.eq(table.fill_phase)", "writer.fill_phase.eq(0)"),
    ("FillWriter", "write.stored.eq(valid & good & self.fill_allocated)",
     "write.stored.eq(valid & good)"),
    ("FillWriter", "self.complete.eq(complete)", "self.complete.eq(complete & allocated)"),
    ("FillWriter", "self.filled.valid.eq(complete & allocated)", "self.filled.valid.eq(complete)"),
], ids=["waiter-lost", "hit-lost", "waiter-twice", "answer-of-another", "waiter-now",
        "closed-too-early", "never-closed", "hit-is-fetched", "phase-lost",
        "stored-without-a-row", "complete-with-a-row", "filled-without-a-row"])
def test_broken_cache(edit):
    assert not prove(whole(edit).bench, depth=DEPTH).holds

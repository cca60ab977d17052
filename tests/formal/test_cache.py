"""Proofs of the cache, bounded: each lookup is answered once, with the vector of its key.

The cache has one set of two ways, two fetches in flight, two waiting lookups and vectors of one
bit, so ids, waiters and ways run out within the searched cycles. The search covers reset up to the
answers of the first fetches, but not the second use of an id. :mod:`~tests.formal.test_cache_whole`
proves the same for runs of any length, with substitutes for some parts. In this file all parts are
real, except the skid buffers at the edges, which are wires (:class:`~tests.formal.wires.Wires`).
"""

import pytest
from amaranth.hdl import C, Cat, Signal

from rtl.cache.cache import EmbeddingCache
from rtl.cache.miss_table import MissTable
from rtl.cache.resolver import Resolver
from rtl.cache.scatter_list import ScatterList
from rtl.cache.tags import TagPipeline
from rtl.cache.vectors import VectorStore
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.formal.wires import Wires
from tests.mutants import variant

IDS = 2
DEPTH, MUTANT_DEPTH = 36, 40
PARTS = {"TagPipeline": TagPipeline, "ScatterList": ScatterList, "MissTable": MissTable,
         "Resolver": Resolver}


def cached(what: str, edited: str = "", *edit: str) -> Bench:
    """Return a bench that looks up any of four keys and fills any outstanding fetch at any time.

    what: "vector": meta marks lookups of key 0, whose vector is 1; all other vectors are 0. By
    symmetry key 0 is any key: keys are only compared, and all belong to one set. "once": meta marks
    any one lookup.
    edited: the class that the texts ``edit`` break.
    """
    bench = Bench()
    m = bench.m

    def edits(name: str) -> list[tuple[str, ...]]:
        return [edit] if name == edited else []

    parts = {name: variant(part, *edits(name)) for name, part in PARTS.items()}
    store = variant(VectorStore, *edits("VectorStore"), SkidBuffer=Wires)
    m.submodules.dut = dut = variant(
        EmbeddingCache, *edits("EmbeddingCache"), SkidBuffer=Wires, VectorStore=store, **parts)(
        2, 1, rows=4, ways=2, in_flight=IDS, waiters=2, vector_beats=1,
        hash_key=lambda key: C(0, 32))
    m.d.comb += [dut.sets.eq(1), dut.enable.eq(1), dut.merge.eq(1), dut.vector_beats.eq(1)]

    lookup, marked = Signal(dut.lookups.payload.shape()), Signal()
    m.d.comb += lookup.key.eq(bench.free(2, "key"))
    if what == "vector":
        m.d.comb += lookup.meta.eq(lookup.key == 0)
    else:
        m.d.comb += lookup.meta.eq(bench.free(name="mark") & ~marked)
    entered = bench.source(dut.lookups, lookup)
    answer = dut.vectors.payload
    left = bench.sink(dut.vectors, "vectors", Cat(answer.data[0], answer.meta))

    # Source of the vectors: any outstanding fetch may be answered in any cycle.
    miss = dut.misses.payload
    asked = bench.sink(dut.misses, "misses", Cat(miss.key, miss.id[0]))
    busy, zero, id_ = Signal(IDS), Signal(IDS), bench.free(range(IDS), "id")
    m.d.comb += [
        dut.fills.valid.eq(bench.free(name="fill") & busy.bit_select(id_, 1)),
        dut.fills.payload.id.eq(id_), dut.fills.payload.last.eq(1),
        dut.fills.payload.data.eq(zero.bit_select(id_, 1) if what == "vector" else 0)]
    bench.always("fills_taken", ~dut.fills.valid | dut.fills.ready)
    with m.If(dut.fills.valid):
        m.d.sync += busy.bit_select(id_, 1).eq(0)
    with m.If(asked):
        m.d.sync += [busy.bit_select(miss.id[0], 1).eq(1),
                     zero.bit_select(miss.id[0], 1).eq(miss.key == 0)]
    bench.always("ids_apart", ~dut.misses.valid | ((miss.id < IDS)
                                                   & ~busy.bit_select(miss.id[0], 1)))

    if what == "vector":
        bench.always("vector", ~left | (answer.data[0] == answer.meta))
        return bench
    due = Signal()
    with m.If(entered & dut.lookups.payload.meta):
        m.d.sync += [marked.eq(1), due.eq(1)]
    with m.Elif(left & answer.meta):
        m.d.sync += due.eq(0)
    bench.always("not_twice", ~(left & answer.meta) | due)
    # If the cache is idle and no fetch is outstanding, no lookup waits.
    bench.always("answered", ~(dut.idle & (busy == 0) & due))
    return bench


@pytest.mark.thorough
def test_depth_reaches():
    """The search includes a lookup that waits for another lookup's fetch, and is answered."""
    bench = cached("vector")
    dut = bench.m.submodules.dut
    answers, fetches = Signal(2), Signal(2)
    bench.m.d.sync += [answers.eq(answers + (dut.vectors.valid & dut.vectors.ready)),
                       fetches.eq(fetches + (dut.misses.valid & dut.misses.ready))]
    bench.broken.clear()
    bench.always("reached", (answers != 2) | (fetches != 1))
    assert prove(bench, depth=DEPTH).broken == ("reached",)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["vector", "once"])
def test_cache(what):
    verdict = prove(cached(what), depth=DEPTH, seconds=1800)
    assert verdict.holds, verdict


@pytest.mark.slow
@pytest.mark.parametrize("what, broken, edit", [
    ("once", "answered", ("Resolver", "asked & (~kept.hit | self.waiting)", "asked & ~kept.hit")),
    ("once", "answered", ("Resolver", "asked & ~(kept.hit & self.waiting)", "asked & ~kept.hit")),
    ("once", "not_twice", ("Resolver", "asked & ~(kept.hit & self.waiting)", "asked")),
    ("vector", "vector", ("TagPipeline", "hit.eq((now.match &", "hit.eq((now.held &")),
    ("vector", "vector", ("VectorStore", "Mux(read.waiter, landing.read_data, slots.read_data)",
                          "slots.read_data")),
], ids=["waiter-lost", "hit-lost", "waiter-twice", "any-key", "slot-of-a-waiter"])
def test_broken_cache(what, broken, edit):
    verdict = prove(cached(what, *edit), depth=MUTANT_DEPTH, seconds=900)
    assert broken in verdict.broken, verdict

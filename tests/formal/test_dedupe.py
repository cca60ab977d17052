"""Proof of the dedupe table, bounded: no request is scattered twice, or to another requester.

Four fetches and four waiting requests, the least of any configuration; two rows and two steps. That
each request is scattered at all takes more cycles than this search; it is searched for the cache
inside. The skid buffers at the edges are wires (:class:`~tests.formal.wires.Wires`).
"""

import pytest
from amaranth.hdl import Cat, Signal

from rtl.cache.cache import EmbeddingCache
from rtl.cache.resolver import Resolver
from rtl.cache.vectors import VectorStore
from rtl.config import NicConfig
from rtl.dedupe import DedupeTable
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.formal.wires import Wires
from tests.mutants import variant

CONFIG = NicConfig(name="least", nodes=2, tables=1, max_dimension=16, dedupe_keys=4, dedupe_ways=2,
                   dedupe_in_flight=4, scatter_entries=4)
IDS, DEPTH = 4, 32


def scattered(*edits: tuple[str, str]) -> Bench:
    """Return a bench that follows any one request through the table."""
    bench = Bench()
    m = bench.m
    cache = variant(EmbeddingCache, SkidBuffer=Wires, Resolver=variant(Resolver, *edits),
                    VectorStore=variant(VectorStore, SkidBuffer=Wires))
    m.submodules.dut = dut = variant(DedupeTable, EmbeddingCache=cache)(CONFIG)
    m.d.comb += [dut.enable.eq(1), dut.vector_beats.eq(1)]
    request, marked = Signal(dut.requests.payload.shape()), Signal()
    m.d.comb += [request.key.row.eq(bench.free(name="row")),
                 request.step.eq(bench.free(name="step")),
                 request.node.eq(bench.free(name="node")),
                 request.landing.eq(bench.free(name="mark") & ~marked)]
    entered = bench.source(dut.requests, request)
    vector = dut.vectors.payload
    left = bench.sink(dut.vectors, "vectors", Cat(vector.data[0], vector.tag))

    # The store: row 1 is a vector of 1, row 0 a vector of 0.
    miss = dut.misses.payload
    asked = bench.sink(dut.misses, "misses", Cat(miss.key.row, miss.id))
    busy, row, id_ = Signal(IDS), Signal(IDS), bench.free(range(IDS), "id")
    m.d.comb += [
        dut.fills.valid.eq(bench.free(name="fill") & busy.bit_select(id_, 1)),
        dut.fills.payload.id.eq(id_), dut.fills.payload.last.eq(1),
        dut.fills.payload.data.eq(row.bit_select(id_, 1))]
    with m.If(dut.fills.valid):
        m.d.sync += busy.bit_select(id_, 1).eq(0)
    with m.If(asked):
        m.d.sync += [busy.bit_select(miss.id[:2], 1).eq(1),
                     row.bit_select(miss.id[:2], 1).eq(miss.key.row[0])]

    due, kept = Signal(), Signal(3)
    item = dut.requests.payload
    with m.If(entered & item.landing[0]):
        m.d.sync += [marked.eq(1), due.eq(1), kept.eq(Cat(item.key.row[0], item.node[0],
                                                          item.step[0]))]
    with m.Elif(left & vector.tag.landing[0]):
        m.d.sync += due.eq(0)
    arrives = left & vector.tag.landing[0]
    bench.always("not_twice", ~arrives | due)
    bench.always("to_its_requester", ~arrives | (
        Cat(vector.data[0], vector.tag.node[0], vector.tag.step[0]) == kept))
    return bench


@pytest.mark.slow
def test_dedupe():
    verdict = prove(scattered(), depth=DEPTH, seconds=1800)
    assert verdict.holds, verdict


@pytest.mark.slow
def test_broken_dedupe():
    edit = ("asked & ~(kept.hit & self.waiting)", "asked")
    verdict = prove(scattered(edit), depth=DEPTH)
    assert set(verdict.broken) & {"not_twice", "to_its_requester"}, verdict

"""Proof of the frozen cache, without bound: it settles exactly when all earlier lookups are done.

The cache is that of :mod:`~tests.formal.test_cache_whole`, with updatable rows; it freezes and
unfreezes in any cycle. ``settled`` means that no row's vector is in flight and no earlier lookup
may take a row. It is 1 at the latest in the third frozen cycle in which this holds. The time to
settle is therefore the time of the lookups and fetches inside. A search with eager surroundings
bounds it in the first 31 cycles.
"""

import pytest
from amaranth.hdl import C, Signal

from tests.formal.behind import fetched, small_cache
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.formal.whole import Whole

IN_TIME, TIME_DEPTH = 20, 31


def settling(*edits: tuple[str, str, str]) -> Whole:
    """Return the cache with the statements about ``settled`` and the invariant."""
    made = Whole(*edits, updated=True)
    made.settles()
    made.invariant()
    return made


def in_time() -> Bench:
    """Return a bench that freezes the cache once, at any time, and is eager then."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = small_cache(bench, eager=C(1), lists=False, updated=True)(1, 1)
    frozen = Signal()
    m.d.sync += frozen.eq(frozen | bench.free(name="freezes"))
    lookup = Signal(dut.lookups.payload.shape())
    m.d.comb += [dut.sets.eq(1), dut.enable.eq(1), dut.merge.eq(1), dut.vector_beats.eq(1),
                 dut.frozen.eq(frozen), lookup.key.eq(bench.free(name="key"))]
    bench.source(dut.lookups, lookup)
    bench.sink(dut.vectors, "vectors", dut.vectors.payload.last, C(1))
    fetched(bench, dut, lambda key: key == 0, C(1))
    bench.within("in_time", IN_TIME, frozen, dut.settled)
    return bench


@pytest.mark.thorough
def test_settles():
    verdict = prove(settling().bench, seconds=900)
    assert verdict.holds, verdict


@pytest.mark.slow
def test_settles_in_time():
    verdict = prove(in_time(), depth=TIME_DEPTH)
    assert verdict.holds, verdict


@pytest.mark.few(1, "thorough")
@pytest.mark.few(3)
@pytest.mark.parametrize("wrong, old, new", [
    ("settled", "(unsettled == 0) & ~entered", "~entered"),
    ("settled", "(unsettled == 0) & ~entered", "(unsettled == 0)"),
    ("counted", "& ~done.decision.allocate)", ")"),
    ("counted", "- writer.filled.valid", "- 0"),
    ("counted", "(done.valid & ~done.decision.frozen & ~done.decision.allocate)",
     "(done.valid & ~done.decision.allocate)"),
    ("counted", "tags.lookups.ready & ~self.frozen)", "tags.lookups.ready)"),
    ("counted", "tags.frozen.eq(self.frozen)", "tags.frozen.eq(0)"),
], ids=["unsettled", "one-enters", "allocated-is-settled", "never-settled", "frozen-ones-leave",
        "frozen-ones-enter", "thaws"])
def test_broken_settles(wrong, old, new):
    verdict = prove(settling(("EmbeddingCache", old, new)).bench, depth=14)
    assert set(verdict.broken) & {wrong, "settled", "settles"}, verdict

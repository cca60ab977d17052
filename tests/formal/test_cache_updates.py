"""Proof of updates of cached rows, without bound: a lookup after an update gets new values.

Training repeats these steps for a row. The cache is frozen. Once it has settled, the row is looked
up. Its new vector is written to its slot, if it has one, and to GPU memory, in either order. Then
the cache unfreezes. All steps occur at any time, among lookups at any time. A fetch returns the
content of GPU memory in any cycle between its request and its fill. New values are free. Each
lookup gets a value that its row had since the lookup entered: after an update, no older value. An
update finds the row in its slot, if it is cached, with its last values.

The cache is that of :mod:`~tests.formal.test_cache_whole`, and the invariant extends its invariant:
see :class:`~tests.formal.whole_updates.Updated`. Its tag pipeline has both settings on.
"""

import pytest
from amaranth.hdl import Signal

from tests.formal.prove import prove
from tests.formal.whole_updates import FOUND, REST, Updated
from tests.mutants import some_slow

DEPTH = 30


def updated(*edits: tuple[str, str, str], **path: bool) -> Updated:
    """Return the cache with the statements to prove. ``path``: see :class:`Updated`."""
    made = Updated(*edits, **path)
    made.finds()
    return made


def test_rows_are_updated():
    """The proof includes runs in which a slot is updated and then read by a lookup."""
    made = Updated()
    bench, m = made.bench, made.bench.m
    bench.broken.clear()
    wrote, after = Signal(2), Signal()
    with m.If((made.state == FOUND) & made.held & made.fresh & ~made.old & made.written):
        m.d.sync += wrote[0].eq(1)
    with m.If(wrote[0] & (made.state == REST) & made.old):
        m.d.sync += wrote[1].eq(1)
    with m.If(made.enters):
        m.d.sync += after.eq(wrote[1] & ~made.dut.frozen & ~made.update)
    answer = made.dut.vectors.payload
    bench.always("reached", ~(made.leaves & after & answer.held & answer.data[0]))
    assert prove(bench, depth=DEPTH).broken == ("reached",)


@pytest.mark.thorough
def test_updates():
    made = updated()
    made.settles(soon=False)
    made.invariant()
    made.values()
    made.updates()
    verdict = prove(made.bench, seconds=900)
    assert verdict.holds, verdict


SLOW = ["unsettled", "one-enters", "allocated-is-settled", "settled-at-once", "frozen-late",
        "any-fetch-settles"]
"""Mutants that represent similar ones."""


@pytest.mark.parametrize("edit", some_slow([
    (("EmbeddingCache", "(unsettled == 0) & ~entered", "~entered"),),
    (("EmbeddingCache", "(unsettled == 0) & ~entered", "(unsettled == 0)"),),
    (("EmbeddingCache", "& ~done.decision.allocate)", ")"),),
    (("EmbeddingCache", "settled.eq(self.frozen & (unsettled", "settled.eq((unsettled"),),
    (("EmbeddingCache", "self.settled.eq(self.frozen & settled)", "self.settled.eq(settled)"),),
    (("EmbeddingCache", "tags.frozen.eq(self.frozen)", "tags.frozen.eq(0)"),),
    (("EmbeddingCache", "tags.frozen.eq(self.frozen)", "tags.frozen.eq(self.settled)"),),
    (("EmbeddingCache", "- writer.filled.valid", "- writer.complete"),),
], SLOW, ["unsettled", "one-enters", "allocated-is-settled", "settled-at-once",
          "settled-while-thawed", "thaws", "frozen-late", "any-fetch-settles"]))
def test_broken_updates(edit):
    verdict = prove(updated(edit).bench, depth=DEPTH)
    assert set(verdict.broken) & {"vector", "finds"}, verdict


@pytest.mark.thorough
@pytest.mark.parametrize("path", ["waits", "stays"])
def test_broken_path(path):
    """Updates that do not wait until the cache has settled, and a cache that unfreezes too early.
    """
    verdict = prove(updated(**{path: False}).bench, depth=DEPTH)
    assert set(verdict.broken) & {"vector", "finds"}, verdict

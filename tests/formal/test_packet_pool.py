"""Proof of the packet pool and the vector pool: items of a packet have one destination and distinct
positions, and each packet closes once, full or old enough. A packet of the vector pool has vectors
of one size, and as many as its limit for this size.

The proof covers runs of any length: two destinations and three buffers of two positions; three and
four of six; four and six of eight. Times have 32 bits in the hardware and four here. Induction
needs an invariant, which is stated too: see :class:`~tests.formal.pooling.Pooling`, also for the
proofs of the substitutes.

The time until a packet closes and until an item gets its place is searched in the first cycles.
"""

import pytest
from amaranth.hdl import Signal

from tests.formal.bench import Bench
from tests.formal.induction import by_induction
from tests.formal.pooling import Pooling
from tests.formal.prove import prove

SIZES, LARGER, LARGEST = (2, 3, 2), (3, 4, 6), (4, 6, 8)
DEPTH = 14
"""Searched cycles: enough for the second use of a buffer."""


def pooled(*edits: tuple[str, str], match: bool, soon: bool = False, sized: bool = False) -> Bench:
    """Return a bench of a small pool, without the invariant. ``soon``: also state time bounds."""
    made = Pooling(*edits, match=match, sizes=SIZES, sized=sized)
    if soon:
        made.soon()
    return made.bench


def invariant(*edits: tuple[str, str], match: bool, sizes: tuple[int, int, int] = SIZES,
              sized: bool = False) -> Bench:
    """Return a bench of a pool with the invariant."""
    made = Pooling(*edits, match=match, sizes=sizes, sized=sized)
    made.invariant()
    return made.bench


@pytest.mark.thorough
@pytest.mark.parametrize("sizes, match", [
    (SIZES, False), (SIZES, True), (LARGER, False),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in (
        (LARGER, True), (LARGEST, False), (LARGEST, True)))])
def test_packet_pool(sizes, match):
    verdict = by_induction(invariant(match=match, sizes=sizes))
    assert verdict.holds, verdict


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", [SIZES, pytest.param(LARGER, marks=pytest.mark.slow)])
def test_vector_pool(sizes):
    verdict = by_induction(invariant(match=True, sizes=sizes, sized=True))
    assert verdict.holds, verdict


@pytest.mark.parametrize("old, new", [
    ("(same & (self.label != item.label))", "0"),
    ("(~same & (self.label != found.label))", "0"),
    ("~same & (found.units >= ahead)", "~same & (found.units > ahead)"),
    ("Mux(expiring, overdue[name], updated[name])", "updated[name]"),
    ("single.eq(ahead == 0)", "single.eq(0)"),
], ids=["another-after-it", "another-later", "one-too-many", "label-of-another", "full-alone"])
def test_broken_vector_pool(old, new):
    assert not by_induction(invariant((old, new), match=True, sized=True)).holds


def test_it_gets_round():
    """The proof includes runs in which a buffer is used again and again."""
    made = Pooling(match=True, sizes=SIZES)
    bench, times = made.bench, Signal(2)
    bench.m.d.sync += times.eq(times + (made.out & (made.shown.buffer == 0)))
    bench.broken.clear()
    bench.always("reached", times != 2)
    verdict = prove(bench, depth=2 * DEPTH)
    assert verdict.broken == ("reached",), verdict


@pytest.mark.thorough
@pytest.mark.parametrize("match", [False, True], ids=["any-step", "one-step"])
def test_nothing_is_kept_back(match):
    verdict = prove(pooled(match=match, soon=True), depth=DEPTH)
    assert verdict.holds, verdict


@pytest.mark.few(4)
@pytest.mark.parametrize("match, soon, old, new, what", [
    (False, False, "& ~(expiring & (late_index == target))", "", "place"),
    (False, False, "splits.eq(Mux(self.ready, ~item.last, middle))", "splits.eq(0)",
     "what_is_told"),
    (False, False, "state.eq(Mux(same, updated, found))", "state.eq(found)", "place"),
    (False, False, "found.units >= but_one", "found.units >= self.limit", "place"),
    (False, False, "return age >= self.timeout", "return 1", "for_a_reason"),
    (False, False, "Mux(opening & (next_look == item.destination), 1,", "Mux(0, 1,",
     "for_a_reason"),
    (False, False, "late.eq(0), opened.bit_select(late_index, 1).eq(0)", "late.eq(0)",
     "what_is_told"),
    (True, False, "(~same & (self.step != found.step))", "0", "place"),
    (True, False, "Mux(other_step, state[name], updated[name])", "updated[name]", "what_is_told"),
    (True, False, "same & (self.step != item.step)", "same & is_open & (self.step != item.step)",
     "place"),
    (True, False, "Mux(expiring, overdue.step, updated.step)", "updated.step", "what_is_told"),
    (False, True, "look.eq(self.time[:bits])", "look.eq(0)", "closes_"),
], ids=["into-one-that-closes", "split", "place-twice", "over-the-limit", "at-once", "old-age",
        "twice", "any-step", "counts-of-another", "step-of-the-first", "step-of-another",
        "never-looked-at"])
def test_broken_packet_pool(match, soon, old, new, what):
    verdict = prove(pooled((old, new), match=match, soon=soon), depth=DEPTH)
    assert any(name.startswith((what, "what_is_told", "for_a_reason"))
               for name in verdict.broken), verdict


@pytest.mark.thorough
@pytest.mark.few(1)
@pytest.mark.parametrize("old, new", [
    ("(is_open & (state.units + item.last >= but_one))",
     "(is_open & (state.units + 1 >= but_one))"),
    ("(~is_open & (item.last >= but_one))", "(~is_open & (1 >= but_one))"),
    ("(is_open & (state.units + item.last >= but_one))", "(is_open & (state.units >= but_one))"),
], ids=["half-a-unit", "half-a-unit-at-first", "one-too-many"])
def test_broken_invariant(old, new):
    """The mutant needs more positions than the search covers; induction detects it."""
    assert not by_induction(invariant((old, new), match=False, sizes=LARGER)).holds

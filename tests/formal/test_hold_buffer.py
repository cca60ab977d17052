"""Proof of the hold buffer, without bound: a slot leaves with its own vector, in slot order.

The buffer has two places; or four, with two inspected ahead; or eight, with the hardware's window
of four. Vectors have one beat of one bit. Each reserved place gets its vector at any time, from the
network or from this node. The network also sends vectors for places that wait for none, including
places of an earlier lap. The filled bits start with any contents. Induction needs an invariant,
which is stated too: see :class:`~tests.formal.holding.Holding`, also for the proofs of the
substitutes.

The proof shows for any run that the window sees each vector that has filled its place. The time
until slots leave is searched in the first cycles.
"""

import pytest
from amaranth.hdl import Signal

from tests.formal.bench import Bench
from tests.formal.holding import Holding
from tests.formal.induction import by_induction
from tests.formal.prove import prove

PLACES, LAPS = 2, 3
DEPTH, SOON_DEPTH = 21, 16


def held(*edits: tuple[str, str, str], soon: bool = False) -> Bench:
    """Return a bench of two places, without the invariant. ``soon``: bound the time until slots
    leave."""
    made = Holding(*edits, places=PLACES, window=2)
    made.sees()
    if soon:
        made.soon()
    return made.bench


def test_it_gets_round():
    """The proof includes runs in which slots of the third lap leave."""
    made = Holding(places=PLACES, window=2)
    bench, count = made.bench, Signal(range(PLACES * LAPS + 1))
    bench.m.d.sync += count.eq(count + made.left)
    bench.broken.clear()
    bench.always("reached", ~made.left | (count != PLACES * (LAPS - 1)))
    verdict = prove(bench, depth=DEPTH)
    assert verdict.broken == ("reached",), verdict


@pytest.mark.thorough
@pytest.mark.parametrize("places, window", [
    pytest.param(2, 2, marks=pytest.mark.slow), (4, 2),
    pytest.param(8, 4, marks=pytest.mark.slow)])
def test_hold_buffer(places, window):
    made = Holding(places=places, window=window)
    made.sees()
    made.invariant()
    verdict = by_induction(made.bench)
    assert verdict.holds, verdict


def test_it_goes_on():
    verdict = prove(held(soon=True), depth=SOON_DEPTH)
    assert verdict.holds, verdict


@pytest.mark.few(3)
@pytest.mark.parametrize("what, edit", [
    ("its_vector", ("HoldBuffer", "unread.up & (record.kind == RecordKind.EMPTY)", "0")),
    ("its_vector", ("HoldBuffer", "Mux(read.void, 0, store.read_data[:self._bits])",
                    "store.read_data[:self._bits]")),
    ("its_vector", ("HoldBuffer", "address.eq(following * beats)", "address.eq(address)")),
    ("seen_0", ("HoldBuffer", "now.eq(now | filled | (", "now.eq(now | (")),
    ("its_vector", ("LandingCheck", "(check.read_data != stage.lap)", "1")),
    ("its_vector", ("LandingCheck", "self.head[bits] ^ (place < self.head[:bits])",
                    "self.head[bits]")),
    ("its_vector", ("LandingCheck", "& ~(self.filled_valid & stage.same)", "")),
    ("its_vector", ("LandingCheck", "& ~(before & stage.similar)", "")),
    ("its_vector", ("LandingCheck", "value.eq(filled_lap)", "value.eq(~filled_lap)")),
    ("its_vector", ("LandingCheck", "& (tag[bits:] == 0)", "")),
    ("its_vector", ("LandingCheck", "address.eq(sweep[:bits]), value.eq(1)",
                    "address.eq(sweep[:bits]), value.eq(0)")),
    ("its_vector", ("LandingCheck", "look_lap.eq(self.look[bits])", "look_lap.eq(0)")),
    ("free_place", ("HoldBuffer", "free.down.eq(reserve)", "free.down.eq(reserve & ~head[0])")),
], ids=["lap-of-an-empty-one", "void-is-read", "address", "in-the-window", "filled-twice",
        "lap", "at-once", "a-cycle-later", "old-lap", "far-place", "swept-full", "lap-of-a-look",
        "place-twice"])
def test_broken_hold_buffer(what, edit):
    verdict = prove(held(edit), depth=DEPTH)
    assert set(verdict.broken) & {what, "free_place"}, verdict


@pytest.mark.thorough
@pytest.mark.few(1)
@pytest.mark.parametrize("edit", [
    ("HoldBuffer", "landing.swept & ~behind", "landing.swept"),
    ("HoldBuffer", "behind.eq(marks.o.valid &", "behind.eq(0 &"),
    ("HoldBuffer", "MARKS = 4", "MARKS = 3"),
    ("HoldBuffer", "landing.filled_valid & (landing.filled == fetch[:bits])", "0"),
    ("LandingCheck", "sweep[:bits]), value.eq(1)]", "sweep[:bits]), value.eq(sweep[0])]"),
], ids=["not-behind", "never-behind", "marks-lost", "at-the-fetch", "swept-by-halves"])
def test_broken_invariant(edit):
    """The mutant needs more laps or places than the search covers; induction detects it."""
    made = Holding(edit, places=4, window=2)
    made.sees()
    made.invariant()
    assert not by_induction(made.bench).holds

"""Proof of the row updater: the cache stays frozen until slot and memory have the new rows.

Any one row of a step is followed from its sum to the end of the step. It is looked up once, and
only while the local cache is frozen and has settled. Its new vector, computed from the cache's
vector and its sum, is written once to GPU memory, and once to the slot in which it was found, if
any. Until then, and until the host has reported that all is written, the cache is frozen. It
unfreezes a few cycles after the end of a step is offered, once all is written.

Vectors have one beat; with two beats, the first 18 cycles are searched. For the surroundings see
:class:`~tests.formal.updating.Updating`. The invariant needs the further statements of
:func:`~tests.formal.updating_inside.inside`.
"""

import pytest
from amaranth.hdl import Signal, Value

from tests.formal.induction import by_induction
from tests.formal.prove import prove
from tests.formal.updating import Updating
from tests.formal.updating_inside import inside
from tests.mutants import some_slow

DEPTH = 24


def updating(*edits: tuple[str, str, str], **options) -> Updating:
    """Return the updater with the statements to prove. ``options``: see :class:`Updating`."""
    made = Updating(*edits, **options)
    bench, dut, m = made.bench, made.dut, made.bench.m
    for name in ("lookups", "write", "rows", "state_updates", "state_requests", "reports", "done"):
        port = getattr(dut, name)
        payload = Value.cast(port.payload)
        stalled, before = Signal(), Signal.like(payload)
        m.d.sync += [stalled.eq(port.valid & ~port.ready), before.eq(payload)]
        bench.always(f"{name}_holds", ~stalled | (port.valid & (payload == before)))
    frozen = dut.frozen
    bench.always("settled", ~made.its_lookup | (frozen & made.embedding.settled))
    got = made.embedding.lookups
    bench.always("reaches_cache", ((made.its_lookup & got.ready) == (
        dut.lookups.valid & dut.lookups.ready)) & (~made.its_lookup | (
            got.payload.meta[:-1] == dut.lookups.payload.meta) & (
            got.payload.key == Value.cast(dut.lookups.payload.key))))
    bench.always("frozen_at_lookup", ~dut.lookups.valid | frozen)
    bench.always("frozen_at_write", ~dut.write.valid | frozen)
    bench.always("frozen", ~made.pending | frozen)
    bench.always("confirmed", (made.out == 0) | frozen)
    bench.always("looked_once", ~made.looks | (made.summed & ~made.looked))
    write, row = dut.write.payload, dut.rows.payload
    for name, event, item, beat, done in (
            ("write", made.its_write, write, write.beat, made.wrote),
            ("row", made.its_row, row, row.record.beat, made.sent)):
        beat = beat[:made.beats - 1]
        bench.always(f"{name}_once", ~event | ~done.bit_select(beat, 1))
        bench.always(f"{name}_data", ~event | (
            made.found & (item.data == made.new.bit_select(beat, 1))))
    bench.always("write_held", ~made.its_write | made.held)
    bench.always("row_step", ~made.its_row | (row.step == made.step))
    bench.always("done", ~dut.done.valid | ((dut.done.payload == made.step) & (made.out == 0) & (
        ~made.summed | (made.looked & ~made.pending))))
    made.thaws()
    return made


def test_rows_are_updated():
    """The proof includes runs in which two rows of a step are written to slots, and the step ends.
    """
    made = updating()
    bench, m = made.bench, made.bench.m
    bench.broken.clear()
    other, wrote = Signal(), Signal()
    with m.If(made.dut.write.valid & made.dut.write.ready & ~made.its_write):
        m.d.sync += other.eq(1)
    with m.If(made.its_write & made.new & other):
        m.d.sync += wrote.eq(1)
    bench.always("reached", ~(made.over & wrote))
    assert prove(bench, depth=DEPTH).broken == ("reached",)


@pytest.mark.thorough
def test_row_updater():
    made = updating()
    inside(made)
    verdict = by_induction(made.bench)
    assert verdict.holds, verdict


@pytest.mark.slow
def test_invariant_is_found_again():
    """ABC's ``pdr`` proves the same statements as induction."""
    made = updating()
    inside(made)
    verdict = prove(made.bench)
    assert verdict.holds, verdict


@pytest.mark.slow
def test_vectors_of_two_beats():
    verdict = prove(updating(beats=2).bench, depth=18)
    assert verdict.holds, verdict


@pytest.mark.slow
@pytest.mark.parametrize("edit, what", [
    (("RowOutput", "write.i.payload.beat.eq(beat)", "write.i.payload.beat.eq(0)"),
     "write_once"),
    (("RowRing", "seen.eq(Mux(beat.last, 0, present))", "seen.eq(present)"), "write_data"),
], ids=["one-beat", "beats-mixed"])
def test_broken_beats(edit, what):
    verdict = prove(updating(edit, beats=2).bench, depth=18)
    assert what in verdict.broken, verdict


SLOW = ["not-written", "slot-unwaited", "frozen-late", "other-place", "always-written", "slot-kept"]
"""Mutants that represent similar ones."""


@pytest.mark.thorough
@pytest.mark.parametrize("edit, what", some_slow([
    (("RowsEnd", "over.eq(emptied & written)", "over.eq(emptied)"), "done"),
    (("RowsEnd", "over.eq(emptied & written)", "over.eq(written)"), "done"),
    (("RowUpdater", "ring.empty & output.idle", "ring.empty"), "done"),
    (("RowsEnd", "self.frozen.eq(0)", "self.frozen.eq(1)"), "thaws"),
    (("RowUpdater", "end.begins.eq(ring.begins)", "end.begins.eq(ring.level != 0)"),
     "frozen_at_lookup"),
    (("LocalCache", "self.updates.valid & cache.settled", "self.updates.valid"), "settled"),
    (("RowOutput", "write.i.valid.eq(go & self.held)",
      "write.i.valid.eq(go & self.held & ~item.id[0])"), "done"),
    (("RowOutput", "write.i.valid.eq(go & self.held)", "write.i.valid.eq(go)"), "write_data"),
    (("RowOutput", "write.i.payload.slot.eq(self.slot)", "write.i.payload.slot.eq(0)"),
     "write_data"),
    (("RowOutput", "self.i.payload.id[:self._place_bits]",
      "~self.i.payload.id[:self._place_bits]"), "write_data"),
    (("RowRing", "slots.write_en.eq(whole)", "slots.write_en.eq(whole & vector.held)"),
     "write_data"),
], SLOW, ["not-written", "not-left", "slot-unwaited", "never-thaws", "frozen-late", "unsettled",
          "slot-skipped", "always-written", "one-slot", "other-place", "slot-kept"]))
def test_broken_row_updater(edit, what):
    verdict = prove(updating(edit).bench, depth=DEPTH)
    assert what in verdict.broken, verdict

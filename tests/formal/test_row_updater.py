"""Proof of the row updater: the cache stays frozen until slot and memory have all new rows.
"""

import pytest
from amaranth.hdl import Signal, Value

from tests.formal.prove import prove
from tests.formal.updating import Updating


DEPTH = 30


def updating(*edits, **options) -> Updating:
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
    bench.always("frozen_at_lookup", ~dut.lookups.valid | frozen)
    bench.always("frozen", ~made.pending | frozen)
    bench.always("confirmed", (made.out == 0) | frozen)
    bench.always("frozen_at_write", ~dut.write.valid | frozen)
    bench.always("looked_once", ~made.looks | (made.summed & ~made.looked))
    made.right = right = made.old ^ made.gradient
    write, row = dut.write.payload, dut.rows.payload
    for name, event, of, done in (("write", made.its_write, write, made.wrote),
                                  ("row", made.its_row, row, made.sent)):
        beat = (of.beat if name == "write" else of.record.beat)[:made.beats - 1]
        bench.always(f"{name}_once", ~event | ~done.bit_select(beat, 1))
        bench.always(f"{name}_data", ~event | (
            made.found & (of.data == right.bit_select(beat, 1))))
    bench.always("write_held", ~made.its_write | made.held)
    bench.always("row_step", ~made.its_row | (row.step == made.step))
    bench.always("done", ~dut.done.valid | ((dut.done.payload == made.step) & (made.out == 0) & (
        ~made.summed | (made.looked & ~made.pending))))
    return made


@pytest.mark.parametrize("beats", [1])
def test_row_updater(beats):
    verdict = prove(updating(beats=beats).bench, seconds=300)
    assert verdict.holds, verdict


@pytest.mark.parametrize("depth", [20])
def test_bounded(depth):
    verdict = prove(updating(beats=1).bench, depth=depth, seconds=300)
    assert verdict.holds, verdict


def test_rows_are_updated():
    """The proof is of runs in which a step's rows are looked up, written, and the cache thaws."""
    made = updating()
    bench, m = made.bench, made.bench.m
    bench.broken.clear()
    other, wrote = Signal(), Signal()
    with m.If(made.dut.write.valid & made.dut.write.ready & ~made.its_write):
        m.d.sync += other.eq(1)
    with m.If(made.its_write & made.right & other):
        m.d.sync += wrote.eq(1)
    bench.always("reached", ~(made.over & wrote))
    assert prove(bench, depth=DEPTH).broken == ("reached",)

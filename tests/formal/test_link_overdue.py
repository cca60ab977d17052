"""Proof of overdue packets: a packet is never sent more often than ``tries`` or before its timeout;
after the last try its peer fails.

Times have four bits here and two doublings, and a packet has only its times. All other parts are as
in the hardware.
"""

import pytest
from amaranth.hdl import Mux, Signal
from amaranth.lib import data

from rtl.network.link.overdue import Overdue
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import variant

BITS = 4
RECORD = data.StructLayout({"step": 1, "tries": 8, "time": BITS})
PACKET = data.StructLayout({"node": 1, "sequence": 1, "first": 1, "record": RECORD})
FOUND = data.StructLayout({**PACKET.members, "due": 1, "newest": 1})
CYCLES = 16
"""Cycles until the decision, while the receivers of packets are ready."""


def overdue(*edits: tuple[str, str]) -> Bench:
    """Return a bench that queries any one packet, and advances time by any steps."""
    bench = Bench()
    m = bench.m
    # For any hash, jitter only lengthens the timeout.
    chance = bench.free(4, "chance")
    m.submodules.dut = dut = variant(
        Overdue, ("self.timeout << (shift & 12)", "self.timeout << 0"), *edits, TIME_BITS=BITS,
        MOST_SHIFT=3, Record=lambda *_: RECORD, Found=lambda *_: FOUND,
        Repeat=lambda *_: PACKET, hash_bits=lambda *_: chance)(2, 1)
    packet = Signal(FOUND)
    m.d.comb += packet.eq(bench.free(FOUND.size, "packet"))
    taken = bench.source(dut.i, packet.as_value())
    record = dut.i.payload.record
    tries, most, timeout = (bench.constant(bits, name) for bits, name in (
        (8, "tries"), (BITS - 1, "most"), (BITS, "timeout")))
    m.d.comb += [
        dut.tries.eq(tries), dut.most.eq(most), dut.timeout.eq(timeout),
        dut.doublings.eq(bench.constant(2, "doublings")), dut.time.eq(bench.free(32, "time")),
        dut.begins.eq(bench.free(name="begins")), dut.over.eq(bench.free(name="over")),
        dut.again.ready.eq(bench.free(name="again")),
        dut.repeats.ready.eq(bench.free(name="repeats")),
    ]
    sent = dut.repeats.valid & dut.repeats.ready
    again = dut.again.valid & dut.again.ready
    # Age of the packet when the question arrived.
    age, first = Signal(BITS), Signal(init=1)
    seen = Signal(BITS)
    m.d.comb += seen.eq(dut.time - record.time)
    with m.If(dut.i.valid & first):
        m.d.sync += age.eq(seen)
    m.d.sync += first.eq(Mux(taken, 1, Mux(dut.i.valid, 0, first)))
    # Doubled for each try from the third on, or as often as the peer's timeout.
    more = Mux(record.tries <= 2, 0, Mux(record.tries > 5, 3, record.tries - 2))
    shifts = Mux(more > dut.doublings, more, dut.doublings)
    doubled = Signal(BITS + 4)
    m.d.comb += doubled.eq(timeout << shifts[:2])
    least = Mux(doubled < most, doubled, most)
    bench.always("tries", ~sent | (record.tries < tries))
    bench.always("time", ~(sent | dut.failed.valid) | (~first & (age >= least)))
    bench.always("counted", ~again | (dut.again.payload.record.tries == record.tries + 1))
    bench.always("both", sent == again)
    bench.always("given_up", ~dut.failed.valid | (record.tries >= tries))
    bench.always("decided", dut.decided == taken)
    # Exactly one action.
    did = Signal()
    m.d.sync += did.eq(~taken & (did | sent | dut.failed.valid))
    bench.always("once", ~(did & (sent | dut.failed.valid)))
    bench.always("stops", ~(taken & (did == 0) & ~dut.stop) | (record.tries != 1))
    bench.within("served", CYCLES, dut.i.valid & dut.again.ready & dut.repeats.ready, taken)
    return bench


@pytest.mark.thorough
def test_overdue():
    verdict = prove(overdue())
    assert verdict.holds, verdict


@pytest.mark.parametrize("old, new, what", [
    ("record.tries >= self.tries", "record.tries > self.tries", "tries"),
    ("age >= limit", "age >= 0", "time"),
    ("self.again.valid.eq(self.repeats.ready)", "self.again.valid.eq(1)", "both"),
    ("record.tries + ~record.tries.all()", "record.tries", "counted"),
    ("Mux(due, spent, last)", "Mux(due, spent, 0)", "stops"),
], ids=["once-more", "too-early", "counted-only", "not-counted", "walk-goes-on"])
def test_broken_overdue(old, new, what):
    verdict = prove(overdue((old, new)))
    assert what in verdict.broken, verdict

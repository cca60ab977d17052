"""Proof of the credits: a requester never has more beats at an owner than it has places for.

Counts are modulo 2^16 in the hardware and modulo 2^3 here; all other parts of the blocks are as in
the hardware.
"""

import pytest
from amaranth.hdl import Cat, Mux, Signal
from amaranth.lib import data

from rtl.network import CreditCounter, CreditGate
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import variant

BITS, NODES = 3, 2
HALF = 1 << (BITS - 1)
PACKET = data.StructLayout({"destination": 1, "beats": BITS, "mark": 1})
CREDIT = data.StructLayout({"valid": 1, "node": 1, "value": BITS})


def credited(node: int, *edits: tuple[str, str]) -> Bench:
    """Return a bench of a requester's gate and, behind any delay, of the counter of owner ``node``.

    The bench counts modulo 2^3, as the blocks do. It states that no difference wraps.
    """
    bench = Bench()
    m = bench.m
    m.submodules.gate = gate = variant(
        CreditGate, *edits, CREDIT_BITS=BITS, HALF=HALF, Credit=CREDIT)(PACKET, NODES)
    m.submodules.counter = counter = variant(CreditCounter, CREDIT_BITS=BITS)(NODES)
    # A window is less than half of the range.
    window = bench.constant(BITS - 1, "window")
    m.d.comb += gate.window.eq(window)
    packet, shown = gate.i.payload, gate.o.payload
    entered, left = bench.source(gate.i), bench.sink(gate.o, "o")
    sent_here, left_here = (entered & (packet.destination == node),
                            left & (shown.destination == node))

    # The owner frees a beat at any time; its actions for other nodes are free.
    sent, arrived, consumed, acked = (Signal(BITS) for _ in range(4))
    held = (arrived - consumed)[:BITS]
    freed = bench.free(name="freed") & counter.idle & (held != 0)
    others = bench.free(name="freed_other") & counter.idle & ~freed
    m.d.comb += [counter.freed.valid.eq(freed | others),
                 counter.freed.node.eq(Mux(freed, node, 1 - node)), counter.node[0].eq(node)]
    m.d.sync += [sent.eq(sent + Mux(sent_here, packet.beats, 0)), consumed.eq(consumed + freed),
                 arrived.eq(arrived + Mux(left_here, shown.beats, 0))]
    bench.always("never_more_than_places", held <= window)
    bench.always("counted", ~counter.idle | (counter.value[0] == consumed))

    # Its count arrives late by any number of beats up to half of the range, so in any order, but
    # not from before the first beat. Another node's count is free, true or false.
    past, late = Signal(BITS), bench.free(BITS, "late")
    m.d.sync += past.eq(Mux(freed & (past != HALF), past + 1, past))
    mine = bench.free(name="credit") & (late <= past) & counter.idle
    told = (counter.value[0] - late)[:BITS]
    m.d.comb += [
        gate.credit_in.valid.eq(mine | bench.free(name="credit_other")),
        gate.credit_in.node.eq(Mux(mine, node, 1 - node)),
        gate.credit_in.value.eq(Mux(mine, told, bench.free(BITS, "other")))]
    with m.If(mine & (late < (consumed - acked)[:BITS])):
        m.d.sync += acked.eq(told)

    # Beats that the requester must count as outstanding: sent, and not covered by any count so far.
    outstanding = Signal(BITS + 1)
    m.d.comb += outstanding.eq((sent - acked)[:BITS] + packet.beats)
    bench.always("known", ~sent_here | (outstanding <= window))
    fits = gate.i.valid & (packet.destination == node) & (outstanding <= window)
    bench.within("goes", 3, counter.idle & fits & gate.o.ready & ~gate.credit_in.valid, entered)
    bench.always("stalled", ~gate.stalled | (gate.i.valid & ~entered))
    bench.always("idle", ~gate.idle | ~Cat(gate.i.valid, gate.o.valid).any())
    return bench


@pytest.mark.thorough
@pytest.mark.parametrize("node", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_credits(node):
    verdict = prove(credited(node))
    assert verdict.holds, verdict


@pytest.mark.few(3)
@pytest.mark.parametrize("old, new, what", [
    ("Cat(item.beats, C(0, CREDIT_BITS))", "C(0, 2 * CREDIT_BITS)", "known"),
    ("& (item.beats < HALF)", "", "known"),
    ("Cat(C(0, 1), more)", "Cat(C(0, 1), more[1:], C(0, 1))", "known"),
    ("(event.valid & (step < HALF))", "(event.valid)", "goes"),
    ("(event.valid & (step < HALF))", "(event.valid & (step < HALF // 4))", "goes"),
    ("acked.read_addr.eq(item.destination)", "acked.read_addr.eq(event.node)", "known"),
], ids=["beats-not-counted", "wrapped", "carry-lost", "old-credit", "credit-lost",
        "looked-elsewhere"])
def test_broken_credits(old, new, what):
    verdict = prove(credited(1, (old, new)))
    assert set(verdict.broken) & {what, "never_more_than_places"}, verdict

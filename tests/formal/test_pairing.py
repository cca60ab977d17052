"""Proof of pairing, without bound: each value is stored in an empty place, or added, exactly once.

There are two entries. Operations are free, except that an entry begins with a ``first`` arrival and
is taken only with no addition in flight. Results are additions that began earlier, in any order and
after any time. Each entry has at most 7 additions in flight.
"""

import pytest
from amaranth.hdl import Array, Cat, Mux, Signal, Value

from rtl.float.pairing import Pairing
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import variant

ENTRIES, MOST = 2, 3
"""An entry with that many additions in flight has no further arrival; two may be on their way."""


def paired(*edits: tuple[str, str]) -> Bench:
    """Return a bench of the block, with the places and the additions of both entries."""
    bench = Bench()
    m = bench.m
    m.submodules.pairing = block = variant(Pairing, *edits)(ENTRIES)
    decision = block.o
    # By entry: additions in flight, full places, and whether it has values. Accepted results that
    # are not used yet, the oldest first.
    flying = Array(Signal(3, name=f"flying{n}") for n in range(ENTRIES))
    full = Array(Signal(2, name=f"full{n}") for n in range(ENTRIES))
    begun = Array(Signal(name=f"begun{n}") for n in range(ENTRIES))
    waiting, queue = Signal(2), Signal(3)

    # Operations, and the operations of the last three cycles.
    entry, taking = bench.free(name="entry"), bench.free(name="taking")
    op, ops = Signal(), [(Signal(name=f"op{n}"), Signal(name=f"entry{n}"), Signal(name=f"take{n}"))
                         for n in range(3)]
    resting = (~Cat(*flying, waiting).any() & ~Cat(each[0] for each in ops).any())
    m.d.comb += op.eq(bench.free(name="valid") & block.swept & Mux(
        taking, resting & begun[entry], flying[entry] <= MOST))
    m.d.comb += [block.valid.eq(op), block.entry.eq(entry), block.take.eq(taking),
                 block.first.eq(~taking & ~begun[entry])]
    valid, which, take = ops[-1]
    for later, sooner in zip(ops, ((op, entry, taking), *ops)):
        m.d.sync += [one.eq(other) for one, other in zip(later, sooner)]
    with m.If(op):
        m.d.sync += begun[entry].eq(~taking)

    result = bench.free(name="result")
    m.d.comb += [block.results.payload.eq(result),
                 block.results.valid.eq(bench.free(name="offered") & (flying[result] != 0))]
    accepted = block.results.valid & block.results.ready

    # Each arrival is used when its decision is there, and each result after all earlier ones.
    stored, returned = (decision.write & mask for mask in (
        ~decision.from_result, decision.from_result))
    with_arrival = decision.add & (decision.both | ~decision.again)
    with_result = decision.add & (decision.both | decision.again)
    bench.always("arrival", _count(stored, with_arrival) == (valid & ~take))
    bench.always("taken", decision.take == (valid & take))
    bench.always("its_entry", ~valid | (which == Mux(
        stored.any(), decision.arrival, Mux(with_arrival | take, decision.entry, which))))
    used = _count(returned, with_result)
    bench.always("result", (used == 0) | ((used == 1) & (waiting != 0)))
    bench.always("result_entry", (used == 0) | (
        Mux(returned.any(), decision.result, decision.entry) == queue[0]))
    left, rest = (waiting - used)[:2], Mux(used != 0, queue >> 1, queue)
    m.d.sync += [waiting.eq(left + accepted), queue.eq(Mux(
        accepted, rest & ~(1 << left) | result << left, rest))]

    # A value is stored in an empty place, and read from a full one.
    for place in range(2):
        into = Mux(decision.from_result[place], decision.result, decision.arrival)
        bench.always(f"empty{place}", ~decision.write[place]
                     | ~full[into].bit_select(place, 1))
    reads = decision.add & ~decision.both
    bench.always("full", ~reads | full[decision.entry].bit_select(decision.place, 1))
    bench.always("all", ~decision.take | (
        (decision.full == full[decision.entry]) & decision.full.any() & ~waiting.any()))
    for number, mine in enumerate(full):
        write = Cat(decision.write[place] & (Mux(
            decision.from_result[place], decision.result, decision.arrival) == number)
            for place in range(2))
        here = decision.entry == number
        m.d.sync += mine.eq(Mux(here & decision.take, 0, (mine & ~Mux(
            here & reads, Cat(~decision.place, decision.place), 0)) | write))
        m.d.sync += flying[number].eq(
            flying[number] + (decision.add & here) - (accepted & (result == number)))

    # The count of the user: one cycle ahead of the decisions.
    count, late = Signal(5), Signal(5)
    m.d.sync += [count.eq(count + (block.grows & ~ops[1][2]) - block.shrinks), late.eq(count)]
    bench.always("counted", late == sum(flying, Value.cast(waiting)))
    return bench


def _count(stored: Value, added: Value) -> Value:
    """Return how often a value is used: stored in either place, or added."""
    return stored[0] + stored[1] + added


@pytest.mark.slow
@pytest.mark.thorough
def test_pairing():
    verdict = prove(paired())
    assert verdict.holds, verdict


@pytest.mark.few(3)
@pytest.mark.parametrize("old, new, what", [
    ("newest.eq(write & (entry == where))", "newest.eq(0)", "empty0"),
    ("Mux(loaded, with_first, with_second)", "with_second", "result_entry"),
    ("Mux(first, results, arrivals)", "arrivals", "empty0"),
    ("(waits | ~swept,", "(waits,", "empty0"),
    ("own.eq(Mux(behind, left[0],", "own.eq(Mux(0, left[0],", "full"),
    ("Mux(after, left[3],", "Mux(0, left[3],", "full"),
    ("Mux(before, left[1],", "Mux(0, left[1],", "full"),
    ("Mux(follows, left[2],", "Mux(0, left[2],", "empty1"),
    ("decision.place.eq(Mux(again, ~there[0], full[1]))",
     "decision.place.eq(Mux(again, there[1], full[1]))", "full"),
    ("self.shrinks.eq(returns)", "self.shrinks.eq(waits & load)", "counted"),
], ids=["late-bits", "other-entry", "old-values", "unequal-copies", "own-bits",
        "full-after-result", "full-before", "result-bits", "empty-place", "counts"])
def test_broken_pairing(old, new, what):
    verdict = prove(paired((old, new)), depth=18)
    assert what in verdict.broken, verdict

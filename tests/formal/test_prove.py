"""Tests of the prover: a proved statement is true, and a broken one has a counterexample."""

import pytest
from amaranth.hdl import Signal

from rtl.memory import Ram
from tests.formal.bench import Bench
from tests.formal.induction import by_induction
from tests.formal.prove import prove


def counter(last: int) -> Bench:
    """Return a bench of a counter to ``last``, stated never to pass 5."""
    bench = Bench()
    count = Signal(4)
    with bench.m.If(bench.free(name="step")):
        bench.m.d.sync += count.eq(count + 1)
    with bench.m.If(count == last):
        bench.m.d.sync += count.eq(0)
    bench.always("something_else", count != 15)
    bench.always("small", count <= 5)
    return bench


def test_true_statements_are_proved():
    verdict = prove(counter(5))
    assert verdict.holds and verdict.depth is None and str(verdict) == "proved"


@pytest.mark.parametrize("depth", [None, 9])
def test_a_violation_is_shown(depth):
    verdict = prove(counter(6), depth=depth)
    assert not verdict.holds and verdict.broken == ("small",)
    assert sum(step.get("step_0", 0) for step in verdict.inputs[:-1]) == 6
    assert str(verdict).startswith("broken: small\n  0: ")


def test_a_bounded_search_sees_no_further():
    verdict = prove(counter(6), depth=6)
    assert verdict.holds and str(verdict) == "holds for 6 cycles"
    assert not prove(counter(6), depth=7).holds


def memory(check) -> Bench:
    bench = Bench()
    bench.m.submodules.ram = ram = Ram(2, 4)
    address, value = bench.constant(range(4), "address"), bench.free(2, "value")
    bench.m.d.comb += [ram.write_en.eq(bench.free(name="write")), ram.write_addr.eq(address),
                       ram.write_data.eq(value), ram.read_addr.eq(address)]
    check(bench, ram, value)
    return bench


def test_memories_start_with_any_contents():
    assert not prove(memory(lambda bench, ram, value: (
        bench.assume(value == 0), bench.always("zero", ram.read_data == 0)))).holds


def test_memories_keep_what_is_written():
    def check(bench: Bench, ram: Ram, value: Signal) -> None:
        written, read, expected = Signal(), Signal(), Signal(2)
        bench.m.d.sync += read.eq(written)
        kept = Signal(2)
        with bench.m.If(ram.write_en):
            bench.m.d.sync += [written.eq(1), kept.eq(value)]
        bench.m.d.sync += expected.eq(kept)
        bench.always("kept", ~read | (ram.read_data == expected))

    verdict = prove(memory(check))
    assert verdict.holds, verdict


def test_assumptions_end_what_is_looked_at():
    bench = counter(6)
    step = Signal(8)
    bench.m.d.sync += step.eq(step + 1)
    bench.assume(step < 4)
    assert prove(bench).holds


def test_induction_takes_what_follows_from_itself():
    verdict = by_induction(counter(5))
    assert verdict.holds and str(verdict) == "proved"


def test_induction_knows_nothing_else():
    """A count of 14 is never reached, but no statement excludes it."""
    bench = counter(5)
    del bench.broken["small"]
    verdict = by_induction(bench)
    assert (verdict.holds, verdict.depth, verdict.broken) == (False, 2, ("something_else",))


def test_induction_begins_somewhere():
    bench = counter(5)
    count = Signal()
    bench.m.d.sync += count.eq(1)
    bench.always("late", count)
    verdict = by_induction(bench)
    assert (verdict.holds, verdict.depth, verdict.broken) == (False, 1, ("late",))


def test_induction_is_of_any_contents():
    """An unwritten word has any value, in the first cycle and before any other."""
    def check(bench, ram, value):
        bench.always("is_0", ram.read_data == 0)

    assert by_induction(memory(check)).broken == ("is_0",)

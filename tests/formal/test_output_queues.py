"""Proof of the lookup queues by destination: no destination waits for another's credit or gets more
records than its credit covers, and each gets its own records in order.

The order of turns is proved without bound. The block with its counts and its memory is searched for
a number of cycles. Counts are modulo 2^16 in the hardware and modulo 2^3 here, records have two
bits, and a turn has few records. All other parts are as in the hardware.
"""


import pytest
from amaranth.hdl import Mux, Signal
from amaranth.lib import data

from rtl.network.output_queues import OutputQueues
from rtl.network.queue_room import QueueRoom
from rtl.network.queue_turns import QueueTurns
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import contains, variant

BITS, PLACES = 3, 2
SERVED = 16
"""Cycles in which a record may leave, until a record with credit leaves."""
RECORD = data.StructLayout({"destination": 1, "step": 1, "record": 1})
AT_NODE = data.StructLayout({"valid": 1, "node": 1})
VALUED = data.StructLayout({"valid": 1, "node": 1, "value": BITS})


def found(places: int) -> data.StructLayout:
    return data.StructLayout({"waiting": range(places + 1), "credit": BITS, "gone": BITS})


def narrow(block: type, edits: tuple[tuple[str, str], ...], **names: object) -> type:
    """Return ``block`` with narrow counts, and with the ``edits`` of its module."""
    return variant(block, *(edit for edit in edits if contains(block, edit[0])),
                   NODE_BITS=1, AtNode=AT_NODE, CREDIT_BITS=BITS, **names)


def turns(node: int, *edits: tuple[str, str], burst: int = 1) -> Bench:
    """Return a bench of the turns that counts the queue of ``node``; other queues are free.

    burst: most records of a turn; only with several may some leave while others wait.
    """
    bench = Bench()
    m = bench.m
    m.submodules.turns = dut = narrow(
        QueueTurns, edits, Found=found, Gone=VALUED, BURST=burst, LEAST=3)(2, PLACES)
    entered, gone, popped, given = (Signal(BITS) for _ in range(4))
    waiting, credit = (entered - popped)[:BITS], (given - popped)[:BITS]
    comes = bench.free(name="comes") & (waiting < PLACES)
    gives = bench.free(name="gives") & (credit < 3)
    pop = dut.pop & (dut.node == node)
    told = dut.gone.valid & (dut.gone.node == node)
    mine, arrived, least = Signal(found(PLACES)), Signal(), bench.constant(2, "least")
    m.d.sync += [
        entered.eq(entered + comes), given.eq(given + gives), popped.eq(popped + pop),
        gone.eq(Mux(told, dut.gone.value, gone)), arrived.eq(comes),
    ]
    m.d.comb += [
        mine.waiting.eq(entered - gone), mine.credit.eq(given - gone), mine.gone.eq(gone),
        dut.found.eq(Mux(dut.look == node, mine, bench.free(found(PLACES).size, "other"))),
        dut.arrived.valid.eq(arrived | bench.free(name="other_arrived")),
        dut.arrived.node.eq(Mux(arrived, node, 1 - node)), dut.free.eq(bench.free(name="free")),
        dut.least.eq(least),
    ]
    bench.always("waiting", ~pop | (waiting != 0))
    bench.always("within_credit", ~pop | (credit != 0))
    bench.always("place", ~pop | (dut.place == popped[:1]))
    bench.always("free", ~dut.pop | dut.free)
    some = (waiting != 0) & (credit != 0) & dut.free
    bench.within("served", SERVED, some & (credit >= least), pop)
    bench.within("all_served", SERVED, some & (credit >= waiting), pop | comes)
    bench.always("idle", ~dut.idle | arrived | (waiting == 0))
    return bench


def whole(node: int, *edits: tuple[str, str]) -> Bench:
    """Return a bench that follows the records of ``node``; the other nodes are free."""
    bench = Bench()
    m = bench.m
    counts = {"Found": found, "Gone": VALUED}
    m.submodules.queues = dut = narrow(
        OutputQueues, edits, Credit=VALUED, OutgoingRecord=RECORD, OUT=2,
        QueueRoom=narrow(QueueRoom, edits, Credit=VALUED, **counts),
        QueueTurns=narrow(QueueTurns, edits, BURST=1, **counts))(2, PLACES)
    window = bench.constant(BITS - 1, "window")
    m.d.comb += [dut.on.eq(1), dut.window.eq(window)]
    entered, left = (bench.source(dut.i, bench.free(RECORD.size, "item")), bench.sink(dut.o, "o"))
    mine = entered & (dut.i.payload.destination == node)
    out = left & (dut.o.payload.destination == node)
    inside = bench.in_order("records", mine, dut.i.payload, out, dut.o.payload, PLACES)
    # Misses have ids: at most ``places`` records of a destination are inside.
    bench.assume(~mine | (inside < PLACES))

    # A record that left is placed later: in a shared beat, or in its own beat, which is
    # acknowledged later still.
    unplaced, beats, acknowledged, told = (Signal(BITS) for _ in range(4))
    placed = bench.free(name="placed") & (unplaced != 0)
    shares = bench.free(name="shares") & placed
    back = bench.free(BITS, "back")
    answered = bench.free(name="answered") & (back <= beats)
    m.d.comb += [
        told.eq(acknowledged + back),
        dut.joined.valid.eq(shares | bench.free(name="other_joined")),
        dut.joined.node.eq(Mux(shares, node, 1 - node)),
        dut.acknowledged.valid.eq(answered | bench.free(name="other_answered")),
        dut.acknowledged.node.eq(Mux(answered, node, 1 - node)),
        dut.acknowledged.value.eq(Mux(answered, told, bench.free(BITS, "value"))),
    ]
    m.d.sync += [
        unplaced.eq(unplaced + out - placed),
        beats.eq(beats + (placed & ~shares) - Mux(answered, back, 0)),
        acknowledged.eq(Mux(answered, told, acknowledged)),
    ]
    bench.always("within_credit", (unplaced + beats) <= window)
    bench.within("served", SERVED + 8, (inside != 0) & ((unplaced + beats) < window) & dut.o.ready,
                 out)
    bench.always("idle", ~dut.idle | ((inside == 0) & ~dut.o.valid))
    return bench


@pytest.mark.thorough
@pytest.mark.parametrize("node", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_turns(node):
    verdict = prove(turns(node))
    assert verdict.holds, verdict


@pytest.mark.few(3)
@pytest.mark.parametrize("old, new, what", [
    ("able.eq(due & ~busy)", "able.eq(due)", "within_credit"),
    ("self.gone.valid.eq(fresh)", "self.gone.valid.eq(fresh & ~finish)", "within_credit"),
    ("burst.more.eq(short | cut.longer)", "burst.more.eq(cut.longer)", "idle served"),
    ("burst.more.eq(short | cut.longer)", "burst.more.eq(short)", "idle served"),
    ("short.eq(cut.waiting > cut.credit)", "short.eq(0)", "within_credit"),
    ("enough.eq(cut.credit >= self.least)", "enough.eq(0)", "served"),
    ("place.eq(cut.gone)", "place.eq(cut.gone + 1)", "place"),
    ("burst.left.any() & self.free", "burst.left.any()", "free"),
    ("(due & ~chosen) | come", "(due & ~chosen)", "idle"),
], ids=["looked-at-twice", "gone-not-told", "short-forgotten", "rest-forgotten", "without-credit",
        "never-enough", "elsewhere", "no-place", "arrival-lost"])
def test_broken_turns(old, new, what):
    verdict = prove(turns(1, (old, new), burst=2 if "least" in old else 1))
    assert set(what.split()) & set(verdict.broken), verdict


@pytest.mark.slow
@pytest.mark.parametrize("node", [0, 1])
def test_queues(node):
    verdict = prove(whole(node), depth=28, seconds=1800)
    assert verdict.holds, verdict


@pytest.mark.few(2)
@pytest.mark.parametrize("old, new, what", [
    ("Cat(place, word.destination[:bits])", "Cat(place, ~word.destination[:bits])",
     "records_in_order"),
    ("Cat(C(1, 1), twos)", "Cat(C(0, 1), twos)", "served"),
    ("queue.reserve.eq(turns.pop)", "queue.reserve.eq(0)", "idle"),
    ("~gone)", "gone)", "within_credit"),
], ids=["elsewhere", "credit-lost", "no-place", "not-subtracted"])
def test_broken_queues(old, new, what):
    verdict = prove(whole(1, (old, new)), depth=40, seconds=1800)
    assert set(what.split()) & set(verdict.broken), verdict

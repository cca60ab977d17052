"""Proof of the dispatcher: each slot gets its place, and its lookup leaves once, in its step.

Steps count modulo 2^16 in the hardware and modulo 2^3 here; keys have one bit and places two bits;
there are two owners.
"""

import pytest
from amaranth.hdl import Cat, Mux, Signal, Value
from amaranth.lib import data

from rtl.formats import RecordKind
from rtl.query.dispatcher import Dispatcher
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import variant

STEP, PLACE, NODES = 3, 2, 2
KEY = data.StructLayout({"row": 1, "table": 1})
SLOT = data.StructLayout({"key": KEY, "kind": 2, "owner": 1, "mine": 1, "sample": 1, "step": STEP,
                          "last": 1})
GOES = 4
"""Cycles until a slot leaves that may leave."""


def dispatched(*edits: tuple[str, str], what: str = "all") -> Bench:
    """Return a bench that offers slots at any time, and opens steps at any time.

    what: "order": the output is the input, in order; "steps": slots leave in their step; "all":
    both.
    """
    bench = Bench()
    m = bench.m
    layouts = {
        "Slot": SLOT,
        "HoldSlot": data.StructLayout({"kind": 2, "sample": 1, "step": STEP, "last": 1}),
        "LookupRecord": data.StructLayout({"row": 1, "table": 1, "landing": PLACE}),
        "OutgoingRecord": data.StructLayout({"destination": 1, "step": STEP, "record": 2 + PLACE}),
        "Request": data.StructLayout({"key": KEY, "landing": PLACE, "node": 1, "step": STEP}),
        "DenseSlot": data.StructLayout({"sample": 1, "step": STEP}),
        "_Headed": data.StructLayout({"slot": SLOT, "to_local": 1, "to_remote": 1, "early": 1})}
    m.submodules.dut = dut = variant(
        Dispatcher, *edits, STEP_BITS=STEP, LANDING_BITS=PLACE, NODE_BITS=1, **layouts)(NODES)
    unique, interact, training, overtake = (
        bench.constant(1, name) for name in ("unique", "interact", "training", "overtake"))
    landing, step = bench.free(PLACE, "landing"), Signal(STEP)
    opens, written = bench.free(name="opens"), Signal(NODES)
    m.d.sync += [step.eq(step + opens),
                 written.eq(Mux(opens, 0, written | bench.free(NODES, "written")))]
    m.d.comb += [
        dut.node.eq(1), dut.unique.eq(unique), dut.interact.eq(interact), dut.overtake.eq(overtake),
        dut.training.eq(training), dut.next_landing.eq(landing), dut.open_step.eq(step),
        dut.written.eq(written)]
    entered_each = [bench.source(port) for port in (dut.i, dut.shares)]
    offered = data.View(SLOT, Mux(unique, dut.shares.payload, dut.i.payload))
    entered = Mux(unique, entered_each[1], entered_each[0])

    # The slots inside, the oldest first.
    held, slots = Signal(range(4)), [Signal(SLOT, name=f"slot{k}") for k in range(2)]
    goes, oldest = dut.reserve.valid & dut.reserve.ready, slots[0]
    m.d.sync += held.eq(held + entered - goes)
    for k in range(2):
        with m.If(goes):
            m.d.sync += slots[k].eq(slots[1] if k == 0 else oldest)
        with m.If(entered & (held - goes == k)):
            m.d.sync += slots[k].eq(offered)
    bench.always("two_at_most", held <= 2)
    bench.always("one_that_came", ~dut.reserve.valid | (held != 0))
    # A step is over when all of its slots are answered, so no slot of a much earlier step is
    # inside.
    def behind(number):
        return (step - number)[:STEP]

    bench.assume(~Mux(unique, dut.i.valid, dut.shares.valid),
                 *((held <= k) | (behind(slot.step) != 3) for k, slot in enumerate(slots)),
                 (behind(offered.step) != 3) & (behind(offered.step) != 2),
                 (offered.kind == RecordKind.EMPTY) <= ~offered.mine)
    ready = bench.free(name="reserves")
    m.d.comb += dut.reserve.ready.eq(ready)
    local, remote, dense = dut.local.payload, dut.remote.payload, dut.dense.payload
    left = {name: bench.sink(getattr(dut, name), name) for name in ("local", "remote", "dense")}
    empty, begins = oldest.kind == RecordKind.EMPTY, Signal(init=1)
    with m.If(goes):
        m.d.sync += begins.eq(oldest.last)
    if what in ("all", "order"):
        bench.always("reserves", ~dut.reserve.valid | (Value.cast(dut.reserve.payload) == Cat(
            oldest.kind, oldest.sample, oldest.step, oldest.last)))
        bench.in_order("local", goes & oldest.mine, Cat(oldest.key, landing, oldest.step),
                       left["local"], Cat(local.key, local.landing, local.step), 2)
        bench.in_order("remote", goes & ~oldest.mine & ~empty,
                       Cat(oldest.owner, oldest.step, oldest.key, landing), left["remote"],
                       Cat(remote.destination, remote.step, remote.record), 2)
        bench.in_order("dense", goes & begins & interact, Cat(oldest.sample, oldest.step),
                       left["dense"], Cat(dense.sample, dense.step), 2)
        bench.always("own", ~dut.local.valid | (local.node == 1))
    if what in ("all", "steps"):
        early = training & behind(oldest.step)[STEP - 1]
        overtakes = overtake & (behind(oldest.step) == (1 << STEP) - 1) & (
            empty | written.bit_select(oldest.owner, 1))
        bench.always("in_its_step", ~goes | ~early | overtakes)
        room = Cat(dut.local.ready, dut.remote.ready, dut.dense.ready, ready).all()
        bench.within("goes", GOES, (held != 0) & (~early | overtakes) & room, goes)
    bench.always("takes", (held == 2) | Mux(unique, dut.shares.ready, dut.i.ready))
    bench.always("idle", ~dut.idle | (held == 0) & ~Cat(
        dut.local.valid, dut.remote.valid, dut.dense.valid).any())
    return bench


@pytest.mark.parametrize("what", ["order", "steps"])
def test_dispatcher(what):
    verdict = prove(dispatched(what=what))
    assert verdict.holds, verdict


@pytest.mark.few(4)
@pytest.mark.parametrize("what, old, new, wrong", [
    ("order", "self.reserve.valid.eq(head.o.valid & room)", "self.reserve.valid.eq(head.o.valid)",
     ""),
    ("order", "~to_remote | remote.i.ready) & ~waits", "1) & ~waits", "remote"),
    ("order", "remote.i.ready) & ~waits & ~early", "remote.i.ready) & ~early", "dense"),
    ("order", "begins.eq(self.interact & slot.last)", "begins.eq(self.interact)", "dense"),
    ("order", "dense.i.valid.eq(go & begins)", "dense.i.valid.eq(head.o.valid & begins)", "dense"),
    ("order", "(following.kind != RecordKind.EMPTY) & ~following.mine", "~following.mine",
     "remote"),
    ("steps", "head.o.valid & ~head.o.ready & ~waits_for(slot.step)", "~waits_for(slot.step)",
     "in_its_step"),
    ("steps", "(slot.step == next_step) & (", "(", "in_its_step"),
    ("steps", "done.bit_select(slot.owner, 1)", "done.any()", "in_its_step"),
    ("steps", "next_step.eq(self.open_step + 1), done.eq(self.written)",
     "next_step.eq(self.open_step + 1), done.eq(done | self.written)", "in_its_step"),
    ("steps", "& ~ahead & ~opened", "& ~ahead", "goes"),
    ("steps", "& ~ahead & ~opened", "& ~opened", "goes"),
    ("steps", "headed.early.eq(waits_for(following.step))", "headed.early.eq(0)", "in_its_step"),
], ids=["no-room", "no-room-to-owner", "no-room-for-dense", "dense-each", "dense-twice",
        "empty-looked-up", "that-of-before", "any-step", "any-owner", "written-before",
        "never-opened", "never-ahead", "at-once"])
def test_broken_dispatcher(what, old, new, wrong):
    verdict = prove(dispatched((old, new), what=what))
    assert any(name.startswith(wrong) for name in verdict.broken), verdict

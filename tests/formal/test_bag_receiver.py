"""Proof of the receiver of bags: each beat within the share of its requester leaves once, in order,
and is marked where the bag of the beat before it does not continue.

There are two requesters. Beats arrive at any time, with any lengths of packets, and the output
stalls at any time; the share is constant. The FIFO has two beats, and counts of beats have three
bits (16-bit shares in the hardware). The skid buffer is a wire (``test_streams``).
"""

from itertools import pairwise
from types import SimpleNamespace

import pytest
from amaranth.hdl import Cat, Mux, Signal, Value
from amaranth.lib import data

from rtl.bags.receiver import BagReceiver
from rtl.network.lookup_receiver import LookupReceiver
from tests.formal.bench import Bench
from tests.formal.induction import by_induction
from tests.formal.plain import TimedFIFO
from tests.formal.prove import prove
from tests.formal.shown import LOCALS, ShownRam
from tests.formal.wires import Wires
from tests.mutants import variant

NODES, BEATS = 2, 2
INSIDE = BEATS + 1
"""Most beats in the FIFO and its output register."""
DEPTH = 14
"""Cycles searched for the fault of a mutant."""
_SHOWN = ("        return m\n", f"        {LOCALS.format('inner')}return m\n"),
_BEAT = data.StructLayout({"bit": 1, "step": 1, "last": 1, "source": 1, "fresh": 1})


def received(*edits: tuple[str, str], base: tuple[tuple[str, str], ...] = (),
             inside: bool = True) -> Bench:
    """Return a bench that counts the beats of each requester inside.

    base: edits of the class that also receives lookups. inside: state the registers of the block,
    which makes all statements inductive.
    """
    bench = Bench()
    m = bench.m
    receiver = variant(BagReceiver, *edits, (
        "return Value.cast(entry)", "self.fresh = fresh; return Value.cast(entry)"))
    receiver.__bases__ = variant(
        LookupReceiver, *base, *_SHOWN, SkidBuffer=Wires, StreamFIFO=TimedFIFO, Ram=ShownRam),
    dut = receiver(SimpleNamespace(nodes=NODES, owner_bag_beats=BEATS))
    dut._MustUse__silence = True  # elaborated here, because statements refer to its parts
    m.submodules.dut = dut.elaborate(None)
    beat, shown = Signal(_BEAT), dut.o.payload
    share = bench.constant(2, "share")
    m.d.comb += [
        dut.share.eq(share), dut.i.valid.eq(bench.free(name="comes")),
        Cat(beat.bit, beat.step, beat.last, beat.source).eq(bench.free(4, "beat")),
        dut.i.payload.data.eq(beat.bit), dut.i.payload.step.eq(beat.step),
        dut.i.payload.last.eq(beat.last), dut.i.payload.source.eq(beat.source),
        dut.i.payload.records.eq(1 + beat.bit)]
    # A beat is judged in the cycle after its arrival.
    came, now, keep, fresh = Signal(), Signal(_BEAT), dut.kept.valid, Signal(init=1)
    m.d.sync += [came.eq(dut.i.valid & dut.i.ready), now.eq(beat)]
    with m.If(came):
        m.d.sync += fresh.eq(now.last | ~keep)
    left = bench.sink(dut.o, "o", Cat(shown.data[0], shown.source))
    held = bench.in_order(
        "beats", keep, Cat(now.bit, now.step, now.last, now.source, fresh), left,
        Cat(shown.data[0], shown.step[0], shown.last, shown.source[0], shown.fresh), INSIDE)
    bench.always("size", ~left | (shown.records == 1 + shown.data[0]))
    bench.always("kept", ~keep | (came & (dut.kept.node == now.source) & (
        dut.kept.beats == 1 + now.bit)))

    # Beats of each requester inside; those that left in the two cycles before may still count.
    late = [Signal(2, name=f"late{k}") for k in range(2)]
    m.d.sync += [late[0].eq(Cat(left & ~shown.source[0], left & shown.source[0])),
                 late[1].eq(late[0])]
    short, here_of = [], []
    for k in range(NODES):
        here_of.append(here := Signal(3, name=f"here{k}"))
        m.d.sync += here.eq(here + (keep & (now.source == k)) - (left & (shown.source == k)))
        bench.always(f"share_{k}", here <= share)
        short.append((now.source == k) & (here + late[0][k] + late[1][k] >= share))
    bench.always("fair", ~came | keep | (held >= BEATS) | bench.any_of(short))
    bench.always("ready", dut.i.ready | (held == 0))
    bench.always("idle", ~dut.idle | ((held == 0) & ~came & dut.i.ready))
    late_by = bench.within("leaves", 1, dut.o.ready & (held != 0), left)
    if inside:
        bench.always("fresh", dut.fresh == fresh)
        _inside(bench, dut, came, now, share, late, here_of, held, late_by)
    return bench


def _inside(bench: Bench, dut, came: Signal, now: Signal, share: Value, late: list[Signal],
            here: list[Signal], held: Signal, late_by: Signal) -> None:
    """State the counts of each requester, and the places of the beats inside."""
    inner, parts = dut.inner, bench.m.submodules.dut.submodules
    beat, swept, gone = inner["beat"], inner["swept"], inner["current"].source
    bench.always("come", (inner["come"] == came) & (~came | (swept & (
        (beat.source == now.source) & (beat.data[0] == now.bit) & (beat.last == now.last)
        & (beat.step == now.step) & (beat.records == 1 + now.bit)))))
    bench.always("limit", ~(swept & (inner["address"] == 0)) | (
        (inner["limit"] == share) & ((inner["but_one"] + 1)[:len(inner["but_one"])] == share)))
    bench.always("went", (inner["went"] == late[0].any()) & (~late[0].all()) & (
        ~inner["went"] | (gone == late[0][1])))
    bench.always("addresses", (inner["address"] < NODES) & (~swept | (inner["address"] == 0))
                 & (dut.i.ready == swept) & (swept | ~(inner["went"] | came)))
    ins, outs = parts.beats_in.cells, parts.beats_out.cells
    for k in range(NODES):
        clean = swept | (inner["address"] > k)
        count = (ins[k] - outs[k])[:len(ins[k])]
        bench.always(f"copy_{k}", ~clean | (outs[k] == parts.beats_out_copy.cells[k]))
        bench.always(f"count_{k}", ~clean | (count == here[k] + late[0][k]))
        mine = came & (now.source == k)
        bench.always(f"came_{k}", ~mine | (inner["came"] == ins[k]))
        bench.always(f"within_{k}", ~mine | Mux(
            inner["within"], here[k] < share, here[k] + late[0][k] + late[1][k] >= share))
        bench.always(f"few_{k}", swept | (here[k] == 0))

    # The beats inside, in the order of the FIFO.
    fifo = parts.fifo
    places = [(each.held, each.item) for each in (fifo.front, *fifo.places)]
    some = [place for place, _ in places]
    bench.always("queued", Cat(~after | before for before, after in pairwise(some[1:])).all())
    bench.always("held", (held == sum(some)) & ((late_by == 0) | some[0]))
    for k in range(NODES):
        bench.always(f"of_{k}", here[k] == sum(
            (place & (item.source == k) for place, item in places), 0))
    waiting, kept, ahead = bench.picked["beats"]
    bench.always("picked", ~waiting | (ahead < held))
    for k, (place, item) in enumerate(places):
        number = k if k == 0 else k - 1 + some[0]
        found = Cat(item.data[0], item.step[0], item.last, item.source[0], item.fresh)
        bench.always(f"place_{k}", ~(place & waiting & (ahead == number)) | (found == kept))
        bench.always(f"bits_{k}", ~place | ((item.records == 1 + item.data[0]) & (
            item.source < NODES)))


def test_bag_receiver():
    verdict = by_induction(received())
    assert verdict.holds, verdict


@pytest.mark.parametrize("wrong, old, new", [
    ("beats_in_order", "fresh.eq(~keep | beat.last)", "fresh.eq(beat.last)"),
    ("beats_in_order", "fresh.eq(~keep | beat.last)", "fresh.eq(~keep)"),
    ("beats_in_order", "with m.If(come)", "with m.If(keep)"),
    ("beats_in_order", "fresh = Signal(init=1)", "fresh = Signal()"),
    ("o_holds", "output.i.valid.eq(fifo.o.valid)",
     "output.i.valid.eq(fifo.o.valid & fifo.i.ready)"),
    ("o_holds", "fifo.o.ready.eq(output.i.ready)", "fifo.o.ready.eq(1)"),
    ("idle", "quiet & fifo.idle", "quiet"),
    ("fair", "current.source.eq(fifo.o.payload.source)", "current.source.eq(0)"),
], ids=["behind-a-gap", "next-packet", "dropped-beats", "first", "waits", "overrun",
        "idle-too-soon", "of-another"])
def test_broken_bag_receiver(wrong, old, new):
    verdict = prove(received((old, new), inside=False), depth=DEPTH)
    assert wrong in verdict.broken, verdict


@pytest.mark.parametrize("wrong, old, new", [
    ("share", "more.eq(keep & (source == beat.source))", "more.eq(0)"),
    ("share", "(come & within & fifo.i.ready)", "(come & fifo.i.ready)"),
    ("beats", "fifo.i.valid.eq(come & within)", "fifo.i.valid.eq(come)"),
    ("beats", "keep.eq(come & within & fifo.i.ready)", "keep.eq(come & within)"),
    ("share", "Mux(more, came + 1, beats_in.read_data)", "beats_in.read_data"),
    ("kept", "self.kept.node.eq(beat.source)", "self.kept.node.eq(source)"),
    ("fair", "went.eq(gone)", "went.eq(0)"),
    ("fair", "beats_out.read_data + 1, 0", "beats_out.read_data, 0"),
    ("idle", "swept & ~come", "swept"),
], ids=["just-before", "no-share", "not-counted", "full", "one-more", "other-node", "never-gone",
        "not-gone", "idle-too-soon"])
def test_broken_shares(wrong, old, new):
    verdict = prove(received(base=((old, new),), inside=False), depth=DEPTH)
    assert any(name.startswith(wrong) for name in verdict.broken), verdict

"""Proofs of the duplicate finder, without bound: the forwarded slots, and the index of each slot.

There is one set of two ways, and two indices. The keys fit the set, in two steps with two epochs
between sweeps, and with empty bags ("kept"), or are twice as many, in one step ("full"). The set
loop has a separate proof and is replaced by its model (:func:`~tests.formal.loops.plain_loop`); the
queues are short. In "bags", bags that pool at their owner are among the slots. For statements about
indices, the input buffer is a wire, and the output buffer shows each index in the cycle of its
entry, together with the slot that moves then. It becomes ready at any time, and stays ready until
it gets an index.
"""

from types import SimpleNamespace

import pytest
from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import Component

from rtl.delivery.unique import UniqueFinder
from rtl.formats import RecordKind
from rtl.stream import SkidBuffer
from tests.formal.bench import Bench
from tests.formal.loops import plain_loop
from tests.formal.prove import prove
from tests.formal.wires import ShortFIFO, ShortQueue, Wires
from tests.mutants import some_slow, variant

INDEX_BITS, NONE, EMPTY = 2, 2, 3


def shown_at_once(bench: Bench) -> type:
    """Return a class with the ports of a skid buffer that shows its items as they enter."""
    again = bench.free(name="again")  # before the bench is converted

    class Shown(Component):
        def __init__(self, shape):
            super().__init__(SkidBuffer(shape).signature)

        def elaborate(self, platform) -> Module:
            m = Module()
            ready = Signal(init=1)
            m.d.comb += [self.i.ready.eq(ready), self.o.valid.eq(self.i.valid & ready),
                         self.o.payload.eq(self.i.payload), self.idle.eq(1)]
            m.d.sync += ready.eq(again | (ready & ~self.i.valid))
            return m

    return Shown


def finder(what: str, *edits: tuple[str, str]) -> Bench:
    """Return a bench of the finder.

    what: "kept", "full", "bags": forwarded slots and indices, see above. "order": slots leave as
    they entered, in bounded time. "off": the same while the finder is off. "window": of five ways,
    none is placed within four lookups of its last placement.
    """
    bench = Bench()
    m = bench.m
    ways, key_bits = {"full": (2, 2), "window": (5, 3)}.get(what, (2, 1))
    of_indices = what in ("kept", "full", "bags")
    key = data.StructLayout({"row": key_bits, "table": 0})
    rest = {"sample": 0 if of_indices else 2, "step": 1, "last": 1, "ends": 1}
    bag = {"bag": 1} if what == "bags" else {}
    slot = data.StructLayout({"key": key, "kind": 2, **rest, **bag})
    index = data.StructLayout({"index": INDEX_BITS, **rest, "bag_end": 1, "empty": 1})
    loop, again = plain_loop()
    shown = shown_at_once(bench) if of_indices else SkidBuffer
    m.submodules.dut = dut = variant(
        UniqueFinder, *edits, NicConfig=SimpleNamespace, Slot=slot, slot_layout=lambda *_: slot,
        SlotIndex=index, Key=key, ROW_BITS=key_bits, STEP_BITS=1, EPOCH_BITS=1,
        INDEX_BITS=INDEX_BITS, NO_INDEX=NONE, EMPTY_INDEX=EMPTY, QUEUE=2,
        hash_bits=lambda key: C(0, 32), SetLoop=loop, StreamFIFO=ShortFIFO,
        CreditQueue=ShortQueue, SkidBuffer=lambda shape: (
            shown(shape) if shape == index else Wires(shape)))(
            SimpleNamespace(unique_keys=ways, unique_ways=ways, tables=1, owner_bags=len(bag),
                            repeat_positions=0))
    one_step = what == "full"
    offered, started, ended, last_step = Signal(slot), Signal(), Signal(), Signal()
    empty, step, end = (0 if one_step else bench.free(name=name) for name in (
        "empty", "step", "end"))
    m.d.comb += [
        offered.key.row.eq(bench.free(key_bits, "key")), offered.step.eq(step),
        offered.sample.eq(bench.free(2, "sample") if rest["sample"] else 0),
        offered.kind.eq(Mux(empty, RecordKind.EMPTY, RecordKind.KEY_END)),
        offered.ends.eq(empty & end), dut.enable.eq(what != "off")]
    if bag:
        m.d.comb += offered.bag.eq(bench.free(name="bag") & ~empty)
    entered = bench.source(dut.i, offered)
    # ``last`` shows that a step begins with a slot, visible when the slot is taken.
    begins = ~started | ended | (dut.i.payload.step != last_step)
    m.d.comb += dut.i.payload.last.eq(begins)
    with m.If(entered):
        m.d.sync += [started.eq(1), ended.eq(dut.i.payload.ends),
                     last_step.eq(dut.i.payload.step)]

    eager = C(1) if what in ("order", "off") else None
    gone = bench.sink(dut.o, "o", eager=eager)
    if of_indices:
        m.d.comb += dut.indices.ready.eq(1)
        _indices(bench, what, dut, gone, dut.indices.valid)
        return bench
    told = bench.sink(dut.indices, "indices", eager=eager)
    if what == "window":
        bench.always("placed_again", ~again)
        return bench
    leaves, left = (told, dut.indices.payload) if what == "order" else (gone, dut.o.payload)
    inside = bench.in_order(
        "slots", entered, Cat(dut.i.payload.sample, dut.i.payload.step, begins), leaves,
        Cat(left.sample, left.step, left.last), 6)
    bench.within("in_time", 8, inside != 0, leaves)
    bench.always("idle", ~dut.idle | (inside == 0))
    if what == "off":
        bench.always("silent", ~dut.indices.valid)
    return bench


def _indices(bench: Bench, what: str, dut, gone, told) -> None:
    """State the outputs of ``dut`` for the slot that moves."""
    m, slot, index = bench.m, dut.o.payload, dut.indices.payload.index
    key, empty = slot.key.row, dut.indices.payload.empty
    # State of the running step: the next index; the last index of any one key; the key of one
    # index.
    following, one, number = (
        Signal(INDEX_BITS), bench.constant(len(key), "one"), bench.constant(INDEX_BITS, "number"))
    seen, kept, owned, owner = Signal(), Signal(INDEX_BITS), Signal(), Signal(len(key))
    base, known, has = Mux(slot.last, 0, following), seen & ~slot.last, owned & ~slot.last
    bag = slot.bag if what == "bags" else C(0)
    of_key, is_number = told & ~empty & ~bag, (index == number) & (number != NONE)
    with m.If(told):
        m.d.sync += [following.eq(base + (gone & ~empty & (base != NONE))), seen.eq(known),
                     owned.eq(has)]
        with m.If(~empty & ~bag & (key == one)):
            m.d.sync += [seen.eq(1), kept.eq(index)]
        with m.If(~empty & ~bag & is_number & ~has):
            m.d.sync += [owned.eq(1), owner.eq(key)]
    bench.always("told", ~gone | told)
    if what == "bags":
        bench.always("bag", ~(told & bag) | (gone & (index == base)))
    bench.always("dense", ~(of_key & gone) | (index == base))
    bench.always("repeat", ~(of_key & ~gone & (key == one)) | (known & (index == kept)))
    bench.always("one_key", ~(of_key & is_number & has) | (owner == key))
    ends = dut.indices.payload.ends
    bench.always("empty", ~(told & empty) | ((index == EMPTY) & (gone == ends)))
    bench.always("ends", ~told | (ends == slot.ends))
    if what == "kept":
        bench.always("not_again", ~(of_key & gone & (key == one)) | ~known)


@pytest.mark.thorough
@pytest.mark.parametrize("what", ["kept", "full", "bags", "order", "off", "window"])
def test_unique(what):
    verdict = prove(finder(what))
    assert verdict.holds, verdict


@pytest.mark.few(4)
@pytest.mark.parametrize("what, wrong, old, new", some_slow([
    ("kept", "dense|repeat", "fresh | (slot.step != step)", "fresh"),
    ("kept", "dense|repeat", "fresh.eq(Mux(taken, slot.ends, fresh))",
     "fresh.eq(fresh & ~taken)"),
    ("kept", "empty", "first | o.context.ends |", "first |"),
    ("kept", "dense", "Mux(o.context.begins, 0, following)", "following"),
    ("kept", "repeat|not_again", "Cat(here.key, of_slot)", "Cat(here.key, epoch)"),
    ("kept", "repeat", "waits.eq(here.begins & final)", "waits.eq(0)"),
    ("kept", "repeat", "loop.clear.eq(sweeping)", "loop.clear.eq(sweeping & ~final)"),
    ("kept", "told", "& found.goes & told.i.ready)", "& found.goes)"),
    ("kept", "repeat", "& found.told & ends)", "& found.told)"),
    ("full", "dense", "Mux(first, index, o.label)", "o.label"),
    ("full", "dense", "(index != NO_INDEX)", "1"),
    ("kept", "not_again", "Mux(now.match.any(), 0, policy", "Mux(0, 0, policy"),
    ("kept", "empty", "looks = enable & ~here.empty", "looks = enable"),
    ("bags", "bag|repeat", "looks &= ~here.bag", "pass"),
    ("bags", "bag", "placed |= o.valid & o.context.bag & o.context.told", "pass"),
    ("kept", "repeat|one_key", "loop.label.eq(index)", "loop.label.eq(following)"),
    ("off", "in_time|idle|slots_in_order", "o.context.ends | ~o.context.told)", "o.context.ends)"),
    ("window", "placed_again", "policy.update(m, now.state, now.match, after.placed)",
     "now.state"),
], [], ["step-unseen", "end-unseen", "end-kept", "goes-on-counting", "epoch-before", "no-sweep",
        "swept-not", "twice", "told-before", "index-before", "beyond-the-last", "always-placed",
        "empty-looked-up",
        "bag-looked-up", "bag-not-numbered", "label-before", "off-lost", "no-order"]))
def test_broken_unique(what, wrong, old, new):
    verdict = prove(finder(what, (old, new)))
    # A fault may break several statements; the verdict shows the one found first.
    assert {*wrong.split("|")} & {*verdict.broken}, verdict

"""Proof of the bag pool: the words of a bag follow each other in one packet, bags keep their
order, and each packet closes once, with whole bags, for a reason: full, another step, a pause of
the source, or its age.

There are two destinations, and three buffers of six words. Bags of 2 to 6 words, in segments of one
or two words, are offered, packets read and their buffers freed at any time. Limit, batch and
time-out are constant. The search covers the first cycles, in which buffers are used again.
"""

import pytest
from amaranth.hdl import Array, Cat, Mux, Signal
from amaranth.lib import data

from rtl.bags.pool import BagPool
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import variant

BUFFERS, WORDS, DEPTH, AGES, WAITS = 3, 6, 12, 4, 2
_BAG = data.StructLayout({"destination": 1, "step": 1, "words": 3})
_ITEM = data.StructLayout({"bag": _BAG, "head": 1, "last": 1, "size": 2})
_BUFFER = data.StructLayout({
    "filling": 1, "closed": 1, "destination": 1, "step": 1, "bags": 3, "words": 4, "stored": 4,
    "age": 4})


def pooled(*edits: tuple[str, str], batched: bool = False) -> Bench:
    """Return a bench that tracks the content of each buffer."""
    bench = Bench()
    m = bench.m
    timers = "AGES, WAITS = 64, 4", f"AGES, WAITS = {AGES}, {WAITS}"
    m.submodules.dut = dut = variant(BagPool, timers, *edits)(
        2, BUFFERS, WORDS, most_bags=batched, pauses=True)
    limit, timeout, batch = (bench.constant(bits, name) for bits, name in (
        (3, "limit"), (3, "timeout"), (2, "batch")))
    time, started = Signal(4), Signal()
    m.d.sync += [time.eq(time + 1), started.eq(1)]
    m.d.comb += [dut.limit.eq(limit), dut.timeout.eq(timeout), dut.time.eq(time)]
    if batched:
        m.d.comb += dut.batch.eq(batch)
    most = Mux(batch == 0, 1, batch) if batched else 7

    # The next segment: the rest of the bag, or a head.
    item, mine, rest, kept = Signal(_ITEM), Signal(_ITEM), Signal(3), Signal(_BAG)
    new, left = Signal(_BAG), Signal(3)
    m.d.comb += [
        new.eq(bench.free(_BAG.size, "bag")), item.head.eq(rest == 0),
        item.bag.eq(Mux(rest == 0, new, kept)), left.eq(Mux(rest == 0, new.words, rest)),
        item.size.eq(Mux((left == 1) | bench.free(name="short"), 1, 2)),
        item.last.eq(item.size == left),
        dut.valid.eq(bench.free(name="offers") & started),
        *(getattr(dut, name).eq(item.bag[name]) for name in ("destination", "step", "words")),
        *(getattr(dut, name).eq(item[name]) for name in ("head", "last", "size")),
    ]
    bench.assume((limit >= 2) & (limit <= WORDS), (new.words >= 2) & (new.words <= limit))
    inside, taken = Signal(), dut.take & dut.valid
    with m.If(taken):
        m.d.sync += [rest.eq(left - item.size), kept.eq(item.bag), mine.eq(item)]
    with m.If(dut.ready | taken):
        m.d.sync += inside.eq(taken)
    bench.always("one_inside", ~(taken & inside) | dut.ready)
    bench.always("its_own", ~dut.ready | inside)

    buffers = [Signal(_BUFFER, name=f"buffer{k}") for k in range(BUFFERS)]
    told = dut.closed.payload
    out = bench.sink(dut.closed, "closed", Cat(
        told.destination, told.buffer, told.units, told.positions))
    frees, freed = Signal(), bench.free(range(BUFFERS), "freed")
    m.d.comb += [
        frees.eq(bench.free(name="frees") & bench.any_of(
            (freed == k) & buffer.closed for k, buffer in enumerate(buffers))),
        dut.freed.valid.eq(frees), dut.freed.buffer.eq(freed)]

    # The bag that is being stored: its buffer, and whether its last segment is not there yet.
    last_buffer, middle = Signal(range(BUFFERS)), Signal()
    with m.If(dut.ready):
        m.d.sync += [last_buffer.eq(dut.buffer), middle.eq(~mine.last)]
    place = dut.position
    here = Array(buffers)[dut.buffer]
    of_bag = (here.destination == mine.bag.destination) & (here.step == mine.bag.step)
    begins = mine.head & (place == 0)
    good = Mux(mine.head, ~middle & (place + mine.bag.words <= limit) & Mux(
        begins, ~here.filling & ~here.closed & (dut.unit == 0),
        here.filling & of_bag & (here.words == place) & (here.bags == dut.unit)),
        here.filling & of_bag & middle & (dut.buffer == last_buffer) & (here.stored == place))
    bench.always("place", ~dut.ready | good)
    words = Mux(mine.head, place + mine.bag.words, here.words)
    bags = Mux(begins, 0, here.bags) + mine.head
    full = mine.last & ((words + 2 > limit) | (bags >= most))
    bench.always("full", dut.full == (dut.ready & full))
    bench.always("stepped", ~dut.stepped | (mine.head & inside & bench.any_of(
        buffer.filling & (buffer.destination == mine.bag.destination) & Mux(
            dut.outgrown, (buffer.step == mine.bag.step) & (
                buffer.words + mine.bag.words > limit), buffer.step != mine.bag.step)
        for buffer in buffers)))
    bench.always("outgrown", ~dut.outgrown | dut.stepped)

    # Cycles since the source moved; whether they reached the timeout while a buffer was open.
    pause, paused = Signal(5, init=31), Signal(BUFFERS)
    waiting = Signal()
    m.d.comb += [dut.moving.eq(bench.free(name="moving")),
                 dut.waiting.eq(bench.free(name="waiting"))]
    m.d.sync += waiting.eq(dut.waiting)
    with m.If(dut.ready | dut.moving):
        m.d.sync += pause.eq(1)
    with m.Elif(~pause.all()):
        m.d.sync += pause.eq(pause + 1)

    older = [[Signal(name=f"older{k}_{j}") for j in range(BUFFERS)] for k in range(BUFFERS)]
    reason = Signal(BUFFERS)
    for k, buffer in enumerate(buffers):
        ends, mine_now = out & (told.buffer == k), dut.ready & (dut.buffer == k)
        with m.If(mine_now):
            m.d.sync += [
                buffer.filling.eq(1), buffer.words.eq(words), buffer.bags.eq(bags),
                buffer.stored.eq(place + mine.size), buffer.destination.eq(mine.bag.destination)]
        with m.If(mine_now & begins):
            m.d.sync += [buffer.step.eq(mine.bag.step), buffer.age.eq(1)]
        with m.Elif(~buffer.age.all()):
            m.d.sync += buffer.age.eq(buffer.age + 1)
        with m.If(ends):
            m.d.sync += [buffer.filling.eq(0), buffer.closed.eq(1)]
        with m.If(frees & (freed == k)):
            m.d.sync += buffer.closed.eq(0)
        same = buffer.filling & (buffer.destination == mine.bag.destination)
        with m.If(mine_now):
            m.d.sync += reason[k].eq(full)
        with m.Elif(dut.stepped & same):
            m.d.sync += reason[k].eq(1)
        bench.always(f"told_{k}", ~ends | (
            buffer.filling & ~(middle & (last_buffer == k)) & (told.destination == (
                buffer.destination)) & (told.step == buffer.step) & (told.units == buffer.bags)
            & (told.positions == buffer.words) & (buffer.stored == buffer.words)))
        with m.If(mine_now & begins):
            m.d.sync += paused[k].eq(0)
        with m.Elif(pause >= Mux(waiting, WAITS * timeout, timeout)):
            m.d.sync += paused[k].eq(1)
        bench.always(f"for_a_reason_{k}", ~ends | reason[k] | (buffer.age >= timeout + 2) & (
            paused[k] | (buffer.age >= AGES * timeout + 2)))
        for j in range(BUFFERS):
            if j == k:
                continue
            with m.If(ends):
                m.d.sync += older[k][j].eq(0)
            with m.Elif(dut.ready & begins & (dut.buffer == j)):
                m.d.sync += older[k][j].eq(same)
            bench.always(f"order_{k}_{j}", ~(out & (told.buffer == j) & older[k][j])
                         | ~buffer.filling)
    bench.always("idle", ~dut.idle | ~(inside | bench.any_of(
        buffer.filling for buffer in buffers)))
    return bench


@pytest.mark.thorough
@pytest.mark.parametrize("batched", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_bag_pool(batched):
    verdict = prove(pooled(batched=batched), depth=DEPTH)
    assert verdict.holds, verdict


def test_a_buffer_is_used_again():
    """The search includes runs in which a buffer is filled a second time, behind another packet of
    its destination."""
    bench = pooled()
    dut, times = bench.m.submodules.dut, Signal(2)
    bench.m.d.sync += times.eq(times + (dut.ready & (dut.position == 0) & (dut.buffer == 0)))
    bench.broken.clear()
    bench.always("reached", times != 2)
    assert prove(bench, depth=DEPTH).broken == ("reached",)


@pytest.mark.parametrize("wrong, batched, old, new", [
    ("place", False, "Mux(item.head, positions, following)", "positions"),
    ("place", False, "following.eq(self.position + item.size)", "following.eq(self.position + 1)"),
    ("place", False, "updated.positions.eq(positions + Mux(item.head, item.words, 0))",
     "updated.positions.eq(positions + item.size)"),
    ("place", False, "bounds[0].eq(self.limit + 1)", "bounds[0].eq(self.limit + 2)"),
    ("full", False, "self.limit + 1 - _SHORTEST", "self.limit + 1"),
    ("full", False, "words = Mux(self.head, self.words, 0)", "words = self.words"),
    ("place", False, "(same & over_same)", "0"),
    ("place", False, "(~same & over_found)", "0"),
    ("place", False, "other | (open_next &", "(open_next &"),
    ("stepped", False, "over.eq(~other)", "over.eq(other)"),
    ("full", False, "single.eq(alone)", "single.eq(0)"),
    ("full", True, "bags >= last, bags > last", "bags > last, bags > last"),
    ("full", True, "alone |= last == 0", "alone |= 0"),
    ("for_a_reason_0", False, "((quiet >= self.timeout) & ~waits)", "(age >= self.timeout)"),
    ("for_a_reason_0", False, "self.ready | self.moving", "self.ready"),
    ("for_a_reason_0", False, "& ~waits)", ")"),
    ("for_a_reason_0", False, "(age >= self.timeout << exact_log2(self.AGES))", "(age != 0)"),
], ids=["on-the-head", "on-each-other", "words-of-a-segment", "over-the-limit", "never-full",
        "counted-again", "too-long", "too-long-later", "any-step", "wrong-reason", "not-alone",
        "batch", "batch-of-one", "any-pause", "old-pause", "early-pause", "any-age"])
def test_broken_bag_pool(wrong, batched, old, new):
    verdict = prove(pooled((old, new), batched=batched), depth=DEPTH)
    assert wrong in verdict.broken, verdict

"""Proof of the frame pool: its free beats come in the order in which they were given back, so that
none is lost, and none has two owners.

There are four beats here, of one bit, in chains of at most two, and two to spare, which is less
than the block asks for; all else is as it is.
"""

import pytest
from amaranth.hdl import Mux, Signal

from rtl.network.link.frame_pool import FramePool
from tests.formal.bench import Bench
from tests.formal.mutants import variant
from tests.formal.prove import prove

BEATS, BITS, CHAINS, LONGEST, SPARE = 4, 2, 2, 2, 2


def pool(*edits: tuple[str, str]) -> Bench:
    """Return a bench that takes beats and gives back chains whenever; it follows one beat, any."""
    bench = Bench()
    m = bench.m
    small = variant(FramePool, *edits, ("beats < 8", "beats < 4"), BEAT_BITS=1)
    m.submodules.dut = dut = small(BEATS)
    free = Signal(range(BEATS + 1), init=BEATS)
    chains = [{name: Signal(BITS, name=f"{name}{k}") for name in ("first", "last", "size")}
              for k in range(CHAINS)]
    # A chain is built in one place, and another given back.
    first, size = Signal(BITS), Signal(range(LONGEST + 1))
    place, given = Signal(range(CHAINS)), Signal(range(CHAINS))
    take, closes, offers = Signal(), Signal(), Signal()
    sizes = Signal(range(LONGEST + 1))
    m.d.comb += [
        place.eq(bench.free(name="place")), given.eq(bench.free(name="given")),
        take.eq(bench.free(name="take") & (free > SPARE) & (size < LONGEST)),
        closes.eq(bench.free(name="closes") & (size != 0) & ~take),
        offers.eq(bench.free(name="offers")),
        dut.take.eq(take), dut.data.eq(bench.free(name="data")),
    ]
    with m.If(take):
        m.d.sync += size.eq(size + 1)
        with m.If(size == 0):
            m.d.sync += first.eq(dut.beat)
    last = Signal(BITS)
    with m.If(take):
        m.d.sync += last.eq(dut.beat)
    with m.Switch(given):
        for k, chain in enumerate(chains):
            with m.Case(k):
                m.d.comb += [dut.give.payload.first.eq(chain["first"]),
                             dut.give.payload.last.eq(chain["last"]), sizes.eq(chain["size"])]
    gives = Signal()
    m.d.comb += [dut.give.valid.eq(offers & (sizes != 0)),
                 gives.eq(dut.give.valid & dut.give.ready)]
    for k, chain in enumerate(chains):
        with m.If(gives & (given == k)):
            m.d.sync += chain["size"].eq(0)
        with m.If(closes & (place == k) & (chain["size"] == 0)):
            m.d.sync += [chain["first"].eq(first), chain["last"].eq(last), chain["size"].eq(size),
                         size.eq(0)]
    m.d.sync += free.eq(free - take + Mux(gives, sizes, 0))

    # Beats come out of the list as they stood in it: at first 0, 1, 2 and so on.
    taken = Signal(range(BEATS + 1))
    with m.If(take & (taken != BEATS)):
        m.d.sync += taken.eq(taken + 1)
    bench.always("first_lap", ~take | (taken == BEATS) | (dut.beat == taken[:BITS]))
    # Later as they were given back: the last of a chain that is picked, after those before it.
    picked, kept, ahead = Signal(), Signal(BITS), Signal(range(BEATS + 1))
    with m.If(picked):
        with m.If(take):
            m.d.sync += [ahead.eq(ahead - 1), picked.eq(ahead != 0)]
    with m.Elif(gives & bench.free(name="pick")):
        m.d.sync += [picked.eq(1), kept.eq(dut.give.payload.last),
                     ahead.eq(free - take + sizes - 1)]
    bench.always("in_order", ~(picked & take & (ahead == 0)) | (dut.beat == kept))
    return bench


DEPTH = 20


def test_frame_pool():
    verdict = prove(pool(), depth=DEPTH)
    assert verdict.holds, verdict


@pytest.mark.parametrize("old, new", [
    ("tail.eq(self.give.payload.last)", "tail.eq(self.give.payload.first)"),
    ("self.give.ready.eq(~linked)", "self.give.ready.eq(1)"),
    ("fresh.eq(fresh & (head != last - 1))", "fresh.eq(fresh & (head != last))"),
    ("linked.eq(self.take & fresh)", "linked.eq(0)"),
    ("links.read_en.eq(self.take)", "links.read_en.eq(1)"),
], ids=["first-as-last", "link-overwritten", "lap-too-long", "no-link", "read-on"])
def test_broken_frame_pool(old, new):
    assert not prove(pool((old, new)), depth=DEPTH).holds

"""Proof of the verdicts on queries with bags: the committed segments are exactly those of the bags
of accepted samples, in the order of their slots.

Records and segments with any faults arrive at any time, as the splitter gives them
(``tests/rtl/bags/test_splitter.py``): a bag has its segments from head to tail, unless beats are
missing. A sample announces at most three slots; its bags have any length. The store has three
places, and is the real one; slots, errors and segments are taken at any time.
"""

import pytest
from amaranth.hdl import Cat, Mux, Signal, Value
from amaranth.lib import data, stream

from rtl.bags.store import SegmentStore
from rtl.formats import ErrorRecord, SampleRecord
from rtl.keys.owner_split import split_layout
from rtl.query.checker import slot_layout
from rtl.query.judge import BAG_USER, _BagFlags, judge
from rtl.stream import packet_layout
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import variant

PLACES = 3
DEPTH = 16
"""Cycles searched for the fault of a mutant."""
_ITEM = data.StructLayout(
    split_layout(BAG_USER, bags=True).members | {"flags": _BagFlags, "bad_row": 1})
_KINDS = data.StructLayout({"bag": 1, "kind": 2, "gap": 1, "marker": 1})


def judged(*edits: tuple[str, str]) -> Bench:
    """Return a bench that counts segments and slots of the open sample."""
    bench = Bench()
    m = bench.m
    m.submodules.store = store = SegmentStore(PLACES)
    i, o, errors = (stream.Signature(shape).create() for shape in (
        _ITEM, packet_layout(slot_layout(True)), ErrorRecord))

    # The next item: a segment of the open bag, or after a gap any other.
    item, inside, free = Signal(_ITEM), Signal(), Signal(_KINDS)
    flags, segment, kind = item.flags, item.user.segment, free.kind
    gap, marker = free.gap | free.marker, free.marker
    begins = ~inside | gap
    is_bag = Mux(begins, free.bag & ~marker, 1)
    cut = bench.free(name="cut") & is_bag
    m.d.comb += [
        free.eq(bench.free(_KINDS.size, "kinds")),
        segment.head.eq(is_bag & begins), segment.keys.eq(bench.free(1, "keys")),
        segment.tail.eq(is_bag & (bench.free(name="tail") | cut)), segment.size.eq(1),
        flags.bag.eq(is_bag), flags.slot.eq(~is_bag | segment.tail), flags.cut.eq(cut),
        flags.head.eq(~is_bag & ~marker & (kind == 3)),
        flags.empty.eq(~is_bag & ~marker & (kind == 2)),
        flags.inner.eq(~is_bag & (marker | (kind == 0))),
        flags.key.eq(is_bag | marker | ~kind[1]), flags.gap.eq(gap),
        flags.marker.eq(marker & ~free.gap), flags.size.eq(is_bag & bench.free(name="size")),
        flags.refused.eq(flags.head & bench.free(name="head_bad")),
        item.refused.eq(bench.free(name="refused")),
        item.bad_row.eq(is_bag & bench.free(name="bad_row")),
        Value.cast(item.key)[SampleRecord["slots"].offset:][:2].eq(bench.free(2, "slots")),
    ]
    came = bench.source(i, Cat(item))
    with m.If(came):
        m.d.sync += inside.eq(i.payload.flags.bag & ~i.payload.user.segment.tail)
    m.d.comb += [o.ready.eq(bench.free(name="room")), errors.ready.eq(bench.free(name="errors"))]
    variant(judge, *edits)(m, i, i.payload.flags, o, errors, 0, store)

    # Segments enter beside the slots, and wait for the same end.
    entered, left = store.i.valid & store.i.ready, bench.sink(store.o, "o", store.o.payload.keys[0])
    slot = o.valid & o.ready
    ends, drop = slot & o.payload.last, o.payload.drop
    bench.always("enters", ~store.i.valid | store.i.ready)
    bench.always("itself", ~entered | (
        i.payload.flags.bag & (store.i.payload.as_value() == i.payload.user.segment.as_value())))
    bench.always("committed", store.commit == (ends & ~drop))
    bench.always("revoked", store.revoke == (ends & drop))

    # Of the open sample: segments that came and entered, tails that entered, and slots of bags.
    came_in, stored, tails, slots = (Signal(4, name=name) for name in (
        "came_in", "stored", "tails", "slots"))
    mine = i.payload.flags
    now = [came_in + (came & mine.bag), stored + entered,
           tails + (entered & store.i.payload.tail),
           slots + (slot & ~(ends & drop) & o.payload.item.bag)]
    for count, following in zip((came_in, stored, tails, slots), now, strict=True):
        with m.If(ends | (came & mine.head)):
            m.d.sync += count.eq(0)
        with m.Elif(count != 8):
            m.d.sync += count.eq(following)
    bench.always("all", ~(ends & ~drop) | ((now[0] == now[1]) & (now[2] == now[3])))
    wrong = mine.bag & (mine.size | mine.cut | i.payload.bad_row | i.payload.refused)
    faulty = Signal()
    m.d.sync += faulty.eq(~(ends | (came & mine.head)) & (faulty | (came & wrong)))
    bench.always("good", ~(ends & ~drop) | ~(faulty | wrong))
    bench.always("whole", ~(ends & ~drop) | ~(inside & ~(came & i.payload.user.segment.tail)))

    # The reader waits for committed segments, and the items wait for the reader only.
    ready = Signal(range(2 * PLACES + 2))
    m.d.sync += ready.eq(ready + Mux(store.commit, now[1], 0) - left)
    bench.always("none_invented", ~left | (ready != 0))
    bench.within("moves", PLACES + 4, i.valid & o.ready & errors.ready & (
        store.o.ready | (ready == 0)), came)
    bench.assume(Value.cast(i.payload.key)[SampleRecord["slots"].offset + 2:][:14] == 0)
    return bench


def test_bag_queries():
    verdict = prove(judged())
    assert verdict.holds, verdict


@pytest.mark.parametrize("wrong, old, new", [
    ("all", "last = final & flags.slot", "last = final"),
    ("committed", "end=end, drop=bad | fault", "end=end, drop=bad"),
    ("committed", "store.commit.eq(go & end & ~drop)", "store.commit.eq(go & end)"),
    ("all", "unfit |= wrong | ~flags.slot", "unfit |= wrong"),
    ("all", "~(cut | unfit | wrong)", "~(cut | unfit | wrong | in_bag | final)"),
    ("enters", "room &= ~store.full | bad | full", "room &= 1"),
    ("moves", "room &= ~store.full | bad | full", "room &= ~store.full"),
    ("moves", "full.eq(used == store.depth - 1)", "full.eq(used == store.depth)"),
    ("none_invented", "else m.If(flags.slot)", "else m.If(1)"),
    ("good", "in_bag | flags.size | full | bad_row | flags.cut",
     "in_bag | flags.size | full | bad_row"),
    ("good", "in_bag | flags.size | full | bad_row | flags.cut",
     "in_bag | flags.size | full | flags.cut"),
    ("itself", "write=open_ & flags.bag &", "write=open_ &"),
], ids=["first-segment", "faulty-end", "always", "slot-of-a-segment", "last-bag", "full", "blocked",
        "one-more", "counted-often", "cut", "row", "records"])
def test_broken_bag_queries(wrong, old, new):
    verdict = prove(judged((old, new)), depth=DEPTH)
    assert wrong in verdict.broken, verdict

"""Proof of the packet FIFO: exactly the whole packets with a good end leave, in order."""

import pytest
from amaranth.hdl import Cat, Mux, Signal

from rtl.stream import PacketFIFO
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import broken


def packets(dut: PacketFIFO, depth: int) -> Bench:
    """Return a bench that counts whole packets, independent of pointers and RAM."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut
    entered, left = bench.source(dut.i), bench.sink(dut.o, "o")
    item, out = dut.i.payload, dut.o.payload

    # Items of the packet that is entering, and items of finished good packets inside.
    length, inside = Signal(range(depth + 2)), Signal(range(depth + 3))
    ends, good = entered & item.last, Signal()
    m.d.comb += good.eq(ends & ~item.drop & (length < depth))
    with m.If(entered):
        m.d.sync += length.eq(Mux(item.last, 0, Mux(length == depth + 1, length, length + 1)))
    m.d.sync += inside.eq(inside + Mux(good, length + 1, 0) - left)
    bench.always("bounded", inside <= depth + 1)
    bench.always("none_invented", ~left | (inside != 0))
    bench.always("verdict", (dut.dropped == (ends & ~good))
                 & (dut.overflow == (ends & (length >= depth))))
    bench.always("idle", dut.idle == (inside == 0))
    bench.always("no_drop_shown", ~left | ~out.drop)

    # Any one item is followed: it leaves if its packet is good, after the items inside before it.
    picked, waiting = Signal(), Signal()
    kept, place, ahead = Signal(len(Cat(item.item, item.last))), Signal.like(length), Signal.like(
        inside)
    pick = Signal()
    m.d.comb += pick.eq(entered & ~picked & ~waiting & bench.free(name="pick"))
    with m.If(pick):
        m.d.sync += [picked.eq(~ends), kept.eq(Cat(item.item, item.last)), place.eq(length)]
    with m.If(waiting):
        m.d.sync += [ahead.eq(ahead - left), waiting.eq(~(left & (ahead == 0)))]
    with m.Elif(ends & (picked | pick)):
        m.d.sync += [picked.eq(0), waiting.eq(good),
                     ahead.eq(inside + Mux(pick, length, place) - left)]
    bench.always("in_order", ~(waiting & left & (ahead == 0)) | (Cat(out.item, out.last) == kept))

    # Finished packets leave, and input is taken once they have left.
    bench.within("leaves", 1, dut.o.ready & (inside != 0), left)
    bench.always("takes", dut.i.ready | (inside != 0))
    return bench


@pytest.mark.few(2)
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_packet_fifo(depth):
    verdict = prove(packets(PacketFIFO(1, depth), depth))
    assert verdict.holds, verdict


@pytest.mark.parametrize("old, new", [
    ("tail.eq(start)", "tail.eq(tail)"),
    ("| swallow | ~some", "| swallow"),
    ("pull.eq(some ", "pull.eq((level != 0) "),
    ("Mux(revoke, ready_level, Mux(write", "Mux(0, 0, Mux(write"),
    ("(self.i.payload.drop | swallow | too_long)", "(self.i.payload.drop | swallow)"),
    ("start.eq(following(tail))", "start.eq(start)"),
], ids=["not-taken-back", "jammed", "shown-early", "places-lost", "too-long-kept", "old-start"])
def test_broken_packet_fifo(old, new):
    assert not prove(packets(broken(PacketFIFO, old, new)(1, 3), 3)).holds

"""Proofs of the blocks that merge streams: order, fairness, and packets that are not interleaved.
"""

import pytest
from amaranth.hdl import Signal
from amaranth.lib import data

from rtl.stream import Arbiter
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import broken

ITEM = data.StructLayout({"port": 2, "mark": 1, "last": 1})


def merged(dut: Arbiter, ports: int, *, packets: bool, priority: bool) -> Bench:
    """Return a bench whose items contain their port, so the output shows the source of each item.
    """
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut
    entered = []
    for k in range(ports):
        item = Signal(ITEM)
        m.d.comb += [item.port.eq(k), item.mark.eq(bench.free(name="mark")),
                     item.last.eq(bench.free(name="last") if packets else 1)]
        entered.append(bench.source(dut.i[k], item))
    left, out = bench.sink(dut.o, "o"), dut.o.payload

    # Statements about any one port.
    port = bench.constant(range(ports), "port")
    mine, offers, ends = Signal(), Signal(), Signal()
    bench.assume(port < ports)
    taken = Signal(ITEM)
    with m.Switch(port):
        for k in range(ports):
            with m.Case(k):
                m.d.comb += [mine.eq(entered[k]), taken.eq(dut.i[k].payload),
                             offers.eq(dut.i[k].valid)]
    inside = bench.in_order("items", mine, taken, left & (out.port == port), out, 2)
    bench.within("leaves", 2, dut.o.ready & (inside != 0), left & (out.port == port))

    # A packet's items stay together at the output.
    open_, owner = Signal(), Signal(range(ports))
    with m.If(left):
        m.d.sync += [open_.eq(~out.last), owner.eq(out.port)]
    bench.always("not_mixed", ~(left & open_) | (out.port == owner))

    # At most one item is taken per cycle, from the port in ``grant``; only a packet in progress
    # blocks other ports.
    under_way, holder = Signal(), Signal(range(ports))
    any_taken, last = bench.any_of(entered), Signal()
    for k in range(ports):
        with m.If(entered[k]):
            m.d.comb += last.eq(dut.i[k].payload.last)
            m.d.sync += [under_way.eq(~dut.i[k].payload.last), holder.eq(k)]
        others = bench.any_of(entered[j] for j in range(ports) if j != k)
        bench.always(f"one_taken_{k}", ~entered[k] | ((dut.grant == k) & ~others))
    bench.within("works", 2, dut.o.ready & offers & (~under_way | (holder == port)), any_taken)
    m.d.comb += ends.eq(any_taken & last)
    if priority:
        lower = bench.any_of(dut.i[j].valid & (j < port) for j in range(ports))
        bench.always("lowest_first", ~(mine & ~under_way) | ~lower)
    else:
        # Packets of other ports that end while this port waits, including a packet in progress.
        bench.within("fair", ports, ends & offers & ~mine, mine | ~offers)
    bench.always("idle", ~dut.idle | ((inside == 0) & ~offers))
    return bench


def bench_of(block: type, packets: bool, priority: bool) -> Bench:
    dut = block(ITEM, 3, last=(lambda item: item.last) if packets else None, priority=priority)
    return merged(dut, 3, packets=packets, priority=priority)


@pytest.mark.parametrize("priority", [False, True], ids=["robin", "priority"])
@pytest.mark.parametrize("packets", [False, True], ids=["items", "packets"])
def test_arbiter(packets, priority):
    verdict = prove(bench_of(Arbiter, packets, priority))
    assert verdict.holds, verdict


@pytest.mark.parametrize("packets, priority, old, new, what", [
    (False, False, "(previous < k)", "(previous <= k)", "fair"),
    (False, False, "reversed(range(1, n))", "range(1, n)", "fair"),
    (False, True, "if not self._priority:", "if True:", "lowest_first"),
    (False, False, "self.grant.eq(choice)", "self.grant.eq(previous)", "one_taken_"),
    (True, True, "locked.eq(~self._last(buffer.i.payload))", "locked.eq(0)", "not_mixed"),
], ids=["starved", "wrong-turn", "no-priority", "wrong-grant", "mixed"])
def test_broken_arbiter(packets, priority, old, new, what):
    verdict = prove(bench_of(broken(Arbiter, old, new), packets, priority))
    assert any(name.startswith(what) for name in verdict.broken), verdict

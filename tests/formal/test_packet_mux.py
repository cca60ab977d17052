"""Proof of the packet multiplexer: header and payload of a packet stay together."""

import pytest
from amaranth.hdl import Cat, Mux, Signal

from rtl.formats import FrameInfo, RawBeat
from rtl.network import PacketMux
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import broken

PORTS = 2


def multiplexed(dut: PacketMux) -> Bench:
    """Return a bench in which headers and beats contain their port and a mark; other bits are 0."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut
    headers, beats = [], []
    for k in range(PORTS):
        info, beat = Signal(FrameInfo), Signal(RawBeat)
        m.d.comb += [info.destination.eq(k), info.count.eq(bench.free(name="mark")),
                     info.empty.eq(bench.free(name="empty")),
                     beat.data.eq(Cat(bench.free(name="mark"), k)),
                     beat.last.eq(bench.free(name="last"))]
        headers.append(bench.source(dut.headers[k], info))
        beats.append(bench.source(dut.payload[k], beat))
    info, beat = dut.header_out.payload, dut.payload_out.payload
    # All bits that are not tied to 0.
    shown = Cat(info.destination[0], info.count[0], info.empty)
    data = Cat(beat.data[:2], beat.last)
    header_left = bench.sink(dut.header_out, "header_out", shown)
    beat_left = bench.sink(dut.payload_out, "payload_out", data)
    port = beat.data[1]

    # Headers leave in the order of their take, one per cycle.
    bench.always("one_header", ~(headers[0] & headers[1]))
    taken = [Cat(dut.headers[k].payload[field] for field in ("destination", "count", "empty"))
             for k in range(PORTS)]
    entered = Mux(headers[1], taken[1], taken[0])
    inside = bench.in_order("headers", headers[0] | headers[1],
                            Cat(entered[0], entered[8], entered[24]), header_left, shown, 2)
    bench.within("header_leaves", 1, dut.header_out.ready & (inside != 0), header_left)

    # Their payloads leave in the same order; each is complete, its beats in sequence.
    full = [headers[k] & ~dut.headers[k].payload.empty for k in range(PORTS)]
    bench.in_order("packets", full[0] | full[1], full[1], beat_left & beat.last, port, 7)
    under_way, owner = Signal(), Signal()
    with m.If(beat_left):
        m.d.sync += [under_way.eq(~beat.last), owner.eq(port)]
    bench.always("not_mixed", ~(beat_left & under_way) | (port == owner))
    for k in range(PORTS):
        item = dut.payload[k].payload
        bench.in_order(f"beats_{k}", beats[k], Cat(item.data[:2], item.last),
                       beat_left & (port == k), data, 2)

    # Fairness: at most two headers of the other port pass.
    for k in range(PORTS):
        offers = dut.headers[k].valid
        bench.within(f"fair_{k}", PORTS, headers[1 - k] & offers, headers[k])
    # The payload whose turn it is moves when it is offered. Due: a packet in progress, or any
    # packet offered while both ports are.
    turn = Mux(owner, dut.payload[1].valid, dut.payload[0].valid)
    bench.within("beat_leaves", 4, dut.payload_out.ready & under_way & turn, beat_left)
    return bench


def test_packet_mux():
    verdict = prove(multiplexed(PacketMux(PORTS)))
    assert verdict.holds, verdict


@pytest.mark.few(2)
@pytest.mark.parametrize("old, new", [
    ("(turn & there & last).any()", "(turn & there).any()"),
    ("header.i.ready & order.i.ready & ~granting", "header.i.ready & ~granting"),
    ("header.i.ready & order.i.ready & ~granting", "header.i.ready & order.i.ready"),
    ("choice & ~empty", "choice"),
    ("order.o.valid & turn[k]", "order.o.valid"),
    ("Mux((offered & later).any(), _lowest(offered & later), _lowest(offered))",
     "_lowest(offered)"),
], ids=["mixed", "order-lost", "granted-twice", "empty-waited-for", "others-taken", "unfair"])
def test_broken_packet_mux(old, new):
    assert not prove(multiplexed(broken(PacketMux, old, new)(PORTS))).holds

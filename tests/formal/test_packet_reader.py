"""Proof of the packet reader, without bound: each packet leaves whole, in order, and is freed once.

Packets have one to three beats from two buffers. Packets, and room for headers and beats, come at
any time. A beat contains the address of its read, so it can be followed through the RAM's output to
the payload.
"""

import pytest
from amaranth.hdl import Cat, Mux, Signal

from rtl.network.packet_reader import PacketReader
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import variant

BUFFERS, BEATS, INSIDE = 2, 3, 4


def read(*edits: tuple[str, str]) -> Bench:
    """Return a bench that marks any one packet, and follows it to its header and its beats."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = variant(PacketReader, *edits, NODE_BITS=1, STEP_BITS=1)(
        1, BUFFERS, 1, BEATS, bits=4)
    packet, offered = dut.i.payload, Signal(dut.i.payload.shape())
    m.d.comb += [offered.buffer.eq(bench.free(range(BUFFERS), "buffer")),
                 offered.destination.eq(bench.free(name="destination")),
                 offered.beats.eq(bench.free(2, "beats"))]
    entered = bench.source(dut.i, offered)
    bench.assume(offered.beats != 0)
    word = Signal(4)
    with m.If(dut.read_en):
        m.d.sync += word.eq(Cat(dut.read_beat, dut.read_buffer))
    m.d.comb += dut.data.eq(word)
    payload, told = dut.payload.payload, dut.headers.payload
    header = bench.sink(dut.headers, "headers", told.destination)
    beat = bench.sink(dut.payload, "payload", Cat(payload.data[:3], payload.last))
    bench.in_order("headers", entered, packet.destination, header, told.destination, INSIDE)

    # The beats of any one packet, as they are read and as they leave.
    picks = bench.free(name="pick")
    for name, moves, buffer, index, last in (
            ("read", dut.read_en, dut.read_buffer, dut.read_beat, dut.freed.valid),
            ("left", beat, payload.data[2], payload.data[:2], payload.last)):
        inside, ahead = Signal(range(INSIDE + 2)), Signal(range(INSIDE + 2))
        waiting, kept, at = Signal(), Signal.like(packet), Signal(2)
        ends = moves & last
        m.d.sync += inside.eq(inside + entered - ends)
        bench.always(f"{name}_bounded", inside <= INSIDE)
        bench.always(f"{name}_none_invented", ~moves | (inside != 0))
        with m.If(waiting):
            m.d.sync += [ahead.eq(ahead - (ends & (ahead != 0))),
                         at.eq(Mux(ahead == 0, at + moves, 0)),
                         waiting.eq(~(ends & (ahead == 0)))]
        with m.Elif(entered & picks):
            m.d.sync += [waiting.eq(1), kept.eq(packet), ahead.eq(inside - ends), at.eq(0)]
        bench.always(name, ~(waiting & moves & (ahead == 0)) | (
            (buffer == kept.buffer) & (index == at) & (last == (at + 1 == kept.beats))))
        bench.within(f"{name}_on", 3, (inside != 0) & dut.payload.ready, moves)
    bench.always("freed", ~dut.freed.valid | (dut.read_en & (
        dut.freed.buffer == dut.read_buffer)))
    bench.always("idle", ~dut.idle | ((inside == 0) & ~dut.headers.valid & ~dut.payload.valid))
    return bench


def test_packet_reader():
    verdict = prove(read())
    assert verdict.holds, verdict


@pytest.mark.few(3)
@pytest.mark.parametrize("wrong, old, new", [
    ("read", "ended.eq(index + 2 == current.beats)", "ended.eq(index + 1 == current.beats)"),
    ("read", "ended.eq(item.beats == 1 if self._least == 1 else 0)", "ended.eq(0)"),
    ("left", "pull.eq(active & (~loaded | payload.i.ready))", "pull.eq(active)"),
    ("left", "loaded_last.eq(ended), beat", "loaded_last.eq(0), beat"),
    ("read", "index.eq(Mux(ended, 0, index + 1))", "index.eq(index + 1)"),
    ("read", "headers.i.ready & (~active | finish)", "headers.i.ready"),
    ("headers", "self.i.ready.eq(headers.i.ready & ", "self.i.ready.eq("),
    ("freed", "self.freed.buffer.eq(current.buffer)", "self.freed.buffer.eq(item.buffer)"),
    ("idle", "self.idle.eq(~active & ~loaded &", "self.idle.eq(~active &"),
], ids=["one-more", "one-beat", "overrun", "never-last", "index-stays", "overwritten",
        "header-lost", "another-freed", "idle-too-soon"])
def test_broken_packet_reader(wrong, old, new):
    verdict = prove(read((old, new)), depth=14)
    assert any(name.startswith((wrong, "left", "read")) for name in verdict.broken), verdict

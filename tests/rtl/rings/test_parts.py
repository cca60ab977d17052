"""Parts of the rings: addresses of slots, packets of one record, and read data."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import data

from rtl.formats import HeaderBeat, Opcode
from rtl.rings.read_answers import ReadAnswers
from rtl.rings.record_writer import RecordWriter
from rtl.rings.slot_address import SlotAddress
from tests.support import made, receiver, sender, simulate


@pytest.mark.parametrize("slot_shift, ring_shift", [(6, 0), (12, 4), (31, 15)])
def test_address_of_a_slot(slot_shift, ring_shift):
    dut, base = made(SlotAddress), 0x7F00_0000_1000

    async def bench(ctx):
        ctx.set(dut.place.base, base)
        ctx.set(dut.place.slot_shift, slot_shift)
        ctx.set(dut.place.ring_shift, ring_shift)
        await ctx.tick()
        assert ctx.get(dut.slots) == 1 << ring_shift
        for number in (0, 1, 15, 16, 0x7FFF, 0x8000, 0xFFFF):
            ctx.set(dut.number, number)
            await ctx.tick().repeat(dut.LATENCY["number", "its address"])
            assert ctx.get(dut.address) == base + ((number % (1 << ring_shift)) << slot_shift)

    simulate(dut, bench)


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_a_packet_for_each_record(stall):
    rng, dut = random.Random(1), made(RecordWriter, 64)
    items = [{"opcode": rng.choice((Opcode.INDEX, Opcode.FLUSH)), "step": rng.getrandbits(16),
              "address": rng.getrandbits(64), "record": rng.getrandbits(64)} for _ in range(30)]
    headers, beats = [], []

    async def settings(ctx):
        ctx.set(dut.credit, 77)

    simulate(dut, settings, sender(dut.i, items, stall=stall),
             receiver(dut.headers, headers, 30, stall=stall),
             receiver(dut.payload, beats, 30, stall=stall, seed=5))
    assert beats == [{"data": item["record"], "last": 1} for item in items]
    assert headers == [{"opcode": item["opcode"], "step": item["step"], "address": item["address"],
                        "count": 1, "credit": 77, "destination": 0, "empty": 0,
                        "final_beat": 0, "answers": 0, "status": 0} for item in items]


@pytest.mark.parametrize("asked, beats, words, what, above", [
    (1, 2, 16, "passed", 0), (0, 2, 16, "bad_data", 0), (1, 1, 8, "short_data", 0),
    (1, 1, 1, "short_data", 0), (1, 3, 24, "short_data", 0), (1, 2, 15, "short_data", 0),
    (1, 2, 16, "bad_data", 1), (1, 2, 16, "bad_data", 128)])
def test_only_what_was_asked_and_is_whole_passes(asked, beats, words, what, above):
    """``above``: bits of the header's field above the tag."""
    dut, seen, out = made(ReadAnswers), {"answered": 0, "short": 0, "landed": 0}, []
    head = HeaderBeat.const({"ember": {"version": 1, "opcode": Opcode.READ_DATA, "count": words,
                                       "acknowledge": above << 16 | 0x1234}}).as_value().value
    items = [{"item": head, "last": 0}, *({"item": k, "last": k == beats - 1}
                                          for k in range(beats))]

    async def watch(ctx):
        ctx.set(dut.read, 1)
        ctx.set(dut.asked, asked)
        ctx.set(dut.length, {"vectors": 9, "beats": 2})
        ctx.set(dut.o.ready, 1)
        for _ in range(20):
            _, _, *events, come, beat = await ctx.tick().sample(
                dut.answered, dut.short, dut.landed, dut.o.valid, dut.o.payload)
            for name, event in zip(seen, events):
                seen[name] += event
            if come:
                out.append(beat.item)
        assert ctx.get(dut.idle) and ctx.get(dut.answered_tag) == 0x1234
        for name in ("bad_data", "short_data"):
            assert ctx.get(dut.counters[name]) == (name == what)

    simulate(dut, watch, sender(dut.i, items))
    passed = what == "passed"
    asked &= above == 0
    assert seen == {"answered": asked, "short": what == "short_data", "landed": passed}
    assert len(out) == (3 if passed else 0)
    if passed:
        header = HeaderBeat.from_bits(out[0]).ember
        assert (header.opcode, header.count) == (Opcode.GPU_VECTORS, 9) and out[1:] == [0, 1]


@pytest.mark.parametrize("gap, stall", [(0.0, 0.0), (0.4, 0.0), (0.0, 0.5), (0.3, 0.3)])
def test_other_packets_pass_by_between_those_that_were_read(gap, stall):
    """Other packets pass in order and unchanged, whatever their length; unrequested data are
    dropped."""
    rng, dut, out = random.Random(7), made(ReadAnswers), []
    items, expected = [], []
    for number in range(60):
        read, tag = rng.random() < 0.5, rng.randrange(4)
        beats = rng.randrange(1, 4) if read else rng.randrange(4)
        head = {"version": 1, "opcode": Opcode.READ_DATA if read else Opcode.QUERIES,
                "count": 8 * beats, "acknowledge": tag}
        body = [number << 8 | k for k in range(beats)]
        packet = [HeaderBeat.const({"ember": head}).as_value().value, *body]
        items += [{"item": beat, "last": k == beats} for k, beat in enumerate(packet)]
        if read and tag == 1 and beats == 2:
            head |= {"opcode": Opcode.GPU_VECTORS, "count": 9}
            packet = [HeaderBeat.const({"ember": head}).as_value().value, *body]
        if not read or (tag == 1 and beats == 2):
            expected += [{"item": beat, "last": k == beats} for k, beat in enumerate(packet)]

    async def slots(ctx):
        ctx.set(dut.length, {"vectors": 9, "beats": 2})
        asked = 0
        while True:
            ctx.set(dut.asked, asked)
            _, _, tag = await ctx.tick().sample(dut.tag)
            asked = tag == 1

    top = Module()
    top.submodules.dut = dut
    top.d.comb += dut.read.eq(
        data.View(HeaderBeat, dut.i.payload.item).ember.opcode == Opcode.READ_DATA)
    cycles = simulate(top, sender(dut.i, items, stall=gap),
                      receiver(dut.o, out, len(expected), stall=stall), background=[slots])
    assert out == expected
    if not (gap or stall):
        assert cycles <= len(items) + 4 * 60 + 2

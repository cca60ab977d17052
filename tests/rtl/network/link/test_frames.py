"""Frame receiver with a reliable link: frames pass once, for any faults of the wire."""

import random
from dataclasses import replace

import pytest

from rtl.formats import Opcode
from rtl.network.frame_check import VERDICTS
from rtl.network.receiver import FrameReceiver
from tests.rtl.network.dirty import simulate
from tests.rtl.network.frames import Frame
from tests.rtl.network.link.arrivals import Peer, ahead
from tests.rtl.network.random_frames import (
    CONFIG,
    NODE,
    NODES,
    broken,
    items_of,
    records_frame,
    set_up,
)
from tests.support import counts_of, made, receiver, sender

EPOCH, SENDERS = 0x81, (0, 1, 3, 4, 5)
SMALL = CONFIG.with_fields(nodes=NODES)


def link_frame(rng, source, **fields):
    return Frame(opcode=Opcode.LINK, source=source, destination=NODE, count=8, epoch=EPOCH,
                 sequence=512 * rng.randrange(1 << 15), acknowledge=rng.getrandbits(24),
                 payload=rng.randbytes(64), **fields)


class Wire:
    """Frames of all peers over a faulty network, and the expected result of each."""

    def __init__(self, seed, framing, frames):
        self.rng = rng = random.Random(seed)
        self.packets, self.passed, self.headers = [], [], []
        self.acknowledged, self.arrived = [], []
        self.counted = dict.fromkeys(("packets", "beats", "overruns", *VERDICTS), 0)
        self.of_link = dict.fromkeys(("duplicates", "outside", "bad_epochs"), 0)
        self.peers = {source: Peer(0) for source in SENDERS}
        late = []
        while len(self.packets) < frames:
            source = rng.choice(SENDERS)
            peer = self.peers[source]
            if rng.random() < 0.1:
                frame = link_frame(rng, source, framing=framing)
            elif late and rng.random() < 0.3:
                frame = late.pop(rng.randrange(len(late)))
            else:
                frame, _ = records_frame(
                    rng, limit=rng.choice((1, 1, 3)), source=source, framing=framing, epoch=EPOCH,
                    sequence=peer.following, acknowledge=rng.getrandbits(24))
                peer.following += 1
            kind = rng.random()
            if kind < 0.15:
                late.append(frame)  # lost, or late
                continue
            if kind < 0.3 and frame.opcode != Opcode.LINK:
                counter, beats = broken(rng, frame)
                self.counted[counter] += 1
                self.packets.append(beats)
                late.append(frame)
                continue
            if kind < 0.35:
                frame = replace(frame, epoch=EPOCH ^ 1 << rng.randrange(8))
            elif kind < 0.4:
                frame = replace(frame, sequence=frame.sequence + 4096 & 0xFFFFFF)
            for _ in range(1 if kind < 0.85 else rng.choice((2, 3))):  # copies, one behind another
                self.send(frame)

    def send(self, frame):
        self.packets.append(frame.beats())
        if frame.epoch != EPOCH:
            self.of_link["bad_epochs"] += 1
            return
        peer = self.peers[frame.source]
        self.acknowledged.append((frame.source, frame.acknowledge))
        if frame.opcode == Opcode.LINK:
            self.arrived.append({"node": frame.source, "first": frame.sequence,
                                 "bits": int.from_bytes(frame.payload, "little")})
        elif ahead(frame.sequence, peer.base) >= 2048:
            self.of_link["outside"] += 1
        elif peer.has_come(frame.sequence):
            self.of_link["duplicates"] += 1
        else:
            peer.admit(frame.sequence, 0)
            self.passed += items_of(frame.beats())
            self.headers.append((frame.source, frame.credit, 0))
            self.counted["packets"] += 1
            self.counted["beats"] += len(frame.payload) // 64


def start(dut):
    """Return a bench that sets the block up and waits until its state is cleared."""
    async def bench(ctx):
        await set_up(dut)(ctx)
        ctx.set(dut.epoch, EPOCH)
        ctx.set(dut.ack_delay, 30)
        await ctx.tick().until(dut.idle)
    return bench


@pytest.mark.few(1)
@pytest.mark.parametrize("framing, gap, stall", [("ethernet", 0.0, 0.0), ("udp", 0.4, 0.2)])
def test_frames_that_are_lost_doubled_and_late(framing, gap, stall):
    wire = Wire(3, framing, 250)
    dut = made(FrameReceiver, SMALL, framing, link=True)
    assert all(wire.of_link.values()) and wire.arrived and sum(wire.counted.values()) > 100
    passed, headers, acknowledged, arrived, links = [], [], [], [], []
    counters, sent = {}, []

    async def feed(ctx):
        await start(dut)(ctx)
        await sender(dut.i, [beat for packet in wire.packets for beat in packet], stall=gap)(ctx)
        sent.append(True)

    async def finish(ctx):
        await ctx.tick()
        while not sent or not ctx.get(dut.idle) or ctx.get(dut.waits):
            await ctx.tick()
        counters.update(counts_of(ctx, dut.counters) | counts_of(ctx, dut.link_counters))

    async def watch(ctx):
        ctx.set(dut.links.ready, 1)
        time = 0
        async for _, _, header, event, valid, link in ctx.tick().sample(
                dut.header, dut.acknowledged, dut.links.valid, dut.links.payload):
            time += 1
            ctx.set(dut.time, time)
            if header.valid:
                headers.append((header.source, header.credit, header.gradient))
            if event.valid:
                acknowledged.append((event.node, event.acknowledge))
            if valid:
                links.append((link.node, link.first, link.bits))

    simulate(dut, feed, finish, receiver(dut.o, passed, len(wire.passed), stall=stall, seed=2),
             receiver(dut.arrived, arrived, len(wire.arrived), stall=stall, seed=4),
             background=[watch])
    assert (passed, headers) == (wire.passed, wire.headers)
    assert (acknowledged, arrived) == (wire.acknowledged, wire.arrived)
    assert counters == counters | wire.counted | wire.of_link | {
        "acknowledgements": len(links), "arrivals_dropped": 0}
    for source, first, bits in links:
        assert all(wire.peers[source].has_come(first + k) for k in range(512) if bits >> k & 1)
    # The last acknowledgement to each peer covers all its packets.
    for source, peer in wire.peers.items():
        last = [bits for node, first, bits in links if (node, first) == (source, 0)][-1]
        assert last == sum(1 << k for k in range(512) if peer.has_come(k))


def test_what_finds_no_room_comes_again():
    """An overrun is not acknowledged and gives no credit; the same packet passes later, once."""
    rng = random.Random(5)
    dut = made(FrameReceiver, SMALL, depth=64, link=True)
    frames = [replace(records_frame(rng)[0], source=1, sequence=k, count=176, epoch=EPOCH,
                      payload=rng.randbytes(64 * 22)) for k in range(8)]
    headers, taken = [], []

    async def bench(ctx):
        ctx.set(dut.o.ready, 0)
        await start(dut)(ctx)
        ctx.set(dut.ack_node, 1)
        for number in range(3):
            await sender(dut.i, [b for f in frames for b in f.beats()])(ctx)
            await ctx.tick().repeat(40)
            admitted = ctx.get(dut.ack_value)
            assert admitted == ctx.get(dut.counters.packets) == len(headers)
            assert ctx.get(dut.counters.overruns) + ctx.get(
                dut.link_counters.duplicates) + admitted == 8 * (number + 1)
            ctx.set(dut.o.ready, 1)
            await ctx.tick().repeat(80)
            ctx.set(dut.o.ready, 0)
            steps.append(admitted)

    async def watch(ctx):
        async for _, _, header, valid, ready, item in ctx.tick().sample(
                dut.header, dut.o.valid, dut.o.ready, dut.o.payload):
            if header.valid:
                headers.append(header.credit)
            if valid and ready:
                taken.append({"item": item.item, "last": item.last})

    steps = []
    simulate(dut, bench, background=[watch])
    assert 0 < steps[0] < steps[1] < steps[2] <= 8
    assert headers == [frame.credit for frame in frames[:steps[2]]]
    assert taken == [item for frame in frames[:steps[2]] for item in items_of(frame.beats())]


def test_no_cycle_later_than_without():
    """Frames back to back leave as early as they do without a link."""
    rng, cycles = random.Random(11), {}
    frames = [replace(records_frame(rng, limit=2)[0], source=1, sequence=k, epoch=EPOCH)
              for k in range(40)]
    for link in (False, True):
        dut = made(FrameReceiver, SMALL, link=link)

        async def bench(ctx, dut=dut, link=link):
            if link:
                await start(dut)(ctx)
            else:
                await set_up(dut)(ctx)
            await sender(dut.i, [b for f in frames for b in f.beats()])(ctx)

        async def watch(ctx, dut=dut, link=link):
            first, times = 0, []
            cycles[link] = times
            ctx.set(dut.o.ready, 1)
            cycle = 0
            async for _, _, entered, valid in ctx.tick().sample(dut.i.valid, dut.o.valid):
                cycle += 1
                first = first or (cycle if entered else 0)
                if valid:
                    times.append(cycle - first)

        simulate(dut, bench, receiver_of(cycles, link, sum(len(f.beats()) for f in frames)),
                 background=[watch])
    assert cycles[True] == cycles[False]


def receiver_of(cycles, link, count):
    """Return a bench that ends when ``count`` beats have left."""
    async def bench(ctx):
        while len(cycles.get(link, ())) < count:
            await ctx.tick()
    return bench


def test_only_for_the_network():
    with pytest.raises(ValueError, match="link must be False with framing host, not True"):
        FrameReceiver(CONFIG, "host", link=True)

"""Frame receiver: valid packets leave whole; foreign, malformed and corrupted ones are counted."""

import random
from dataclasses import replace

import pytest

from rtl.formats import Opcode, Status
from rtl.network.frame_check import VERDICTS
from rtl.network.receiver import FrameReceiver
from tests.rtl.network.bag_frames import BAG_PORTS, bag_frame
from tests.rtl.network.dirty import simulate
from tests.rtl.network.frames import (
    DENSE_VECTORS,
    GPU_VECTORS,
    LOOKUPS,
    QUERIES,
    VECTORS,
    Frame,
    vector_payload,
)
from tests.rtl.network.random_frames import (
    CONFIG,
    broken,
    items_of,
    records_frame,
    set_up,
    vectors_frame,
)
from tests.rtl.network.training_frames import CONFIG as SHORT
from tests.rtl.network.training_frames import PORTS, port_frame
from tests.support import counts_of, made, receiver, sender

LATENCY = FrameReceiver.LATENCY


class Run:
    """Results of a receiver: ``packets`` that leave, in order; the messages ``refused``; events
    ``headers``, and sizes of ``dropped`` packets; ``counters``; ``cycles``."""

    def __init__(self, dut, packets, *, leaving, refusing=0, beats=1, packing=0, gap=0.0,
                 stall=0.0, also=()):
        self.packets, self.refused, self.headers, self.dropped = [], [], [], []
        self.reads = []
        items = [beat for packet in packets for beat in packet]
        sent = []

        async def feed(ctx):
            await set_up(dut, beats, packing)(ctx)
            await sender(dut.i, items, stall=gap)(ctx)
            sent.append(True)

        async def finish(ctx):
            await ctx.tick()
            while not sent or len(self.packets) < leaving or len(self.refused) < refusing or (
                    not ctx.get(dut.idle)):
                await ctx.tick()
            self.counters = counts_of(ctx, dut.counters)

        async def always_ready(ctx):
            async for _, _, ready in ctx.tick().sample(dut.i.ready):
                assert ready

        async def watch(ctx):
            async for _, _, header in ctx.tick().sample(dut.header):
                if header.valid:
                    self.headers.append((header.source, header.credit, header.gradient))

        async def drops(ctx):
            async for _, _, size in ctx.tick().sample(dut.dropped):
                if size:
                    self.dropped.append(size)

        async def read(ctx):
            begins = True
            async for _, _, moves, read, last in ctx.tick().sample(
                    dut.o.valid & dut.o.ready, dut.read, dut.o.payload.last):
                if moves:
                    self.reads += [read] * begins
                    begins = bool(last)

        self.cycles = simulate(
            dut, feed, finish, receiver(dut.o, self.packets, leaving, stall=stall, seed=2),
            *([receiver(dut.refused, self.refused, refusing, stall=stall, seed=4)]
              if hasattr(dut, "refused") else []),
            background=[always_ready, *also, *([watch] if hasattr(dut, "header") else []),
                        *([drops] if hasattr(dut, "dropped") else []),
                        *([read] if hasattr(dut, "read") else [])])


def counts(**values):
    return dict.fromkeys(("packets", "beats", "overruns", *VERDICTS), 0) | values


@pytest.mark.few(2)
@pytest.mark.parametrize("beats,packing,gap,stall,framing", [
    (1, 0, 0.0, 0.0, "ethernet"), (4, 0, 0.0, 0.3, "ethernet"), (1, 2, 0.3, 0.2, "ethernet"),
    (1, 0, 0.3, 0.2, "udp")])
def test_good_frames_between_bad_ones(beats, packing, gap, stall, framing):
    rng = random.Random(beats)
    packets, good, headers, counted = [], [], [], counts()
    for _ in range(100):
        if rng.random() < 0.5:
            frame, _ = records_frame(rng, limit=6, framing=framing)
        else:
            frame, _ = vectors_frame(rng, beats, packing=packing, framing=framing)
        if rng.random() < 0.6:
            counter, packet = broken(rng, frame)
            counted[counter] += 1
        else:
            packet = frame.beats()
            good += items_of(packet)
            counted["packets"] += 1
            counted["beats"] += len(packet) - 1
            headers.append((frame.source, frame.credit, 0))
        packets.append(packet)
    assert framing == "udp" or all(counted[name] for name in VERDICTS)
    run = Run(made(FrameReceiver, CONFIG, framing), packets, leaving=len(good), beats=beats,
              packing=packing, gap=gap, stall=stall)
    assert (run.packets, run.headers, run.counters) == (good, headers, run.counters | counted)


@pytest.mark.few(1)
@pytest.mark.parametrize("gap,stall,packing", [(0.0, 0.0, 0), (0.3, 0.2, 2)])
def test_refused_messages_of_the_host(gap, stall, packing):
    rng = random.Random(int(gap * 10) + packing)
    packets, good, refused, reads, counted = [], [], [], [], counts()
    for _ in range(60):
        opcode = rng.choice([QUERIES, QUERIES, GPU_VECTORS, DENSE_VECTORS, Opcode.READ_DATA])
        if opcode == Opcode.READ_DATA:
            size = rng.choice((1, 1, rng.randrange(2, 41)))
            frame = Frame(opcode=opcode, count=8 * size, step=rng.getrandbits(16), framing="host",
                          payload=rng.randbytes(64 * size), acknowledge=rng.getrandbits(16))
        elif opcode == QUERIES:
            frame, _ = records_frame(rng, QUERIES, 40, framing="host", source=200)
        else:
            frame, _ = vectors_frame(rng, 1, opcode, 40, framing="host", packing=packing)
        if rng.random() < 0.3:
            counter, status, frame = rng.choice([
                ("bad_opcode", Status.OPCODE, replace(frame, opcode=LOOKUPS)),
                ("bad_opcode", Status.OPCODE, replace(frame, version=0)),
                ("bad_length", Status.LENGTH, replace(frame, count=frame.count + 0x100)),
                ("bad_length", Status.LENGTH, replace(frame, payload=frame.payload[:-64])),
                ("bad_length", Status.LENGTH, replace(frame, payload=rng.randbytes(64 * 41))),
                ("bad_length", Status.LENGTH,
                 replace(frame, keep={len(frame.payload) // 64: (1 << 63) - 1})),
                ("errors_mac", Status.TRUNCATED, replace(frame, err=1)),
            ])
            counted[counter] += 1
            refused.append({"status": int(status), "step": frame.step})
        else:
            good += items_of(frame.beats())
            reads.append(opcode == Opcode.READ_DATA)
            counted["packets"] += 1
            counted["beats"] += len(frame.payload) // 64
        packets.append(frame.beats())
    run = Run(made(FrameReceiver, CONFIG, "host"), packets, leaving=len(good),
              refusing=len(refused), packing=packing, gap=gap, stall=stall)
    assert (run.packets, run.refused, run.counters) == (good, refused, run.counters | counted)
    assert run.reads == reads and True in reads


@pytest.mark.parametrize("framing,opcode,vectors", [
    ("ethernet", VECTORS, 22), ("ethernet", VECTORS, 130), ("host", GPU_VECTORS, 39)])
def test_longer_than_configured(framing, opcode, vectors):
    """A packet that is right in itself but longer than this NIC takes; the next one is well."""
    rng = random.Random(vectors)
    content = [(k, rng.randbytes(64)) for k in range(vectors)]
    long = Frame(opcode=opcode, framing=framing, destination=2, count=vectors, step=9,
                 payload=vector_payload(content))
    assert len(long.payload) // 64 > (22 if framing == "ethernet" else 40)
    good = replace(long, count=3, payload=vector_payload(content[:3]))
    wanted = items_of(good.beats()) * 2
    refused = [{"status": int(Status.LENGTH), "step": 9}] * 2 * (framing == "host")
    run = Run(made(FrameReceiver, CONFIG, framing), [long.beats(), good.beats()] * 2,
              leaving=len(wanted), refusing=len(refused))
    assert (run.packets, run.refused) == (wanted, refused)
    assert run.counters == run.counters | counts(packets=2, beats=8, bad_length=2)


def test_frames_back_to_back():
    """No cycle is lost behind the wire."""
    rng = random.Random(11)
    packets = [records_frame(rng)[0].beats() for _ in range(20)]
    good = [item for packet in packets for item in items_of(packet)]
    run = Run(made(FrameReceiver, CONFIG), packets, leaving=len(good))
    assert run.packets == good
    assert run.cycles <= len(good) + max(map(len, packets)) + 12


def test_overrun_drops_whole_packets():
    """The consumer stops time and again, until the FIFO is as full as can be: packets without room
    are counted, and the others whole. The headers of all good ones are told."""
    rng = random.Random(5)
    dut = made(FrameReceiver, CONFIG, depth=64)
    # Between the longest packets, packets of every length.
    groups = [[replace(records_frame(rng)[0], count=8 * beats, payload=rng.randbytes(64 * beats))
               for beats in (22, length, 22, 3, length, 22)] for length in range(1, 23)]
    frames = [frame for group in groups for frame in group]
    bad = replace(frames[0], crc_error=1)
    seen, taken, headers = [], {}, []

    async def bench(ctx):
        await set_up(dut)(ctx)
        for group in groups:
            await sender(dut.i, [b for f in (*group, bad) for b in f.beats()])(ctx)
            await ctx.tick().repeat(10)
            ctx.set(dut.o.ready, 1)
            await ctx.tick().until(dut.idle)
            ctx.set(dut.o.ready, 0)
        taken.update({n: ctx.get(dut.counters[n]) for n in ("packets", "overruns", "bad_crc")})

    async def watch(ctx):
        async for _, _, header, item, valid, ready in ctx.tick().sample(
                dut.header, dut.o.payload, dut.o.valid, dut.o.ready):
            if header.valid:
                headers.append((header.source, header.credit))
            if valid and ready:
                seen.append({"item": item.item, "last": item.last})

    simulate(dut, bench, background=[watch])
    assert taken["packets"] + taken["overruns"] == len(frames)
    assert taken["bad_crc"] == len(groups) and taken["overruns"] >= len(groups)
    # The output is whole packets, in order, each one that was sent.
    position = 0
    for frame in frames:
        want = items_of(frame.beats())
        if seen[position:position + len(want)] == want:
            position += len(want)
    assert position == len(seen) and sum(i["last"] for i in seen) == taken["packets"]
    assert headers == [(frame.source, frame.credit) for frame in frames]


def test_a_message_that_finds_no_room_is_refused():
    """The host sent more than it had credit for: it is told of the first four, all are counted."""
    rng = random.Random(6)
    dut = made(FrameReceiver, CONFIG, "host", depth=88)
    frames = [replace(records_frame(rng, QUERIES, framing="host")[0], step=k, count=320,
                      payload=rng.randbytes(64 * 40)) for k in range(10)]
    refused = []

    async def bench(ctx):
        await set_up(dut)(ctx)
        await sender(dut.i, [b for f in frames for b in f.beats()])(ctx)
        await ctx.tick().repeat(10)
        assert ctx.get(dut.counters.packets) == 2 and ctx.get(dut.counters.overruns) == 8
        await receiver(dut.refused, refused, 4)(ctx)

    simulate(dut, bench)
    assert refused == [{"status": int(Status.CREDIT), "step": k} for k in (2, 3, 4, 5)]


@pytest.mark.parametrize("framing", ["ethernet", "host"])
def test_packets_of_training(framing):
    """Whole where they are accepted, and their headers are told apart; else of a bad opcode."""
    rng = random.Random(1)
    frames = [port_frame(rng, framing, name, 16)[0]
              for name in (*PORTS[framing], "records") for _ in range(4)]
    good = [item for frame in frames for item in items_of(frame.beats())]
    packets = [frame.beats() for frame in frames]
    run = Run(made(FrameReceiver, SHORT, framing, training=True), packets, leaving=len(good))
    assert run.packets == good and run.counters["packets"] == len(frames)
    assert run.headers == [(f.source, f.credit, int(f.opcode != LOOKUPS)) for f in frames] * (
        framing == "ethernet")
    run = Run(made(FrameReceiver, SHORT, framing), packets, leaving=len(good) - sum(
        map(len, packets[:-4])), refusing=(len(frames) - 4) * (framing == "host"))
    assert run.packets == [item for packet in packets[-4:] for item in items_of(packet)]
    assert run.counters["bad_opcode"] == len(frames) - 4 and run.counters["packets"] == 4
    assert not hasattr(made(FrameReceiver, SHORT, framing), "dropped")


@pytest.mark.parametrize("framing", ["ethernet", "host"])
def test_packets_of_bags(framing):
    """Whole where they are accepted, between broken ones; else of a bad opcode. Their headers are
    marked."""
    rng, dut = random.Random(4), made(FrameReceiver, SHORT, framing, bags=True)
    packets, good, marks, refused, counted = [], [], [], [], counts()
    for name in (*BAG_PORTS[framing], "records", "vectors") * 12:
        frame, _ = bag_frame(rng, framing, name, 16, **(
            {"source": 1} if name in BAG_PORTS[framing] else {}))
        if rng.random() < 0.5:
            if framing == "ethernet":
                counter, packet = broken(rng, frame)
            else:
                counter, packet = "bad_length", replace(frame, count=frame.count + 0x100).beats()
                refused.append({"status": int(Status.LENGTH), "step": frame.step})
            counted[counter] += 1
        else:
            packet = frame.beats()
            good += items_of(packet)
            counted["packets"] += 1
            counted["beats"] += len(packet) - 1
            marks.append(int(name in BAG_PORTS[framing]))
        packets.append(packet)
    seen = []

    async def watch(ctx):
        async for _, _, header in ctx.tick().sample(dut.header):
            if header.valid:
                seen.append(header.bag)

    run = Run(dut, packets, leaving=len(good), refusing=len(refused),
              also=[watch] if framing == "ethernet" else [])
    assert (run.packets, run.refused) == (good, refused)
    assert run.counters == run.counters | counted
    assert seen == marks * (framing == "ethernet")
    plain = made(FrameReceiver, SHORT, framing)
    frames = [bag_frame(rng, framing, name, 16)[0] for name in BAG_PORTS[framing]]
    run = Run(plain, [frame.beats() for frame in frames], leaving=0,
              refusing=len(frames) * (framing == "host"))
    assert run.counters == run.counters | counts(bad_opcode=len(frames))
    assert not hasattr(plain, "header") or "bag" not in plain.header.shape().members


def test_sizes_of_dropped_packets_of_gradients():
    """Only of those that are sent against credit of gradients, and are not too long."""
    rng = random.Random(2)
    packets, refused, dropped = [], [], []
    for _ in range(8):
        for name, opcode in PORTS["host"].items():
            frame, _ = port_frame(rng, "host", name, 16)
            frame = replace(frame, **rng.choice([
                {"err": 1}, {"count": 0}, {"payload": rng.randbytes(64 * 13)}]))
            packets.append(frame.beats())
            refused.append(frame.step)
            if opcode in (Opcode.GRADIENTS, Opcode.RETURNED) and len(frame.payload) <= 64 * 12:
                dropped.append(len(frame.payload) // 64)
    run = Run(made(FrameReceiver, SHORT, "host", training=True), packets, leaving=0,
              refusing=len(refused))
    assert [message["step"] for message in run.refused] == refused
    assert run.dropped == dropped and len(dropped) >= 6 and run.counters["packets"] == 0


def test_when_a_header_is_told():
    dut = made(FrameReceiver, CONFIG)
    frame, _ = records_frame(random.Random(3), source=4, credit=77)

    async def bench(ctx):
        await set_up(dut)(ctx)
        await sender(dut.i, frame.beats())(ctx)
        # The last beat was taken at the previous edge.
        await ctx.tick().repeat(LATENCY["last beat of a frame", "its header's event"] - 1)
        header = ctx.get(dut.header)
        assert (header.valid, header.source, header.credit, header.gradient) == (1, 4, 77, 0)
        await ctx.tick()
        assert not ctx.get(dut.header.valid)

    simulate(dut, bench)


def test_arguments_are_checked():
    with pytest.raises(TypeError, match="framing must be a string, not 3"):
        FrameReceiver(CONFIG, 3)
    with pytest.raises(ValueError, match="framing must be ethernet, udp or host, not 'ip'"):
        FrameReceiver(CONFIG, "ip")
    with pytest.raises(ValueError, match="depth must be at least 52, not 51"):
        FrameReceiver(CONFIG, depth=51)
    with pytest.raises(TypeError, match=r"depth must be an integer, not 5\.5$"):
        FrameReceiver(CONFIG, depth=5.5)


@pytest.mark.parametrize("framing", ["ethernet", "udp"])
def test_the_next_packet_is_found_after_half_of_one(framing):
    """The rest of a packet comes first, as after a reset of this node; then one without its end, as
    after a reset of the other one. Each is counted once, with what is joined to it."""
    rng = random.Random(5)
    whole = [vectors_frame(rng, 1, framing=framing)[0] for _ in range(5)]
    rest = whole[0].beats()[1:]
    joined = whole[1].beats()[:-1] + whole[2].beats()
    packets = [rest, whole[3].beats(), joined, whole[4].beats()]
    good = items_of(packets[1]) + items_of(packets[3])
    run = Run(made(FrameReceiver, CONFIG, framing), packets, leaving=len(good))
    assert run.packets == good
    assert run.counters["packets"] == 2
    assert sum(run.counters[name] for name in VERDICTS) == 2


def test_the_rest_of_a_packet_of_the_host_is_counted():
    dut = made(FrameReceiver, SHORT, "host")

    async def cut(ctx):
        before = ctx.get(dut.counters.errors_mac)
        ctx.set(dut.cut, 1)
        await ctx.tick()
        ctx.set(dut.cut, 0)
        await ctx.tick().repeat(2)
        assert ctx.get(dut.counters.errors_mac) == before + 1
        assert ctx.get(dut.idle) and not ctx.get(dut.refused.valid), "nothing is told to the host"

    simulate(dut, cut)

"""Reception: frame receiver and packet parser together, from the wire to the ports of records."""

import random
from dataclasses import replace

import pytest

from rtl.config import beats_of, packing_of
from rtl.formats import Opcode, Status
from rtl.network import FrameReceiver, PacketParser
from tests.rtl.network.dirty import simulate
from tests.rtl.network.frames import VECTORS, Frame, vector_payload
from tests.rtl.network.random_frames import CONFIG as LONG
from tests.rtl.network.random_frames import (
    NODE,
    expected_records,
    expected_vectors,
    records_frame,
    seen_records,
    set_up,
)
from tests.rtl.network.reception import Reception
from tests.rtl.network.training_frames import CONFIG, LIMIT, PORTS, port_frame
from tests.support import made, receiver, sender


class Traffic:
    """Packets of every kind of a framing, and the expected results."""

    def __init__(self, rng, framing, dimension):
        self.rng, self.framing, self.dimension = rng, framing, dimension
        self.packets, self.lost = [], 0
        self.out = {name: [] for name in ("records", "vectors", *PORTS[framing])}
        self.credits, self.gradient_credits, self.refused = [], [], []
        self.dropped = []

    def one(self, name):
        """Return a frame for port ``name`` and its expected output."""
        return port_frame(self.rng, self.framing, name, self.dimension)

    def good(self, name):
        frame, out = self.one(name)
        self.packets.append(frame.beats())
        self.out[name] += out
        (self.gradient_credits if name in PORTS[self.framing] else self.credits).append(
            (frame.source, frame.credit))

    def bad(self, name):
        """Add a frame whose beats do not match its count, or of another framing."""
        frame, _ = self.one(name)
        rng, status = self.rng, Status.LENGTH
        if rng.random() < 0.2:
            other = "host" if self.framing == "ethernet" else "ethernet"
            frame = replace(frame, opcode=rng.choice(list(PORTS[other].values())))
            status = Status.OPCODE
        elif name == "gradients":  # only the records are counted
            frame = replace(frame, count=len(frame.payload) // 8 + rng.randrange(1, 9))
        else:
            frame = replace(frame, payload=rng.choice(
                [frame.payload[:-64], frame.payload + rng.randbytes(64)]))
        self.packets.append(frame.beats())
        self.lost += 1
        if frame.opcode in (Opcode.GRADIENTS, Opcode.RETURNED):
            self.dropped.append(len(frame.payload) // 64)
        self.refused.append({"status": int(status), "step": frame.step})

    def too_long(self, name):
        """Add a frame that is longer than allowed."""
        frame, _ = self.one(name)
        frame = replace(frame, payload=self.rng.randbytes(64 * (LIMIT[self.framing] + 3)))
        self.packets.append(frame.beats())
        self.lost += 1
        self.refused.append({"status": int(Status.LENGTH), "step": frame.step})

    def run(self, *, gap=0.0, stall=0.0):
        """Send all; return the number of cycles."""
        dut, sent, result = made(Reception, CONFIG, self.framing, training=True), [], {}
        seen = {name: [] for name in self.out}
        refused, credits, gradient_credits, dropped = [], [], [], []
        wanted = self.refused if self.framing == "host" else []

        async def feed(ctx):
            await set_up(dut, beats_of(self.dimension), packing_of(self.dimension))(ctx)
            await sender(dut.i, [b for p in self.packets for b in p], stall=gap)(ctx)
            sent.append(True)

        async def finish(ctx):
            await ctx.tick()
            while not sent or any(len(seen[n]) < len(self.out[n]) for n in seen) or (
                    len(refused) < len(wanted)) or not ctx.get(dut.idle):
                await ctx.tick()
            result.update({n: ctx.get(dut.counters[n]) for n in ("packets", "beats", "overruns")})

        async def watch(ctx):
            async for _, _, event, gradient in ctx.tick().sample(dut.credit, dut.gradient_credit):
                for into, one in ((credits, event), (gradient_credits, gradient)):
                    if one.valid:
                        into.append((one.node, one.value))

        async def drops(ctx):
            async for _, _, beats in ctx.tick().sample(dut.dropped):
                if beats:
                    dropped.append(beats)

        cycles = simulate(
            dut, feed, finish,
            *([receiver(dut.refused, refused, len(wanted))] if self.framing == "host" else []),
            *(receiver(getattr(dut, name), seen[name], len(self.out[name]), stall=stall, seed=k)
              for k, name in enumerate(seen)),
            background=[watch if self.framing == "ethernet" else drops], limit=4_000)
        seen["records"] = seen_records(seen["records"])
        assert seen == self.out
        assert refused == wanted
        if self.framing == "host":
            # A packet that is too long is not measured.
            assert dropped == [n for n in self.dropped if 0 < n <= LIMIT["host"]]
        if self.framing == "ethernet":
            assert (credits, gradient_credits) == (self.credits, self.gradient_credits)
        beats = sum(map(len, self.packets)) - len(self.packets)
        assert result["packets"] == len(self.packets) - self.lost and result["overruns"] == 0
        assert result["beats"] == beats or self.lost
        return cycles


@pytest.mark.few(3)
@pytest.mark.parametrize("framing, dimension, gap, stall", [
    ("ethernet", 4, 0.0, 0.2), ("ethernet", 64, 0.4, 0.0), ("host", 8, 0.2, 0.2),
    ("host", 16, 0.0, 0.0), ("host", 32, 0.0, 0.4)])
def test_packets_of_every_kind_between_bad_ones(framing, dimension, gap, stall):
    rng = random.Random(dimension)
    traffic = Traffic(rng, framing, dimension)
    names = list(traffic.out)
    for name in names:
        traffic.bad(name)
        traffic.good(name)
    traffic.too_long(names[-1])
    if framing == "host":
        traffic.too_long("gradients")
    for _ in range(20):
        name = rng.choice(names)
        (traffic.bad if rng.random() < 0.3 else traffic.good)(name)
    traffic.run(gap=gap, stall=stall)


@pytest.mark.parametrize("framing, name, dimension", [
    ("ethernet", "partials", 16), ("host", "returned", 4)])
def test_partials_back_to_back(framing, name, dimension):
    """No cycle is lost behind the wire."""
    rng = random.Random(5)
    traffic = Traffic(rng, framing, dimension)
    for _ in range(12):
        traffic.good(name)
    wire = sum(map(len, traffic.packets))
    assert traffic.run() <= wire + len(traffic.packets[0]) + 16


@pytest.mark.parametrize("packing", [1, 2])
def test_vectors_that_share_beats_cost_no_packet_behind_them(packing):
    """All that may be under way comes at once, and full lookups packets right behind it.

    The records are out as soon as they are read, though the vectors take far longer, and nothing
    is dropped; a FIFO of half the packets would not do for what waits.
    """
    rng = random.Random(packing)
    config = LONG.with_fields(remote_in_flight=256)
    items, vectors, records = [], [], []
    for _ in range(8):
        content = [(rng.getrandbits(16), rng.randbytes(64 >> packing)) for _ in range(32)]
        frame = Frame(opcode=VECTORS, destination=NODE, source=1, count=32,
                      payload=vector_payload(content, rng))
        items += frame.beats()
        vectors += expected_vectors(frame, content)
    for _ in range(12):
        frame, content = records_frame(rng)
        items += frame.beats()
        records += expected_records(frame, content)
    dut, seen, seen_vectors = made(Reception, config, depth=2 * (22 + 4)), [], []

    async def feed(ctx):
        await set_up(dut, 1, packing)(ctx)
        await sender(dut.i, items)(ctx)

    cycles = simulate(
        dut, feed, receiver(dut.records, seen, len(records)),
        receiver(dut.vectors, seen_vectors, len(vectors)), limit=4_000)
    assert seen_records(seen) == records and seen_vectors == vectors
    assert cycles <= max(len(items), 256) + 60


@pytest.mark.parametrize("framing", ["ethernet", "host"])
def test_latency_is_the_sum_of_both(framing):
    """From the last beat of a frame to its first record, as both blocks state it."""
    frame, out = port_frame(random.Random(2), framing, "records", 16)
    dut, times = made(Reception, CONFIG, framing), []

    async def feed(ctx):
        await set_up(dut)(ctx)
        await sender(dut.i, frame.beats())(ctx)

    async def watch(ctx):
        count = 0
        async for _, _, last, valid in ctx.tick().sample(
                dut.i.valid & dut.i.payload.last, dut.records.valid):
            count += 1
            if last or (valid and len(times) == 1):
                times.append(count)

    simulate(dut, feed, receiver(dut.records, [], len(out)), background=[watch], limit=100)
    whole, = {cycles for path, cycles in FrameReceiver.LATENCY.items()
              if path[1] == "its header beat"}
    assert times[1] - times[0] == whole + PacketParser.LATENCY["header beat", "first record"]

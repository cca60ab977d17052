"""Frame parser: packets of training between those of inference, good and bad."""

import random
from dataclasses import replace

import numpy as np
import pytest

from host.wire.gradients import gradient_packets
from host.wire.partials import partial_packets, partials_that_fit
from rtl.config import NicConfig, beats_of, packing_of
from rtl.formats import Opcode, Status
from rtl.network import FrameParser
from tests.rtl.network.dirty import simulate
from tests.rtl.network.frames import GPU_VECTORS, LOOKUPS, QUERIES, VECTORS, Frame
from tests.rtl.network.test_parser import (
    NODE,
    expected_records,
    expected_vectors,
    records_frame,
    set_up,
    vectors_frame,
)
from tests.support import made, receiver, sender

CONFIG = NicConfig(max_dimension=64, net_payload_beats=6, host_payload_beats=12)
LIMIT = {"ethernet": 6, "host": 12}
PORTS = {
    "ethernet": {"partials": Opcode.PARTIALS, "steps": Opcode.STEPS},
    "host": {"gradients": Opcode.GRADIENTS, "returned": Opcode.RETURNED, "states": Opcode.STATES,
             "written": Opcode.WRITTEN}}


def framed(rng, framing, packet, opcode, count):
    """Return a frame with the payload that the host packed."""
    return Frame(opcode=opcode, framing=framing, source=rng.choice([0, 1, 3]), destination=NODE,
                 step=rng.getrandbits(16), credit=rng.getrandbits(16), count=count,
                 payload=packet[1:].tobytes())


def values_frame(rng, framing, opcode, dimension, most=None):
    """Return a frame of partials."""
    width, numbers = min(16, dimension), np.random.default_rng(rng.getrandbits(32))
    count = most or rng.randrange(1, partials_that_fit(LIMIT[framing], width) + 1)
    packet, = partial_packets(
        opcode, numbers.integers(64, size=count), numbers.integers(1 << 36, size=count),
        numbers.integers(beats_of(dimension), size=count),
        numbers.random((count, width), np.float32), node=NODE, step=0,
        payload_beats=LIMIT[framing])
    return framed(rng, framing, packet, opcode, count), -(-count // 8)


def gradients_frame(rng, dimension):
    numbers = np.random.default_rng(rng.getrandbits(32))
    lengths = numbers.integers(1, 9, size=rng.randrange(1, 3))
    packet, = gradient_packets(
        numbers.integers(64, size=lengths.sum()), numbers.integers(1 << 36, size=lengths.sum()),
        lengths, numbers.random((len(lengths), dimension), np.float32), node=NODE, step=0,
        payload_beats=LIMIT["host"])
    count = int(lengths.sum())
    return framed(rng, "host", packet, Opcode.GRADIENTS, count), -(-count // 8)


def expected_beats(frame, record_beats, counted):
    beats = [frame.payload[k:k + 64] for k in range(0, len(frame.payload), 64)]
    left, expected = frame.count, []
    for k, beat in enumerate(beats):
        item = {"data": int.from_bytes(beat, "little"),
                "records": min(8, left) if k < record_beats else 0, "source": frame.source,
                "step": frame.step, "last": int(k == len(beats) - 1)}
        expected.append({"beat": item, "count": left} if counted else item)
        left = max(0, left - 8)
    return expected


class Traffic:
    """Packets of every kind of a framing, and what should come of them."""

    def __init__(self, rng, framing, dimension):
        self.rng, self.framing, self.dimension = rng, framing, dimension
        self.packets, self.lost = [], 0
        self.out = {name: [] for name in ("records", "vectors", *PORTS[framing])}
        self.credits, self.gradient_credits, self.refused = [], [], []
        self.dropped = []

    def one(self, name):
        """Return a frame for port ``name`` and what should leave there."""
        rng, opcode = self.rng, PORTS[self.framing].get(name)
        if name == "gradients":
            frame, record_beats = gradients_frame(rng, self.dimension)
        elif name in ("partials", "returned"):
            frame, record_beats = values_frame(rng, self.framing, opcode, self.dimension)
        elif name == "vectors":
            frame, vectors = vectors_frame(
                rng, beats_of(self.dimension), VECTORS if self.framing == "ethernet" else
                GPU_VECTORS, LIMIT[self.framing], packing=packing_of(self.dimension))
            return replace(frame, framing=self.framing), expected_vectors(vectors)
        else:
            opcode = opcode or (LOOKUPS if self.framing == "ethernet" else QUERIES)
            frame, records = records_frame(rng, opcode, LIMIT[self.framing], framing=self.framing)
            if name == "records":
                return frame, expected_records(frame, records)
            record_beats = len(frame.payload) // 64
        return frame, expected_beats(frame, record_beats, name in ("partials", "returned"))

    def good(self, name):
        frame, out = self.one(name)
        self.packets.append(frame.beats())
        self.out[name] += out
        (self.gradient_credits if name in PORTS[self.framing] else self.credits).append(
            (frame.source, frame.credit))

    def bad(self, name):
        """Add a frame whose beats are not those of its count, or of another framing."""
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
        """Add a frame longer than any may be."""
        frame, _ = self.one(name)
        frame = replace(frame, payload=self.rng.randbytes(64 * (LIMIT[self.framing] + 3)))
        self.packets.append(frame.beats())
        self.lost += 1
        self.refused.append({"status": int(Status.LENGTH), "step": frame.step})

    def run(self, *, gap=0.0, stall=0.0):
        """Send all; return the cycles it takes."""
        dut, sent, result = made(FrameParser, CONFIG, self.framing, training=True), [], {}
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
            dut, feed, finish, receiver(dut.refused, refused, len(wanted)),
            *(receiver(getattr(dut, name), seen[name], len(self.out[name]), stall=stall, seed=k)
              for k, name in enumerate(seen)),
            background=[watch if self.framing == "ethernet" else drops], limit=4_000)
        for beats in [seen["records"]]:
            beats[:] = [{"beat": tuple(i["data"] >> 64 * k & (1 << 64) - 1
                                       for k in range(i["records"])),
                         "source": i["source"], "step": i["step"], "last": i["last"]}
                        for i in beats]
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
def test_packets_of_training_between_others(framing, dimension, gap, stall):
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


@pytest.mark.parametrize("framing", ["ethernet", "host"])
def test_without_training_its_packets_are_refused(framing):
    rng = random.Random(1)
    traffic = Traffic(rng, framing, 16)
    frames = [traffic.one(name)[0] for name in PORTS[framing]]
    dut = made(FrameParser, CONFIG, framing)

    async def feed(ctx):
        await set_up(dut, 1)(ctx)
        await sender(dut.i, [beat for frame in frames for beat in frame.beats()])(ctx)
        await ctx.tick().repeat(8)
        assert ctx.get(dut.counters.bad_opcode) == len(frames)
        assert ctx.get(dut.counters.packets) == 0

    simulate(dut, feed)
    assert not any(hasattr(dut, name) for name in (*PORTS[framing], "gradient_credit"))

"""Bags and their vectors, from the packagers of one node through frames to the ports of another."""

import random

import pytest
from amaranth.hdl import Elaboratable, Module
from amaranth.lib import wiring

from rtl.bags.packager import BagPackager
from rtl.config import NicConfig
from rtl.formats import Opcode
from rtl.network import FrameAssembler, PacketMux, VectorPackager
from tests.rtl.bags.words import bag, bags_of, outgoing
from tests.rtl.network.dirty import simulate
from tests.rtl.network.packing import credit_of, follow_time
from tests.rtl.network.reception import Reception
from tests.support import made, receiver, sender

CONFIG = NicConfig(nodes=4, max_dimension=32, owner_bags=64)
SENDER, RECEIVER = 3, 1


class Wire(Elaboratable):
    """Two packagers, a multiplexer and an assembler at one end; reception at the other.

    For any destination of the packagers, the wire ends at ``RECEIVER``.
    """

    def __init__(self):
        self.bags = BagPackager(4, CONFIG.net_payload_beats, Opcode.BAGS, True)
        self.vectors = VectorPackager(CONFIG, opcode=Opcode.BAG_VECTORS, sized=True)
        self.mux = PacketMux(2)
        self.assembler = FrameAssembler(CONFIG)
        self.reception = Reception(CONFIG, bags=True)

    def elaborate(self, platform):
        m = Module()
        for name in ("bags", "vectors", "mux", "assembler", "reception"):
            m.submodules[name] = getattr(self, name)
        for port, packager in enumerate((self.bags, self.vectors)):
            wiring.connect(m, packager.headers, self.mux.headers[port])
            wiring.connect(m, packager.payload, self.mux.payload[port])
            m.d.comb += [packager.timeout.eq(50), packager.credit.eq(credit_of(RECEIVER))]
        wiring.connect(m, self.mux.header_out, self.assembler.headers)
        wiring.connect(m, self.mux.payload_out, self.assembler.payload)
        wiring.connect(m, self.assembler.o, self.reception.i)
        m.d.comb += [
            self.vectors.time.eq(self.bags.time), self.bags.window.eq(0x4000),
            self.assembler.node.eq(SENDER), self.reception.node.eq(RECEIVER),
            self.reception.nodes.eq(4), self.reception.vector_beats.eq(2),
        ]
        for end in (self.assembler, self.reception):
            m.d.comb += [end.mac_base.eq(0x02454D420000), end.ip_base.eq(0x0A450000),
                         end.udp_port.eq(0x4853)]
        return m


@pytest.mark.few(1, "thorough")
@pytest.mark.parametrize("gap, stall", [(0.0, 0.0), (0.4, 0.3)])
def test_all_bags_and_vectors_arrive(gap, stall):
    rng, wire = random.Random(int(gap * 10)), made(Wire)
    bags = [(bag(rng, rng.choice([1, 2, 7, 16, 40, 100, 350]), query=False,
                 wide=rng.random() < 0.1, weighted=rng.random() < 0.3), k // 20) for k in range(60)]
    bags = [(words, step) for words, step in bags if len(words) <= 176]
    vectors = [(rng.getrandbits(16), [rng.getrandbits(512) for _ in range(1 + (k // 5 % 3 > 0))])
               for k in range(90)]
    beats, seen_vectors, credits = [], [], {"credit": [], "bag_credit": []}

    async def watch(ctx):
        async for _, _, *events in ctx.tick().sample(
                *(getattr(wire.reception, name) for name in credits)):
            for name, event in zip(credits, events, strict=True):
                if event.valid:
                    credits[name].append((event.node, event.value))

    async def all_bags(ctx):
        while sum(beat["records"] for beat in beats) < sum(len(words) for words, _ in bags):
            await ctx.tick()

    simulate(
        wire, all_bags,
        sender(wire.bags.i, [item for words, step in bags
                             for item in outgoing(rng, words, RECEIVER, step)], stall=gap),
        sender(wire.vectors.i, [
            {"data": each, "tag": {"landing": landing, "node": RECEIVER, "step": 5},
             "last": int(k == len(data) - 1), "final_beat": len(data) - 1}
            for landing, data in vectors for k, each in enumerate(data)], stall=gap),
        receiver(wire.reception.bag_vectors, seen_vectors, sum(
            len(data) for _, data in vectors), stall=stall),
        background=[watch, follow_time(wire.bags),
                    receiver(wire.reception.bags, beats, 1 << 30, stall=stall)], limit=20_000)
    packets, words = [], []
    for beat in beats:
        assert beat["source"] == SENDER
        words += [beat["data"] >> 64 * k & (1 << 64) - 1 for k in range(beat["records"])]
        if beat["last"]:
            packets.append((beat["step"], bags_of(words)))
            words = []
    assert not words
    assert [(content, step) for step, bags in packets for content in bags] == bags
    assert seen_vectors == [
        {"tag": landing, "data": each, "last": int(k == len(data) - 1), "lost": 0,
         "source": SENDER} for landing, data in vectors for k, each in enumerate(data)]
    assert not credits["credit"] and set(credits["bag_credit"]) == {(SENDER, credit_of(RECEIVER))}
    assert len(credits["bag_credit"]) == len(packets) + 12  # each packet has vectors of one size

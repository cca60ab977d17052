"""From the packagers of one node through wire format to the receiving blocks of another."""

import random

import pytest
from amaranth.hdl import Elaboratable, Module
from amaranth.lib import wiring

from rtl.config import NicConfig
from rtl.formats import Opcode
from rtl.network import (
    FrameAssembler,
    LookupReceiver,
    PacketMux,
    RecordPackager,
    VectorPackager,
)
from tests.rtl.network.dirty import simulate
from tests.rtl.network.packing import credit_of, follow_time
from tests.rtl.network.reception import Reception
from tests.support import made, receiver, sender

CONFIG = NicConfig(nodes=4, max_dimension=32, lookup_beats=64)
SENDER, RECEIVER = 3, 1


class Wire(Elaboratable):
    """Two packagers, a multiplexer and an assembler at one end; reception and lookups at the other.

    For any destination of the packagers, the wire ends at ``RECEIVER``.
    """

    def __init__(self):
        self.records = RecordPackager(4, CONFIG.net_payload_beats, Opcode.LOOKUPS, True)
        self.vectors = VectorPackager(CONFIG)
        self.mux = PacketMux(2)
        self.assembler = FrameAssembler(CONFIG)
        self.reception = Reception(CONFIG)
        self.lookups = LookupReceiver(CONFIG)

    def elaborate(self, platform):
        m = Module()
        for name in ("records", "vectors", "mux", "assembler", "reception", "lookups"):
            m.submodules[name] = getattr(self, name)
        for port, packager in enumerate((self.records, self.vectors)):
            wiring.connect(m, packager.headers, self.mux.headers[port])
            wiring.connect(m, packager.payload, self.mux.payload[port])
            m.d.comb += [packager.time.eq(self.records.time) if port else packager.batch.eq(999),
                         packager.timeout.eq(50), packager.credit.eq(credit_of(RECEIVER))]
        wiring.connect(m, self.mux.header_out, self.assembler.headers)
        wiring.connect(m, self.mux.payload_out, self.assembler.payload)
        wiring.connect(m, self.assembler.o, self.reception.i)
        wiring.connect(m, self.reception.records, self.lookups.i)
        m.d.comb += [
            self.assembler.node.eq(SENDER), self.reception.node.eq(RECEIVER),
            self.reception.nodes.eq(4), self.vectors.vector_beats.eq(2),
            self.reception.vector_beats.eq(2),
            self.records.window.eq(30), self.lookups.share.eq(32),
        ]
        for end in (self.assembler, self.reception):
            m.d.comb += [end.mac_base.eq(0x02454D420000), end.ip_base.eq(0x0A450000),
                         end.udp_port.eq(0x4853)]
        return m


@pytest.mark.few(1, "thorough")
@pytest.mark.parametrize("gap,stall", [(0.0, 0.0), (0.4, 0.2)])
def test_all_arrives(gap, stall):
    rng = random.Random(int(gap * 10))
    wire = made(Wire)
    records = [(rng.getrandbits(64), k // 40) for k in range(200)]
    vectors = [(rng.getrandbits(16), rng.getrandbits(512), rng.getrandbits(512))
               for _ in range(60)]
    seen, seen_vectors, credits = [], [], []

    async def watch(ctx):
        async for _, _, event in ctx.tick().sample(wire.reception.credit):
            if event.valid:
                credits.append((event.node, event.value))

    simulate(
        wire,
        sender(wire.records.i, [{"destination": RECEIVER, "step": s, "record": r}
                                for r, s in records], stall=gap),
        sender(wire.vectors.i, [
            {"data": v[k], "tag": {"landing": v[0], "node": RECEIVER, "step": 5},
             "last": k - 1} for v in vectors for k in (1, 2)], stall=gap),
        receiver(wire.lookups.o, seen, len(records), stall=stall),
        receiver(wire.reception.vectors, seen_vectors, 2 * len(vectors)),
        background=[watch, follow_time(wire.records)])
    assert [(i["request"]["key"]["row"] | i["request"]["key"]["table"] << 36
             | i["request"]["landing"] << 48, i["request"]["step"]) for i in seen] == records
    assert {i["request"]["node"] for i in seen} == {SENDER}
    assert seen_vectors == [{"tag": v[0], "data": v[k], "last": k - 1, "lost": 0,
                             "source": SENDER} for v in vectors for k in (1, 2)]
    assert len(credits) >= 5 + 6 and set(credits) == {(SENDER, credit_of(RECEIVER))}

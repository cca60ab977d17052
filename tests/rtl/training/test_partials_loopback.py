"""From the packagers of one node through wire format to the counts of another."""

import random

import pytest
from amaranth.hdl import Elaboratable, Module
from amaranth.lib import wiring

from rtl.config import NicConfig, beats_of, packing_of
from rtl.formats import Opcode, StepKind
from rtl.gradient import PartialReceiver
from rtl.network import (
    CreditCounter,
    FrameAssembler,
    PacketMux,
    PartialPackager,
    RecordPackager,
)
from rtl.training import StepCounter
from tests.rtl.descriptors import Table, descriptor_writer
from tests.rtl.network.dirty import simulate
from tests.rtl.network.packing import follow_time
from tests.rtl.network.reception import Reception
from tests.support import receiver, sender

CONFIG = NicConfig(nodes=2, tables=4, max_dimension=32, net_payload_beats=6, partial_beats=32,
                   training=True)
SENDER, RECEIVER = 0, 1
TABLES = {0: Table(rows=50, owner=RECEIVER), 2: Table(rows=1 << 35, owner=RECEIVER)}
WINDOW, SHARE = 14, 16


class Wire(Elaboratable):
    """Packagers of partials and of step records at one end; receiver and counter at the other.

    Credits of the receiver reach the sender at once.
    """

    def __init__(self, dimension: int):
        self.partials = PartialPackager(2, CONFIG.net_payload_beats, Opcode.PARTIALS, True)
        self.steps = RecordPackager(2, CONFIG.net_payload_beats, Opcode.STEPS, False)
        self.mux = PacketMux(2)
        self.assembler = FrameAssembler(CONFIG)
        self.reception = Reception(CONFIG, training=True)
        self.receiver = PartialReceiver(CONFIG)
        self.counter = StepCounter(2)
        self.credits = CreditCounter(2, 1, several=True)
        self._dimension = dimension

    def elaborate(self, platform):
        m = Module()
        for name in ("partials", "steps", "mux", "assembler", "reception", "receiver", "counter",
                     "credits"):
            m.submodules[name] = getattr(self, name)
        for port, packager in enumerate((self.partials, self.steps)):
            wiring.connect(m, packager.headers, self.mux.headers[port])
            wiring.connect(m, packager.payload, self.mux.payload[port])
            m.d.comb += [packager.timeout.eq(30), packager.credit.eq(7 + port)]
        wiring.connect(m, self.mux.header_out, self.assembler.headers)
        wiring.connect(m, self.mux.payload_out, self.assembler.payload)
        wiring.connect(m, self.assembler.o, self.reception.i)
        wiring.connect(m, self.reception.partials, self.receiver.i)
        wiring.connect(m, self.reception.steps, self.counter.steps)
        credit = self.partials.credit_in
        m.d.sync += credit.valid.eq(self.receiver.freed.valid)
        m.d.comb += [
            self.steps.batch.eq(1), self.steps.time.eq(self.partials.time),
            self.partials.window.eq(WINDOW), self.receiver.share.eq(SHARE),
            self.credits.freed.eq(self.receiver.freed), self.credits.node[0].eq(SENDER),
            credit.node.eq(RECEIVER), credit.value.eq(self.credits.value[0]),
            self.assembler.node.eq(SENDER), self.reception.node.eq(RECEIVER),
            self.reception.nodes.eq(2),
            self.counter.node.eq(RECEIVER), self.counter.nodes.eq(2),
            self.counter.arrived.eq(self.receiver.arrived),
            self.counter.busy.eq(self.receiver.pending),
            self.receiver.open.eq(self.counter.open),
            self.receiver.open_step.eq(self.counter.open_step),
            *(block.vector_packing.eq(packing_of(self._dimension))
              for block in (self.partials, self.reception, self.receiver)),
            *(block.vector_beats.eq(beats_of(self._dimension))
              for block in (self.reception, self.receiver)),
        ]
        for end in (self.assembler, self.reception):
            m.d.comb += [end.mac_base.eq(0x02454D420000), end.ip_base.eq(0x0A450000),
                         end.udp_port.eq(0x4853)]
        return m


@pytest.mark.thorough
@pytest.mark.few(1)
@pytest.mark.parametrize("dimension, stalls", [(4, (0.0, 0.3)), (32, (0.2, 0.0))])
def test_steps_of_partials_arrive_whole(dimension, stalls):
    rng = random.Random(dimension)
    wire, seen, complete, credits = Wire(dimension), [], [], set()
    lanes = min(16, dimension)
    steps = [[{
        "destination": RECEIVER, "step": step, "data": rng.getrandbits(32 * lanes),
        "record": {"row": rng.randrange(50), "table": rng.choice([0, 2]),
                   "beat": rng.randrange(beats_of(dimension))}}
        for _ in range(count)] for step, count in enumerate((40, 0, 33))]

    def end(step):
        """Return an END of the step."""
        return {"destination": RECEIVER, "step": step,
                "record": len(steps[step]) | StepKind.END << 32}

    async def feed(ctx):
        for step, items in enumerate(steps):
            await ctx.tick().until(wire.counter.open)
            # The END may arrive before partials, or after them.
            before = rng.random() < 0.5
            await sender(wire.counter.own_end, [{"step": step, "count": 0}])(ctx)
            if before:
                await sender(wire.steps.i, [end(step)])(ctx)
            await sender(wire.partials.i, items, stall=stalls[0])(ctx)
            if not before:
                await sender(wire.steps.i, [end(step)])(ctx)
            await receiver(wire.counter.complete, complete, step + 1)(ctx)
            assert complete == list(range(step + 1))
            assert len(seen) == sum(map(len, steps[:step + 1]))
        await ctx.tick().repeat(5)
        for block in (wire.reception, wire.receiver, wire.counter):
            assert ctx.get(block.idle)
        dropped = ctx.get(wire.receiver.counters)
        assert all(dropped[name] == 0 for name in (
            "over_credit", "bad_step", "bad_beat", "bad_table", "bad_row", "bad_owner"))
        assert ctx.get(wire.counter.counters.bad_steps) == 0

    async def watch(ctx):
        async for _, _, event, lookups in ctx.tick().sample(
                wire.reception.gradient_credit, wire.reception.credit.valid):
            assert not lookups
            if event.valid:
                credits.add((event.node, event.value))

    simulate(
        wire, descriptor_writer(wire.receiver, TABLES, RECEIVER, 2, then=feed),
        receiver(wire.receiver.o, seen, sum(map(len, steps)), stall=stalls[1]),
        background=[watch, follow_time(wire.partials)], limit=3_000)
    assert seen == [{
        "beat": {"key": {n: item["record"][n] for n in ("row", "table")},
                 "beat": item["record"]["beat"], "step": item["step"], "data": item["data"]},
        "source": SENDER, "level": 1} for items in steps for item in items]
    assert credits == {(SENDER, 7), (SENDER, 8)}

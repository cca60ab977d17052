"""Blocks of the NIC side by side in one design: beats and cycles are equal on all engines."""

import random
from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.cache.fills import FillBeat
from rtl.config import preset
from rtl.dedupe import DedupeTable
from rtl.float import FLOAT_ADDER_LATENCY, FloatAdder
from rtl.formats import Beat, Opcode, OutgoingRecord, Request
from rtl.gateable import Gateable
from rtl.network import RecordPackager
from rtl.shared import Shared
from rtl.stream import Arbiter, PacketFIFO, SkidBuffer, StreamFIFO, packet_layout
from sim.engines import ENGINES, load, units
from tests.rtl.network import frames
from tests.rtl.network.random_frames import broken, records_frame, vectors_frame
from tests.rtl.network.reception import Reception

CONFIG = replace(preset("tiny"), max_dimension=16, dedupe_keys=16, dedupe_ways=2,
                 dedupe_in_flight=4, scatter_entries=16)
NODE, NODES = 2, 6
ITEM = packet_layout(40)
OPERANDS = data.StructLayout({"a": data.ArrayLayout(32, 2), "b": data.ArrayLayout(32, 2),
                              "keep": 1})
QUANTUM, CYCLES = 32, 1664


class Adders(wiring.Component):
    """Two instances of one shared unit after a stream: as many sums as the FIFO holds."""

    i: In(stream.Signature(OPERANDS))
    o: Out(stream.Signature(64))

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = StreamFIFO(64, 8)
        wiring.connect(m, fifo.o, wiring.flipped(self.o))
        coming = Signal(FLOAT_ADDER_LATENCY)
        started = Signal()
        m.d.comb += [
            self.i.ready.eq(fifo.level + sum(coming) < 8),
            started.eq(self.i.valid & self.i.ready), fifo.i.valid.eq(coming[-1])]
        m.d.sync += coming.eq(Cat(started, coming))
        for lane in range(2):
            m.submodules[f"lane{lane}"] = adder = Shared(FloatAdder(), "float_adder")
            m.d.comb += [adder.a.eq(self.i.payload.a[lane]), adder.b.eq(self.i.payload.b[lane]),
                         adder.keep.eq(self.i.payload.keep),
                         fifo.i.payload[32 * lane:32 * lane + 32].eq(adder.o)]
        return m


def gateable(kind):
    """Return the block class ``kind``, marked as gateable."""
    return type(kind.__name__, (Gateable, kind), {})


class Blocks(wiring.Component):
    """All blocks, each with its own ports, under its name."""

    def __init__(self):
        self._blocks = {
            "adders": Adders(), "arbiter": Arbiter(40, 3), "packets": gateable(PacketFIFO)(40, 6),
            "skid": gateable(SkidBuffer)(65), "dedupe": DedupeTable(CONFIG),
            "reception": gateable(Reception)(CONFIG, depth=60),
            "packager": RecordPackager(3, 2, Opcode.LOOKUPS, False),
        }
        super().__init__({name: Out(block.signature) for name, block in self._blocks.items()})

    def elaborate(self, platform):
        m = Module()
        for name, block in self._blocks.items():
            m.submodules[name] = block
            # `connect` cannot flip an array of ports that is a member of a member.
            outer = block.signature.flatten(getattr(self, name))
            for (_path, member, own), (*_, port) in zip(block.signature.flatten(block), outer):
                own, port = Value.cast(own), Value.cast(port)
                m.d.comb += own.eq(port) if member.flow == In else port.eq(own)
        return m


def beats_of(shape, values):
    """Return beats of ``values``, each valid for a constant of ``shape``."""
    words = max(1, -(-shape.size // 32))
    raw = b"".join(Const.cast(shape.const(value)).value.to_bytes(4 * words, "little")
                   for value in values)
    return np.frombuffer(raw, "<u4").reshape(-1, words)


def numbers(rng, width, count):
    words = -(-width // 32)
    raw = b"".join(rng.getrandbits(width).to_bytes(4 * words, "little") for _ in range(count))
    return np.frombuffer(raw, "<u4").reshape(-1, words)


def operand(rng):
    """Return floats of all kinds, often of similar magnitude, to make sums cancel and round."""
    return rng.choice([rng.getrandbits(32), rng.getrandbits(24), 0x7F800000, 0x80000000,
                       0x3F800000 | rng.getrandbits(23) | rng.getrandbits(1) << 31])


def traffic(rng):
    """Return the beats of each input stream."""
    packets = [{"item": rng.getrandbits(40), "last": rng.random() < 0.3,
                "drop": rng.random() < 0.3} for _ in range(300)]
    requests = [{"key": {"row": rng.randrange(24), "table": rng.randrange(2)},
                 "landing": rng.getrandbits(12), "node": rng.randrange(4), "step": step // 30}
                for step in range(120)]
    records = [{"destination": rng.randrange(3), "step": step // 100,
                "record": rng.getrandbits(64)} for step in range(400)]
    wire = []
    for _ in range(40):
        frame, _content = rng.choice([records_frame, vectors_frame])(rng, limit=8)
        wire += frame.beats() if rng.random() < 0.6 else broken(rng, frame)[1]
    return {
        "adders__i": beats_of(OPERANDS, [
            {"a": [operand(rng), operand(rng)], "b": [operand(rng), operand(rng)],
             "keep": rng.random() < 0.1} for _ in range(400)]),
        **{f"arbiter__i__{k}": numbers(rng, 40, 150) for k in range(3)},
        "packets__i": beats_of(ITEM, packets), "skid__i": numbers(rng, 65, 400),
        "dedupe__requests": beats_of(Request, requests), "reception__i": beats_of(Beat, wire),
        "packager__i": beats_of(OutgoingRecord, records),
    }


def run(engine, seed, stall):
    """Drive all blocks at random; return every beat, cycle and value of the outputs."""
    rng = random.Random(seed)
    for name, value in (
            ("dedupe__enable", 1), ("dedupe__vector_beats", 1), ("reception__node", NODE),
            ("reception__nodes", NODES), ("reception__mac_base", frames.MAC_BASE),
            ("reception__ip_base", frames.IP_BASE), ("reception__udp_port", frames.PORT),
            ("reception__vector_beats", 1), ("packager__batch", 9), ("packager__timeout", 70)):
        engine.set_signal(name, value)
    for number, port in enumerate(engine.design.streams):
        if port != "reception__i":  # never stalled, like beats from a network
            engine.set_stall(port, seed + number, stall)
    for port, beats in traffic(rng).items():
        start = 100 if port == "dedupe__requests" else 8  # after its sweep
        engine.push(port, beats, np.sort(np.array(
            [start + rng.randrange(CYCLES - 300) for _ in beats], dtype=np.uint64)))
    seen, values = {port.name: [] for port in engine.design.outputs}, []
    outputs = [name for name, port in engine.design.signals.items() if not port.is_input]
    for until in range(QUANTUM, CYCLES + 1, QUANTUM):
        engine.set_signal("packager__time", until)
        engine.run(until)
        for port in seen:
            beats, cycles = engine.pop(port)
            seen[port] += zip(cycles.tolist(), beats.tolist())
            if port == "dedupe__misses" and len(beats) and until < CYCLES:  # later is never
                answers = [{"id": int(row[1] >> 16), "data": rng.getrandbits(512), "last": 1}
                           for row in beats]
                engine.push("dedupe__fills", beats_of(FillBeat, answers), until + 4)
        values.append({name: engine.get_signal(name) for name in outputs})
    return seen, values, {port.name: engine.waiting(port.name) for port in engine.design.inputs}


@pytest.fixture(scope="module")
def models():
    # Verilator shares the code of the two adders, as in designs with many.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(units, "MANY", 2)
        patch.setattr(units, "LEAST_BYTES", 0)
        return {name: load(Blocks(), "blocks", name) for name in ENGINES}


@pytest.mark.slow
@pytest.mark.parametrize("stall", [pytest.param(0.0, marks=pytest.mark.slow), 0.4])
def test_blocks_agree(models, stall):
    runs = {name: run(model.instance(), 7, stall) for name, model in models.items()}
    seen, values, waiting = runs["pysim"]
    for name, (other, other_values, other_waiting) in runs.items():
        for port in seen:
            assert other[port] == seen[port], (name, port)
        assert other_values == values, name
        assert other_waiting == waiting, name
    # The comparison has little value unless every stream has moved.
    assert not [port for port, beats in seen.items() if len(beats) < 20]
    assert {port: count for port, count in waiting.items() if count} == {}

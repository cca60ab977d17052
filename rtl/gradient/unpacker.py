"""Gradient unpacker: buffers gradients that the host sends ahead, records apart from vectors."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import NicConfig
from rtl.formats import CREDIT_BITS, STEP_BITS, RawBeat, RecordBeat
from rtl.gradient.bags import GradientItem
from rtl.monitor.counters import CounterLayout, count
from rtl.network.record_split import RecordSplit, records_layout
from rtl.stream import Level, StreamFIFO

__all__ = ["GRADIENT_UNPACKER_COUNTERS", "GradientUnpacker"]

GRADIENT_UNPACKER_COUNTERS = CounterLayout("over_credit")


class GradientUnpacker(wiring.Component):
    """Buffer the packets that the host sends against credits; output their records one by one.

    Records and vectors wait separately, so records and vectors of different packets move at the
    same time. A packet is admitted only with room for the largest one; otherwise it was sent
    without credit. It is then dropped whole and counted, and a ``bare`` item reports it, unless
    ``depth`` packets wait already. The order of packets is kept.

    Parameters
    ----------
    config: sizes; a packet has at most ``host_payload_beats`` beats, which the parser checks.
    depth: beats of each buffer; the host may send :attr:`credits` ahead.

    Ports
    -----
    i: stream of :data:`rtl.formats.RecordBeat`, all payload beats: records, then vectors, whose
        ``records`` is 0; ``last`` marks the end of the packet. Always ready.
    items: stream of :data:`~rtl.gradient.bags.GradientItem`, of complete packets.
    vectors: stream of :data:`rtl.formats.RawBeat`, beats of vectors as received; ``last`` marks the
        end of the packet.
    consumed: beats that left the buffers or were dropped, modulo 2^16; the host's credit.
    counters: ``over_credit``, packets that were dropped.
    idle: empty except for beats of a packet that is still arriving.

    Raises ``TypeError`` or ``ValueError`` for a parameter of the wrong type or size.
    """

    LATENCY = {("last beat of a packet", "its first record"): 3}
    RATE = (
        "1 beat per cycle in, 1 record and 1 beat of vectors per cycle out, and a cycle for "
        "each packet without a record")

    def __init__(self, config: NicConfig, *, depth: int = 512):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        if isinstance(depth, bool) or not isinstance(depth, int):
            raise TypeError(f"depth must be an integer, not {depth!r}")
        self._longest, self._depth = config.host_payload_beats, depth
        if depth < 2 * self._longest + 2:
            raise ValueError(f"depth must be at least {2 * self._longest + 2}, not {depth!r}")
        super().__init__({
            "i": In(stream.Signature(RecordBeat)),
            "items": Out(stream.Signature(GradientItem)),
            "vectors": Out(stream.Signature(RawBeat)),
            "consumed": Out(CREDIT_BITS),
            "counters": Out(GRADIENT_UNPACKER_COUNTERS), "idle": Out(1),
        })

    @property
    def credits(self) -> int:
        """Beats that the host may have sent ahead of ``consumed``."""
        # The admission check is two cycles old; two more beats may have arrived.
        return self._depth - self._longest - 2

    def elaborate(self, platform) -> Module:
        m = Module()
        record_count, vector_count = (Signal(range(self._longest + 1)) for _ in range(2))
        packet = data.StructLayout({
            "record_beats": len(record_count), "vector_beats": len(vector_count),
            "step": STEP_BITS, "lost": 1})
        m.submodules.records = records = StreamFIFO(records_layout(0), self._depth)
        m.submodules.vectors = vectors = StreamFIFO(RawBeat, self._depth)
        m.submodules.packets = packets = StreamFIFO(packet, self._depth)
        wiring.connect(m, vectors.o, wiring.flipped(self.vectors))

        # Input: admit a packet whole or not at all.
        first, room, admitted, admit = Signal(init=1), Signal(init=1), Signal(), Signal()
        beat, of_records = self.i.payload, Signal()
        arrived = packets.i.payload
        m.d.comb += [
            self.i.ready.eq(1), of_records.eq(beat.records != 0),
            admit.eq((first & room) | (~first & admitted)),
            records.i.valid.eq(self.i.valid & admit & of_records),
            records.i.payload.data.eq(beat.data), records.i.payload.records.eq(beat.records),
            vectors.i.valid.eq(self.i.valid & admit & ~of_records),
            vectors.i.payload.data.eq(beat.data), vectors.i.payload.last.eq(beat.last),
            packets.i.valid.eq(self.i.valid & beat.last),
            arrived.record_beats.eq(record_count + records.i.valid),
            arrived.vector_beats.eq(vector_count + vectors.i.valid),
            arrived.step.eq(beat.step), arrived.lost.eq(~admit),
        ]
        # Arrivals and departures are late signals, counted one cycle later. A beat leaves only
        # after it was counted.
        full = []
        for name, queue in (("records", records), ("vectors", vectors), ("packets", packets)):
            m.submodules[f"{name}_here"] = here = Level(self._depth + 1)
            m.d.sync += [here.up.eq(queue.i.valid & queue.i.ready),
                         here.down.eq(queue.o.valid & queue.o.ready)]
            full.append(here.level > self.credits)
        m.d.sync += room.eq(~Cat(full).any())
        with m.If(self.i.valid):
            m.d.sync += [
                first.eq(beat.last), admitted.eq(admit),
                record_count.eq(arrived.record_beats), vector_count.eq(arrived.vector_beats),
            ]
            with m.If(beat.last):
                m.d.sync += [record_count.eq(0), vector_count.eq(0)]

        count(m, self.counters, over_credit=packets.i.valid & ~admit)
        leaving, serialising = self._serialise(m, packets.o, records.o)
        gone = Signal(2)
        m.d.sync += [
            gone.eq(leaving + (vectors.o.valid & vectors.o.ready) + (self.i.valid & ~admit)),
            self.consumed.eq(self.consumed + gone),
        ]
        m.d.comb += self.idle.eq(packets.idle & ~serialising & ~gone.any())
        return m

    def _serialise(self, m: Module, packets, records) -> tuple[Value, Value]:
        """Output the records of complete packets; return whether a beat of them leaves, and whether
        any is inside."""
        m.submodules.split = split = RecordSplit(0)
        wiring.connect(m, records, split.i)
        left, item = split.o.payload, self.items.payload
        # The packet whose records leave, the number of its beats left, and whether only one is
        # left.
        packet, here, bare = Signal(packets.payload.shape()), Signal(), Signal()
        rest, final, over = Signal.like(packet.record_beats), Signal(), Signal()
        m.d.comb += [
            packets.ready.eq(~here | over),
            item.record.eq(left.record), item.step.eq(packet.step),
            item.beats.eq(packet.vector_beats), item.bare.eq(bare), item.lost.eq(packet.lost),
            item.last.eq(bare | (left.last & final)),
            self.items.valid.eq(here & (bare | split.o.valid)),
            split.o.ready.eq(here & ~bare & self.items.ready),
            over.eq(self.items.valid & self.items.ready & item.last),
        ]
        with m.If(split.o.valid & split.o.ready & left.last):
            m.d.sync += [rest.eq(rest - 1), final.eq(rest == 2)]
        with m.If(packets.ready):
            m.d.sync += [here.eq(packets.valid), packet.eq(packets.payload),
                         rest.eq(packets.payload.record_beats),
                         final.eq(packets.payload.record_beats == 1),
                         bare.eq(packets.payload.record_beats == 0)]
        return Value.cast(records.valid & records.ready), Value.cast(here | ~split.idle)

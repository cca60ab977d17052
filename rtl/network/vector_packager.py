"""Vector packager: vectors gathered into packets, one destination each."""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.config import BEAT_BITS, NicConfig
from rtl.counters import CounterLayout, count
from rtl.formats import (
    CREDIT_BITS,
    NODE_BITS,
    TAG_BITS,
    TAGS_PER_BEAT,
    FrameInfo,
    Opcode,
    RawBeat,
    VectorBeat,
)
from rtl.memory import Ram
from rtl.stream import SkidBuffer

from .packet_pool import PacketPool
from .packet_reader import PacketReader

__all__ = ["VECTOR_PACKAGER_COUNTERS", "VectorPackager"]

VECTOR_PACKAGER_COUNTERS = CounterLayout(
    "vectors", "beats", "packets", "stall_buffers", "full", "timeouts")


class VectorPackager(wiring.Component):
    """Gather vectors by destination; send a packet when it is full or old.

    A packet is a tag beat (the vectors' landings, unused places zero) and the vectors, in order of
    arrival; its step is that of its first vector. It is full with
    min(32, (``net_payload_beats`` - 1) // ``vector_beats``) vectors.

    Latency from the beat that fills a packet: 5 cycles to the header, 7 to the tag beat;
    throughput 1 beat per cycle in and out, whatever the order of destinations: n beats of vectors
    take n + 1 cycles to leave.

    Parameters: ``config``; ``buffers``, packet buffers, by default 2 a node, at least 4.

    Ports
    -----
    i: stream of :data:`rtl.formats.VectorBeat`; ``tag.node`` is the destination, below
        ``config.nodes``; the beats of a vector follow each other.
    headers, payload: streams of :data:`rtl.formats.FrameInfo` and :data:`rtl.formats.RawBeat`, to
        a frame assembler.
    vector_beats: beats of a vector, 1 to ``config.vector_beats``.
    time, timeout: a packet closes when its first vector is ``timeout`` cycles old.
    credit_node, credit: the credit that a header to ``credit_node`` carries, combinational.
    counters: ``vectors`` and ``beats`` taken; ``packets`` sent; cycles in which a vector waited for
        a buffer; packets closed ``full`` and by ``timeouts``. idle.
    """

    def __init__(self, config: NicConfig, *, buffers: int | None = None):
        self._beats, self._vector_beats = config.net_payload_beats, config.vector_beats
        self._buffers = max(4, 2 * config.nodes) if buffers is None else buffers
        self._pool = PacketPool(config.nodes, self._buffers, self._beats - 1, match_step=False)
        super().__init__({
            "i": In(stream.Signature(VectorBeat)),
            "headers": Out(stream.Signature(FrameInfo)),
            "payload": Out(stream.Signature(RawBeat)),
            "vector_beats": In(5), "time": In(32), "timeout": In(16),
            "credit_node": Out(NODE_BITS), "credit": In(CREDIT_BITS),
            "counters": Out(VECTOR_PACKAGER_COUNTERS), "idle": Out(1),
        })

    def _most(self, vector_beats: int) -> int:
        """Return how many vectors a packet takes."""
        return min(TAGS_PER_BEAT, (self._beats - 1) // vector_beats)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.input = source = SkidBuffer(VectorBeat)
        m.submodules.pool = pool = self._pool
        m.submodules.reader = reader = PacketReader(
            Opcode.VECTORS, self._buffers, self._beats - 1, self._beats)
        wiring.connect(m, wiring.flipped(self.i), source.i)
        wiring.connect(m, reader.headers, wiring.flipped(self.headers))
        wiring.connect(m, reader.payload, wiring.flipped(self.payload))
        limit = Signal(range(self._beats))
        with m.Switch(self.vector_beats):
            for beats in range(1, self._vector_beats + 1):
                with m.Case(beats):
                    m.d.sync += limit.eq(self._most(beats))
        item, closed = source.o.payload, pool.closed.payload
        m.d.comb += [
            pool.valid.eq(source.o.valid), source.o.ready.eq(pool.ready),
            pool.destination.eq(item.tag.node), pool.step.eq(item.tag.step),
            pool.last.eq(item.last), pool.limit.eq(limit),
            pool.time.eq(self.time), pool.timeout.eq(self.timeout),
            pool.freed.eq(reader.freed),
            reader.i.valid.eq(pool.closed.valid), pool.closed.ready.eq(reader.i.ready),
            reader.i.payload.beats.eq(closed.positions + 1),
            self.credit_node.eq(reader.credit_node), reader.credit.eq(self.credit),
            self.idle.eq(source.idle & pool.idle & reader.idle),
        ]
        m.d.comb += [reader.i.payload[name].eq(closed[name])
                     for name in ("destination", "step", "buffer", "units")]
        self._store(m, pool, item, reader)
        count(m, self.counters, vectors=pool.ready & item.last, beats=pool.ready,
              packets=reader.i.valid & reader.i.ready, stall_buffers=pool.starved,
              full=pool.full, timeouts=pool.expired)
        return m

    def _store(self, m, pool, item, reader):
        """Write beats and tags, a cycle after they got their position; read the tag beat first."""
        stride = ceil_log2(self._beats)
        depth = self._buffers << stride
        m.submodules.vectors = ram = Ram(
            BEAT_BITS, depth, style="lutram" if depth <= 64 else "bram")
        write, written, tag = Signal(), Signal(BEAT_BITS), Signal(TAG_BITS)
        buffer, beat = Signal(pool.buffer.shape()), Signal(stride)
        ends, unit = Signal(), Signal(5)
        m.d.sync += [
            write.eq(pool.ready), written.eq(item.data), tag.eq(item.tag.landing),
            ends.eq(pool.ready & item.last), unit.eq(pool.unit), buffer.eq(pool.buffer),
            beat.eq(pool.position + 1),  # the tag beat comes first
        ]
        m.d.comb += [
            ram.write_en.eq(write), ram.write_addr.eq(Cat(beat, buffer)),
            ram.write_data.eq(written), ram.read_en.eq(reader.read_en),
            ram.read_addr.eq(Cat(reader.read_beat[:stride], reader.read_buffer)),
        ]
        lanes = self._most(1)
        tags = Signal(data.ArrayLayout(TAG_BITS, TAGS_PER_BEAT))
        for k in range(lanes):
            m.submodules[f"tags{k}"] = lane = Ram(TAG_BITS, self._buffers, latency=0)
            m.d.comb += [
                lane.write_en.eq(ends & (unit == k)), lane.write_addr.eq(buffer),
                lane.write_data.eq(tag), lane.read_en.eq(1),
                lane.read_addr.eq(reader.beat.buffer),
            ]
            with m.If(C(k, 6) < reader.beat.units):
                m.d.comb += tags[k].eq(lane.read_data)
        m.d.comb += reader.data.eq(Mux(reader.beat.index == 0, tags.as_value(), ram.read_data))

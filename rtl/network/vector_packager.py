"""Vector packager: gathers vectors into packets, one destination each."""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import NicConfig
from rtl.formats import (
    CREDIT_BITS,
    NODE_BITS,
    TAG_BITS,
    TAGS_PER_BEAT,
    FrameInfo,
    Opcode,
    RawBeat,
    SizedBeat,
    VectorBeat,
)
from rtl.gateable import Gateable
from rtl.memory import Ram
from rtl.monitor.counters import CounterLayout, count
from rtl.network.packet_pool import PacketPool, packet_buffers
from rtl.network.packet_reader import PacketReader
from rtl.network.packet_store import VectorStore
from rtl.network.vector_pool import VectorPool
from rtl.stream import SkidBuffer

__all__ = ["SIZED_PACKAGER_COUNTERS", "VECTOR_PACKAGER_COUNTERS", "VectorPackager"]

VECTOR_PACKAGER_COUNTERS = CounterLayout(
    "vectors", "beats", "packets", "stall_buffers", "full", "timeouts")
SIZED_PACKAGER_COUNTERS = CounterLayout(*VECTOR_PACKAGER_COUNTERS.members, "size_changes")


class VectorPackager(Gateable, wiring.Component):
    """Gather vectors by destination; send full or expired packets.

    A packet contains a tag beat (the landings of its vectors, unused places zero) and the vectors,
    in order of arrival. Its step is the step of its first vector. Vectors of 4 or 8 values share
    beats, the first one in the lowest lanes; unused lanes of the last beat are zero. A packet is
    full with 32 vectors, or if ``net_payload_beats`` hold no further vector.

    If ``sized``, each vector has its own number of beats. A packet has vectors of one size, which
    its header states; it closes before a vector of another size.

    Parameters
    ----------
    config: sizes.
    buffers: packet buffers, by default 2 per node, at least 4.
    opcode: opcode of the packets.
    sized: vectors have different sizes.

    Ports
    -----
    i: stream of :data:`rtl.formats.VectorBeat`, or of :data:`rtl.formats.SizedBeat` if ``sized``.
        ``tag.node`` is the destination, below ``config.nodes``. The beats of a vector are
        consecutive; unused lanes are +0.
    headers, payload: streams of :data:`rtl.formats.FrameInfo` and :data:`rtl.formats.RawBeat`, to a
        frame assembler.
    vector_beats: beats of a vector, 1 to ``config.vector_beats``; not if ``sized``.
    vector_packing: log2 of the vectors that share a beat, 0 to 2; must be 0 if a vector has several
        beats.
    time, timeout: a packet closes when its first vector is ``timeout`` cycles old.
    credit_node, credit: the credit in a header to ``credit_node``, combinational.
    counters: ``vectors`` and ``beats`` taken; ``packets`` sent; cycles in which a vector waited for
        a buffer; packets closed ``full`` and by ``timeouts``; if ``sized``, by ``size_changes``.
    idle: inactive until an input changes.
    """

    LATENCY = {
        ("vector that fills a packet", "header"): 5,
        ("vector that fills a packet", "tag beat"): 7,
    }
    RATE = (
        "1 beat per cycle in and out, whatever the order of destinations: n beats of a packet "
        "take n cycles to leave, so vectors that share beats leave faster than they can come")

    def __init__(self, config: NicConfig, *, buffers: int | None = None,
                 opcode: int = Opcode.VECTORS, sized: bool = False):
        self._opcode, self._sized = Opcode(opcode), sized
        self._beats, self._vector_beats = config.net_payload_beats, config.vector_beats
        self._buffers = packet_buffers(config.nodes) if buffers is None else buffers
        self._positions = max(self._beats - 1, self._most(1, 2))
        self._pool = VectorPool(config.nodes, self._buffers, self._positions) if sized else (
            PacketPool(config.nodes, self._buffers, self._positions, match_step=False))
        self._item = SizedBeat if sized else VectorBeat
        super().__init__({
            "i": In(stream.Signature(self._item)),
            "headers": Out(stream.Signature(FrameInfo)),
            "payload": Out(stream.Signature(RawBeat)),
            **({} if sized else {"vector_beats": In(5)}),
            "vector_packing": In(2), "time": In(32), "timeout": In(16),
            "credit_node": Out(NODE_BITS), "credit": In(CREDIT_BITS),
            "counters": Out(SIZED_PACKAGER_COUNTERS if sized else VECTOR_PACKAGER_COUNTERS),
            "idle": Out(1),
        })

    def _most(self, vector_beats: int, vector_packing: int = 0) -> int:
        """Return the most vectors of a packet."""
        return min(TAGS_PER_BEAT, ((self._beats - 1) << vector_packing) // vector_beats)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.pool = pool = self._pool
        m.submodules.reader = reader = PacketReader(
            self._opcode, self._buffers, self._positions, self._beats, least=2,
            sized=self._sized)
        source, shared = self._enter(m, pool), self.vector_packing
        wiring.connect(m, reader.headers, wiring.flipped(self.headers))
        wiring.connect(m, reader.payload, wiring.flipped(self.payload))
        # A position is a beat, or the share of one vector in a beat.
        rest = Cat(shared.any(), shared[1])
        offered, closed = source.o.payload, pool.closed.payload
        item = Signal(self._item, reset_less=True)  # the item inside the pool
        with m.If(pool.take):
            m.d.sync += [item[name].eq(offered[name]) for name in self._item.members]
        m.d.comb += [
            pool.valid.eq(source.o.valid), source.o.ready.eq(pool.take),
            pool.destination.eq(offered.tag.node), pool.step.eq(offered.tag.step),
            pool.last.eq(offered.last),
            pool.time.eq(self.time), pool.timeout.eq(self.timeout),
            pool.freed.eq(reader.freed),
            reader.i.valid.eq(pool.closed.valid), pool.closed.ready.eq(reader.i.ready),
            reader.i.payload.beats.eq(((closed.positions + rest) >> shared) + 1),
            self.credit_node.eq(reader.credit_node), reader.credit.eq(self.credit),
            self.idle.eq(source.idle & pool.idle & reader.idle),
        ]
        m.d.comb += [reader.i.payload[name].eq(closed[name])
                     for name in ("destination", "step", "buffer", "units")]
        changes = {}
        if self._sized:
            m.d.comb += [pool.label.eq(offered.final_beat),
                         reader.i.payload.final_beat.eq(closed.label)]
            changes = {"size_changes": pool.stepped}
        self._store(m, pool, item, reader)
        count(m, self.counters, vectors=pool.ready & item.last, beats=pool.ready,
              packets=reader.i.valid & reader.i.ready, stall_buffers=pool.starved,
              full=pool.full, timeouts=pool.expired, **changes)
        return m

    def _enter(self, m: Module, pool: PacketPool) -> SkidBuffer:
        """Set the most vectors of a packet of ``pool``; return the buffer of the beats."""
        shared, limits = self.vector_packing, Signal(range(self._positions + 1))
        if self._sized:
            # The packets of a vector are known before it is compared with an open packet.
            m.submodules.input = source = SkidBuffer(data.StructLayout(
                SizedBeat.members | {"ahead": limits.shape()}))
            m.d.comb += [
                *(source.i.payload[name].eq(self.i.payload[name]) for name in SizedBeat.members),
                source.i.payload.ahead.eq(limits), source.i.valid.eq(self.i.valid),
                self.i.ready.eq(source.i.ready), pool.ahead.eq(source.o.payload.ahead)]
            size, less = self.i.payload.final_beat + 1, 1
        else:
            m.submodules.input = source = SkidBuffer(VectorBeat)
            wiring.connect(m, wiring.flipped(self.i), source.i)
            m.d.comb += pool.limit.eq(limits)
            size, less = self.vector_beats, 0
        domain = "comb" if self._sized else "sync"
        with m.Switch(size):
            for beats in range(1, self._vector_beats + 1):
                with m.Case(beats):
                    m.d[domain] += limits.eq(self._most(beats) - less)
        for packing in (1, 2):
            with m.If(shared == packing):
                m.d[domain] += limits.eq(self._most(1, packing) - less)
        return source

    def _store(self, m, pool, item, reader):
        """Store vectors, and tags a cycle after their positions; read the tag beat first."""
        m.submodules.store = store = VectorStore(
            self._buffers, self._beats, self._positions, first=1)
        tag, buffer = Signal(TAG_BITS), Signal.like(pool.buffer)
        ends, unit = Signal(), Signal(5)
        m.d.sync += [tag.eq(item.tag.landing), ends.eq(pool.ready & item.last),
                     unit.eq(pool.unit), buffer.eq(pool.buffer)]
        m.d.comb += [
            store.write.eq(pool.ready), store.buffer.eq(pool.buffer),
            store.position.eq(pool.position), store.vector.eq(item.data),
            store.vector_packing.eq(self.vector_packing), store.read_en.eq(reader.read_en),
            store.read_buffer.eq(reader.read_buffer), store.read_beat.eq(reader.read_beat),
        ]
        lanes = self._most(1, 2)
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
        m.d.comb += reader.data.eq(Mux(reader.beat.index == 0, tags.as_value(), store.data))

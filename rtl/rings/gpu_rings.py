"""GPU rings: request lists to a ring in GPU memory, and vectors from a second ring."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import CREDIT_BITS, FrameInfo, HostFrame, RawBeat, ReadRecord
from rtl.monitor.counters import CounterLayout
from rtl.network.layouts import PacketBeat
from rtl.rings.layouts import INDEX_BITS, RingIndex
from rtl.rings.list_ring import LIST_RING_COUNTERS, ListRing
from rtl.rings.record_writer import RecordWriter
from rtl.rings.slot_address import Place
from rtl.rings.slot_length import SlotLength
from rtl.rings.vector_ring import VECTOR_RING_COUNTERS, VectorRing

__all__ = ["GPU_RINGS_COUNTERS", "GpuRings", "RingPlace"]

GPU_RINGS_COUNTERS = CounterLayout(*LIST_RING_COUNTERS.members, *VECTOR_RING_COUNTERS.members)

RingPlace = wiring.Signature({"ring": Out(Place), "index_address": Out(64)})
"""Location of a ring, and of the word with the count of its slots."""


class GpuRings(wiring.Component):
    """Serve misses by a kernel on the GPU, without the host thread.

    With ``enable``, request lists are written to slots of a ring in GPU memory, followed by an
    index (:class:`~rtl.rings.ListRing`). The kernel answers list n in slot n of a second ring, and
    stores the number of answered lists in a register. The NIC reads the slot by DMA
    (:class:`~rtl.rings.VectorRing`), and passes its packet to the parser like a packet of the host.
    Without ``enable``, lists go to the host, and packets pass unchanged.

    Latency and rate are those of the two rings.

    Ports
    -----
    lists: stream of :data:`rtl.formats.FrameInfo`; the payload bypasses this block. list_headers:
        stream of :data:`rtl.formats.HostFrame`.
    i, o: streams of :data:`~rtl.network.layouts.PacketBeat`, packets from the host, and to its
        parser. read: the packet at ``i`` is READ_DATA.
    headers, payload: streams of :data:`rtl.formats.HostFrame` and :data:`~rtl.formats.RawBeat`, the
        packets READ and INDEX. credit: their credit.
    enable, list_place, vector_place (:data:`RingPlace`), every (vector slots per INDEX): may change
        while idle.
    consumed, produced: counts that the kernel stored last, of lists that it has read and of slots
        that it has filled; a change counts.
    vector_beats, vector_packing: as in :class:`rtl.network.PacketParser`; fixed.
    counters: the counters of both rings.
    idle: no movement until an input moves.
    """

    LATENCY = {}
    RATE = f"lists: {ListRing.RATE}; {VectorRing.RATE}"

    def __init__(self):
        super().__init__({
            "lists": In(stream.Signature(FrameInfo)),
            "list_headers": Out(stream.Signature(HostFrame)),
            "i": In(stream.Signature(PacketBeat)), "read": In(1),
            "o": Out(stream.Signature(PacketBeat)),
            "headers": Out(stream.Signature(HostFrame)),
            "payload": Out(stream.Signature(RawBeat)), "credit": In(CREDIT_BITS),
            "enable": In(1), "list_place": In(RingPlace), "vector_place": In(RingPlace),
            "every": In(8),
            "consumed": In(INDEX_BITS), "produced": In(INDEX_BITS),
            "vector_beats": In(5), "vector_packing": In(2),
            "counters": Out(GPU_RINGS_COUNTERS), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.list_ring = lists = ListRing()
        m.submodules.lengths = lengths = SlotLength()
        m.submodules.vector_ring = vectors = VectorRing()
        m.submodules.writer = writer = RecordWriter(ReadRecord.size)
        wiring.connect(m, wiring.flipped(self.lists), lists.headers)
        wiring.connect(m, lists.header_out, wiring.flipped(self.list_headers))
        wiring.connect(m, lists.lists, lengths.i)
        wiring.connect(m, lengths.o, vectors.lengths)
        wiring.connect(m, wiring.flipped(self.i), vectors.i)
        wiring.connect(m, vectors.o, wiring.flipped(self.o))
        wiring.connect(m, writer.headers, wiring.flipped(self.headers))
        wiring.connect(m, writer.payload, wiring.flipped(self.payload))
        m.d.comb += vectors.read.eq(self.read)
        # An index of lists has priority: the next index follows at least two cycles later.
        told, read = lists.indexes, vectors.records
        m.d.comb += [
            writer.i.valid.eq(told.valid | read.valid), told.ready.eq(writer.i.ready),
            read.ready.eq(writer.i.ready & ~told.valid),
            *(writer.i.payload[name].eq(Mux(told.valid, told.payload[name], read.payload[name]))
              for name in writer.i.payload.shape().members),
            lists.enable.eq(self.enable), writer.credit.eq(self.credit),
            lists.answerable.eq(vectors.known), vectors.every.eq(self.every),
            lengths.vector_beats.eq(self.vector_beats),
            lengths.vector_packing.eq(self.vector_packing),
        ]
        for ring, place in ((lists, self.list_place), (vectors, self.vector_place)):
            wiring.connect(m, wiring.flipped(place.ring), ring.place)
            m.d.comb += ring.index_address.eq(place.index_address)
        storing = [_changed(m, self.consumed, lists.consumed),
                   _changed(m, self.produced, vectors.produced)]
        for ring, layout in ((lists, LIST_RING_COUNTERS), (vectors, VECTOR_RING_COUNTERS)):
            m.d.comb += [self.counters[name].eq(ring.counters[name]) for name in layout.members]
        m.d.comb += self.idle.eq(
            lists.idle & lengths.idle & vectors.idle & writer.idle
            & ~(storing[0] | storing[1]))
        return m


def _changed(m: Module, stored, event):
    """Make an event of each stored count that changed; return whether there is one."""
    last, changed = Signal(RingIndex["index"].shape), Signal()
    m.d.comb += [changed.eq(stored != last), event.valid.eq(changed), event.index.eq(stored)]
    m.d.sync += last.eq(stored)
    return changed

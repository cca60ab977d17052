"""List ring: assigns lists to slots of a ring in GPU memory, and announces them."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import FrameInfo, HostFrame, IndexRecord, Opcode
from rtl.monitor.counters import CounterLayout, count
from rtl.rings.layouts import INDEX_BITS, RingIndex
from rtl.rings.record_writer import ShortPacket
from rtl.rings.slot_address import Place, SlotAddress
from rtl.stream import SkidBuffer

__all__ = ["LIST_RING_COUNTERS", "ListRing"]

LIST_RING_COUNTERS = CounterLayout("lists", "lists_told", "bad_consumed", "stall_full")

_HALF = 1 << (INDEX_BITS - 1)
_SETTLED = SlotAddress.LATENCY["number", "its address"] + 1
_INDEX = ShortPacket(IndexRecord.size)


class ListRing(wiring.Component):
    """Assign each packet the address of the next slot of a ring, and announce it after its data.

    Packet number n, counted from reset, goes whole, header beat first, to slot n mod slots. An
    INDEX packet writes the number of answerable packets, modulo 2^16. Packets that became
    answerable since the last INDEX are reported together. The packet multiplexer passes payloads in
    the order of their headers, so the index follows their data.

    The GPU stores the number of packets that it has consumed; a packet waits until its slot is
    free. A count beyond the announced packets is ignored, so no unread slot is overwritten; an
    older count has no effect. Without ``enable`` headers pass, to address 0.

    Ports
    -----
    headers: stream of :data:`rtl.formats.FrameInfo`, from a packager; the payload bypasses this
        block.
    header_out: stream of :data:`rtl.formats.HostFrame`.
    indexes: stream of :func:`~rtl.rings.record_writer.ShortPacket`, the INDEX packets.
    lists: stream of the ``count`` of each packet, in order: the number of vectors that the GPU
        writes to the slot of the same number (:class:`~rtl.rings.VectorRing`). answerable: number
        of lists that the vector ring has taken.
    enable: may change while idle. consumed: event :data:`~rtl.rings.layouts.RingIndex`.
    place: :data:`~rtl.rings.slot_address.Place` of the ring; a slot has room for the largest
        packet.
    index_address: address of the word with the number of packets.
    counters: ``lists`` sent; ``lists_told``, INDEX packets; ``bad_consumed``, counts ignored;
        ``stall_full``, cycles in which a packet waits for a slot.
    idle: no packet inside; a packet that waits for a slot is counted, hence not idle.
    """

    LATENCY = {("header", "the same header"): 0, ("answerable", "index"): 2}
    RATE = "a packet in 6 cycles, or without ``enable`` in 1"

    def __init__(self):
        super().__init__({
            "headers": In(stream.Signature(FrameInfo)),
            "header_out": Out(stream.Signature(HostFrame)),
            "indexes": Out(stream.Signature(_INDEX)), "lists": Out(stream.Signature(16)),
            "answerable": In(INDEX_BITS), "enable": In(1), "consumed": In(RingIndex),
            "place": In(Place), "index_address": In(64),
            "counters": Out(LIST_RING_COUNTERS), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.counts = counts = SkidBuffer(16)
        m.submodules.slot_address = slot = SlotAddress()
        wiring.connect(m, counts.o, wiring.flipped(self.lists))
        wiring.connect(m, wiring.flipped(self.place), slot.place)

        written, told, free = Signal(INDEX_BITS), Signal(INDEX_BITS), Signal()
        consuming = self._consume(m, written, told, free, slot.slots)
        # Address and room follow the number of packets some cycles later. ``closed`` is a register
        # in the path of headers: it opens a cycle late, and a packet closes it at once.
        settled, closed, full = Signal(_SETTLED), Signal(), Signal()
        send, ahead, news, telling = Signal(), Signal(), Signal(), Signal()
        record, info = Signal(IndexRecord), self.headers.payload
        m.d.sync += [
            settled.eq(Cat(1, settled)), news.eq(ahead),
            full.eq(self.enable & settled.all() & ~free & ~send),
            closed.eq(self.enable & (send | ~free | ~settled.all() | ~counts.i.ready)),
        ]
        m.d.comb += [
            ahead.eq(self.answerable != record.index),
            self.header_out.valid.eq(self.headers.valid & ~closed),
            self.headers.ready.eq(self.header_out.ready & ~closed),
            *(self.header_out.payload[name].eq(info[name]) for name in FrameInfo.members),
            self.header_out.payload.address.eq(slot.address & self.enable.replicate(64)),
            send.eq(self.enable & self.header_out.valid & self.header_out.ready),
            slot.number.eq(written), counts.i.valid.eq(send), counts.i.payload.eq(info.count),
            self.indexes.valid.eq(telling), self.indexes.payload.record.eq(record.as_value()),
            self.indexes.payload.opcode.eq(Opcode.INDEX),
            self.indexes.payload.address.eq(self.index_address),
        ]
        with m.If(telling):
            with m.If(self.indexes.ready):
                m.d.sync += [telling.eq(0), told.eq(record.index)]
        with m.Elif(news):
            m.d.sync += [telling.eq(1), record.index.eq(self.answerable)]
        with m.If(send):
            m.d.sync += [written.eq(written + 1), settled.eq(0)]
        m.d.comb += self.idle.eq(~(ahead | news | telling | consuming) & settled.all()
                                 & counts.idle & ~self.headers.valid)
        count(m, self.counters, lists=send, lists_told=telling & self.indexes.ready,
              stall_full=full & self.headers.valid)
        return m

    def _consume(self, m: Module, written, told, free, slots):
        """Process counts of consumed packets, and compute whether a slot is free.

        Return whether anything moves.
        """
        event, consumed, bad = Signal(RingIndex), Signal(INDEX_BITS), Signal()
        ahead, most = Signal(INDEX_BITS), Signal(INDEX_BITS)
        m.d.comb += [ahead.eq(event.index - consumed), most.eq(told - consumed)]
        m.d.sync += [
            event.eq(self.consumed), free.eq((written - consumed)[:INDEX_BITS] < slots),
            bad.eq(event.valid & (ahead > most) & (ahead < _HALF)),
        ]
        with m.If(event.valid & (ahead <= most)):
            m.d.sync += consumed.eq(event.index)
        count(m, self.counters, bad_consumed=bad)
        return event.valid | bad

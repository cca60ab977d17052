"""List ring: writes lists of requests into a ring in GPU memory, and how many there are."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import CREDIT_BITS, FrameInfo, HostFrame, IndexRecord, Opcode, RawBeat
from rtl.monitor.counters import CounterLayout, count
from rtl.rings.layouts import INDEX_BITS, RingIndex
from rtl.rings.slot_address import Place, SlotAddress
from rtl.stream import SkidBuffer

__all__ = ["LIST_RING_COUNTERS", "ListRing"]

LIST_RING_COUNTERS = CounterLayout("lists", "indexes", "bad_consumed", "stall_full")

_HALF = 1 << (INDEX_BITS - 1)
_SETTLED = SlotAddress.LATENCY["number", "its address"] + 1


class ListRing(wiring.Component):
    """Give each packet the address of the next slot of a ring, and say behind it that it is there.

    Packet number n, counted from reset, goes whole, header beat first, to slot n mod slots. An
    INDEX packet behind it on the same stream writes the number of packets so far, modulo 2^16: one
    for several that follow each other without a pause, at most ``most``. The GPU stores how many it
    has consumed; a packet waits until that frees its slot. A count of more than it was told of is
    ignored, so nothing is overwritten that was not consumed; an older one says nothing.

    Latency and rate: see ``LATENCY`` and ``RATE``.

    Ports
    -----
    headers, payload: streams of :data:`rtl.formats.FrameInfo` and :data:`rtl.formats.RawBeat`, from
        a packager.
    header_out, payload_out: streams of :data:`rtl.formats.HostFrame` and
        :data:`~rtl.formats.RawBeat`.
    lists: stream of the ``count`` of each packet, in order: what the GPU is to answer in the slot
        of the same number (:class:`~rtl.rings.VectorRing`).
    consumed: event :data:`~rtl.rings.layouts.RingIndex`.
    place: :data:`~rtl.rings.slot_address.Place` of the ring; a slot takes the largest packet.
    index_address: of the word with the number of packets. most: packets of one INDEX, 0 is 1.
    credit: that INDEX headers carry; other headers keep theirs.
    counters: ``lists`` and ``indexes`` sent; ``bad_consumed``, counts ignored; ``stall_full``,
        cycles in which a packet waits for a slot.
    idle: nothing inside; a packet that waits for a slot is counted, hence not idle.
    """

    LATENCY = {("header", "the same header"): 2, ("payload beat", "the same beat"): 1,
               ("last payload beat", "header of its index"): 2}
    RATE = "a packet of n payload beats in n + 1 cycles, 5 at least; an index in 1"

    def __init__(self):
        super().__init__({
            "headers": In(stream.Signature(FrameInfo)), "payload": In(stream.Signature(RawBeat)),
            "header_out": Out(stream.Signature(HostFrame)),
            "payload_out": Out(stream.Signature(RawBeat)), "lists": Out(stream.Signature(16)),
            "consumed": In(RingIndex), "place": In(Place), "index_address": In(64),
            "most": In(8), "credit": In(CREDIT_BITS),
            "counters": Out(LIST_RING_COUNTERS), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.source = source = SkidBuffer(FrameInfo)
        m.submodules.header = header = SkidBuffer(HostFrame)
        m.submodules.beats = beats = SkidBuffer(RawBeat)
        m.submodules.counts = counts = SkidBuffer(16)
        m.submodules.slot = slot = SlotAddress()
        wiring.connect(m, wiring.flipped(self.headers), source.i)
        wiring.connect(m, header.o, wiring.flipped(self.header_out))
        wiring.connect(m, beats.o, wiring.flipped(self.payload_out))
        wiring.connect(m, counts.o, wiring.flipped(self.lists))
        wiring.connect(m, wiring.flipped(self.place), slot.place)

        written, told, free = Signal(INDEX_BITS), Signal(INDEX_BITS), Signal()
        consuming = self._consume(m, written, told, free, slot.slots)
        # Address and room follow the number of packets some cycles later.
        settled, since, enough = Signal(_SETTLED), Signal(8), Signal()
        body, some = Signal(), Signal()
        send, tell, fits = Signal(), Signal(), Signal()
        record, info = Signal(IndexRecord), source.o.payload
        m.d.sync += [settled.eq(Cat(1, settled)), enough.eq(some & (since >= self.most))]
        m.d.comb += [
            slot.number.eq(written), some.eq(since != 0), record.index.eq(written),
            fits.eq(source.o.valid & (free | ~settled.all())),
            send.eq(source.o.valid & free & settled.all() & ~body & ~tell & ~enough
                    & header.i.ready & counts.i.ready),
            tell.eq(some & ~body & (enough | ~fits) & header.i.ready & beats.i.ready),
            source.o.ready.eq(send), counts.i.valid.eq(send), counts.i.payload.eq(info.count),
            header.i.valid.eq(send | tell),
            beats.i.valid.eq(Mux(body, self.payload.valid, tell)),
            self.payload.ready.eq(body & beats.i.ready),
            beats.i.payload.last.eq(Mux(body, self.payload.payload.last, 1)),
            beats.i.payload.data.eq(Mux(body, self.payload.payload.data, record.as_value())),
            *(header.i.payload[name].eq(info[name]) for name in FrameInfo.members),
            header.i.payload.address.eq(Mux(tell, self.index_address, slot.address)),
        ]
        with m.If(tell):
            m.d.comb += [
                header.i.payload.opcode.eq(Opcode.INDEX), header.i.payload.count.eq(1),
                header.i.payload.credit.eq(self.credit), header.i.payload.empty.eq(0),
                header.i.payload.destination.eq(0), header.i.payload.step.eq(0),
            ]
            m.d.sync += [told.eq(written), since.eq(0), enough.eq(0)]
        with m.If(send):
            m.d.sync += [written.eq(written + 1), since.eq(since + 1), settled.eq(0),
                         body.eq(~info.empty)]
        with m.If(body & beats.i.ready & self.payload.valid & self.payload.payload.last):
            m.d.sync += body.eq(0)
        waits = source.o.valid & ~free & settled.all() & ~body
        m.d.comb += self.idle.eq(~(body | some | consuming) & settled.all() & source.idle
                                 & header.idle & beats.idle & counts.idle)
        count(m, self.counters, lists=send, indexes=tell, stall_full=waits)
        return m

    def _consume(self, m: Module, written, told, free, slots):
        """Take counts of what was consumed, and tell whether a slot is free; return whether
        anything moves."""
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

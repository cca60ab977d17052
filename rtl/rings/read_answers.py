"""Read answers: checks READ_DATA packets, and converts them to packets of vectors."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import RECORDS_PER_BEAT, HeaderBeat, Opcode
from rtl.monitor.counters import CounterLayout, count
from rtl.network.layouts import PacketBeat
from rtl.rings.layouts import INDEX_BITS
from rtl.rings.slot_length import Length

__all__ = ["READ_ANSWER_COUNTERS", "ReadAnswers"]

READ_ANSWER_COUNTERS = CounterLayout("bad_data", "short_data")

_WORDS = RECORDS_PER_BEAT.bit_length() - 1


class ReadAnswers(wiring.Component):
    """Convert the answers of outstanding reads, drop other READ_DATA packets, and pass all other
    packets.

    The tag in the header of a READ_DATA packet names its read. If the read is outstanding and the
    packet has as many beats as the slot, the packet leaves as GPU_VECTORS. Otherwise it is dropped:
    a packet without an outstanding read (``bad_data``), or of another length (``short_data``),
    whose read is repeated. The receiver has checked that ``count`` in the header is the number of
    8-byte words of the packet, and at least 1.

    ``i.ready`` follows ``o.ready``, and ``o`` has the beats of ``i``.

    Ports
    -----
    i: stream of :data:`~rtl.network.layouts.PacketBeat`, packets from the host.
    read: the packet at ``i`` is READ_DATA.
    tag: tag of the packet at ``i``; asked, length: a read of that tag is outstanding, and the
        length of its slot, a cycle later.
    answered: event: the outstanding read of ``tag`` is answered. short, landed: later events: the
        read must be repeated; its packet has left whole. answered_tag: tag of both.
    o: stream of :data:`~rtl.network.layouts.PacketBeat`, packets of the host, with GPU_VECTORS in
        place of READ_DATA.
    counters: ``bad_data`` and ``short_data``.
    idle: nothing moves; an incomplete packet waits for its input.
    """

    LATENCY = {("header beat", "the header beat that leaves"): 4, ("beat", "the same beat"): 0}
    RATE = "1 beat per cycle; a packet of n payload beats that were read in n + 5 cycles"

    def __init__(self):
        super().__init__({
            "i": In(stream.Signature(PacketBeat)), "read": In(1),
            "o": Out(stream.Signature(PacketBeat)),
            "tag": Out(INDEX_BITS), "asked": In(1), "length": In(Length),
            "answered": Out(1), "short": Out(1), "landed": Out(1),
            "answered_tag": Out(INDEX_BITS),
            "counters": Out(READ_ANSWER_COUNTERS), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        beat, come = self.i.payload, self.i.valid
        header, following = data.View(HeaderBeat, beat.item), Signal(HeaderBeat)
        moving, bad, short, landed = Signal(), Signal(), Signal(), Signal()
        head = Signal()
        # Registers, because lengths arrive late from a memory.
        asked, fits, odd = Signal(), Signal(), Signal()
        vectors = Signal.like(self.length.vectors, reset_less=True)
        m.d.sync += [
            # A slot consists of whole beats, so the low bits of its count are 0.
            asked.eq(self.asked & ~odd), fits.eq(self.length.beats << _WORDS == header.ember.count),
            vectors.eq(self.length.vectors),
        ]
        m.d.comb += [
            following.eq(header), following.ember.opcode.eq(Opcode.GPU_VECTORS),
            following.ember.count.eq(vectors),
            self.o.payload.last.eq(beat.last),
            self.o.payload.item.eq(Mux(head, following, beat.item)),
        ]
        with m.FSM(name="answers"):
            with m.State("HEADER"):
                m.d.comb += [self.o.valid.eq(come & ~self.read),
                             self.i.ready.eq(self.o.ready & ~self.read)]
                # The header field is wider than a tag.
                m.d.sync += [self.tag.eq(header.ember.acknowledge),
                             odd.eq(header.ember.acknowledge[INDEX_BITS:].any())]
                with m.If(come & self.read):
                    m.next = "LOOK"
                with m.Elif(come & self.o.ready & ~beat.last):
                    m.next = "BY"
            with m.State("BY"):
                m.d.comb += [self.o.valid.eq(come), self.i.ready.eq(self.o.ready)]
                with m.If(come & self.o.ready & beat.last):
                    m.next = "HEADER"
            with m.State("LOOK"):
                m.d.comb += moving.eq(1)
                m.next = "CHECK"
            with m.State("CHECK"):
                m.d.comb += moving.eq(1)
                m.next = "DECIDE"
            with m.State("DECIDE"):
                m.d.comb += [moving.eq(1), self.answered.eq(asked), bad.eq(~asked),
                             short.eq(asked & ~fits)]
                m.d.sync += self.answered_tag.eq(self.tag)
                m.next = "DROP"
                with m.If(asked & fits):
                    m.d.sync += head.eq(1)
                    m.next = "PASS"
            with m.State("PASS"):
                m.d.comb += [self.o.valid.eq(come), self.i.ready.eq(self.o.ready)]
                with m.If(come & self.o.ready):
                    m.d.sync += head.eq(0)
                    with m.If(beat.last):
                        m.d.comb += landed.eq(1)
                        m.next = "HEADER"
            with m.State("DROP"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(come & beat.last):
                    m.next = "HEADER"
        m.d.sync += [self.short.eq(short), self.landed.eq(landed)]
        m.d.comb += self.idle.eq(~(moving | self.short | self.landed | come))
        count(m, self.counters, bad_data=bad, short_data=self.short)
        return m

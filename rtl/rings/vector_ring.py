"""Vector ring: reads vectors from a ring in GPU memory."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.formats import (
    BEAT_BYTES,
    IndexRecord,
    Opcode,
    ReadRecord,
)
from rtl.memory import Ram
from rtl.monitor.counters import CounterLayout, count
from rtl.network.layouts import PacketBeat
from rtl.rings.layouts import INDEX_BITS, RingIndex
from rtl.rings.read_answers import READ_ANSWER_COUNTERS, ReadAnswers
from rtl.rings.record_writer import ShortPacket
from rtl.rings.slot_address import Place, SlotAddress
from rtl.rings.slot_length import Length
from rtl.stream import StreamFIFO

__all__ = ["VECTOR_RING_COUNTERS", "VectorRing"]

VECTOR_RING_COUNTERS = CounterLayout(
    "reads", "repeats", "slots", "slots_told", "bad_index", *READ_ANSWER_COUNTERS.members)

_HALF = 1 << (INDEX_BITS - 1)
_RECORD = ShortPacket(ReadRecord.size)


class VectorRing(wiring.Component):
    """Read the slots that the GPU has filled, and report the slots that it may fill again.

    The GPU answers request list n in slot n mod slots, as the payload of a GPU_VECTORS packet, and
    stores the number of filled slots (:class:`~rtl.rings.ListRing`). A count is rejected as a whole
    if it exceeds the lists sent, or exceeds the slots read by more than the ring has; an older
    count has no effect.

    A READ packet with the slot number as tag reads a slot. READ_DATA packets may arrive in any
    order; a packet without an outstanding read is dropped
    (:class:`~rtl.rings.read_answers.ReadAnswers`). A packet of another length is dropped and its
    slot read again: lookups wait for its vectors, and no other copy exists. A read is repeated only
    after an answer to the previous try. An unreadable slot therefore uses some PCIe bandwidth and
    blocks later slots, but no other block; the completion of the step is late, and the host stops
    the ring.

    An INDEX packet writes the number of slots read, in order, to a word in GPU memory: when the
    number has grown by ``every``, or no read is outstanding. A GPU that waits for a free slot
    therefore gets one.

    Parameters: ``outstanding`` reads; ``lists`` that may wait to be answered and read. Both are
    powers of two, from 2 to 256 and from ``outstanding`` to 4096.

    Ports
    -----
    lengths: stream of :data:`~rtl.rings.slot_length.Length`: expected content of each slot, in
        order.
    known: number of lengths taken.
    produced: event :data:`~rtl.rings.layouts.RingIndex`, slots filled so far.
    place: :data:`~rtl.rings.slot_address.Place` of the ring. index_address: address of the word.
    every: slots per INDEX; 0 counts as 1.
    records: stream of :func:`~rtl.rings.record_writer.ShortPacket`, READ and INDEX packets.
    i: stream of :data:`~rtl.network.layouts.PacketBeat`, packets from the host. read: the packet is
        READ_DATA.
    o: stream of the same, with GPU_VECTORS in place of READ_DATA.
    counters: ``reads`` made, ``repeats`` among them; ``slots`` read; ``slots_told``, INDEX packets;
        ``bad_index``, counts rejected; ``bad_data`` and ``short_data`` of
        :class:`~rtl.rings.read_answers.ReadAnswers`.
    idle: no movement until an input moves; the ring may wait for data.

    Raises ``TypeError`` or ``ValueError`` for a parameter out of range.
    """

    LATENCY = {("slots filled", "the first read"): 8,
               ("last beat of a slot", "its index"): 5} | ReadAnswers.LATENCY
    OUTSTANDING, LISTS = 16, 256
    RATE = "1 read in 7 cycles; data: " + ReadAnswers.RATE

    def __init__(self, outstanding: int = OUTSTANDING, lists: int = LISTS):
        for name, value, low, high in (("outstanding", outstanding, 2, 256),
                                       ("lists", lists, outstanding, 4096)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be an integer, not {value!r}")
            if not low <= value <= high or value & (value - 1):
                raise ValueError(f"{name} must be a power of two between {low} and {high}, "
                                 f"not {value!r}")
        self._outstanding, self._lists = outstanding, lists
        super().__init__({
            "lengths": In(stream.Signature(Length)), "known": Out(INDEX_BITS),
            "produced": In(RingIndex), "place": In(Place),
            "index_address": In(64), "every": In(8),
            "records": Out(stream.Signature(_RECORD)),
            "i": In(stream.Signature(PacketBeat)), "read": In(1),
            "o": Out(stream.Signature(PacketBeat)),
            "counters": Out(VECTOR_RING_COUNTERS), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.slot_address = slot = SlotAddress()
        m.submodules.answers = answers = ReadAnswers()
        m.submodules.again = again = StreamFIFO(INDEX_BITS, self._outstanding)
        wiring.connect(m, wiring.flipped(self.place), slot.place)
        wiring.connect(m, wiring.flipped(self.i), answers.i)
        wiring.connect(m, answers.o, wiring.flipped(self.o))
        m.d.comb += answers.read.eq(self.read)
        # Cumulative: lists sent, slots filled, slots with a first read, slots read completely.
        sent, filled, read, out = (Signal(INDEX_BITS, name=name)
                                   for name in ("sent", "filled", "read", "out"))
        number, asks = Signal(INDEX_BITS), Signal()
        m.submodules.to_ask, m.submodules.to_check = to_ask, to_check = [
            Ram(Length.size, self._lists) for _ in range(2)]
        full = Signal()
        m.d.sync += full.eq((sent - out)[:INDEX_BITS] >= self._lists - 1)  # one cycle old
        m.d.comb += [
            self.lengths.ready.eq(~full), self.known.eq(sent), slot.number.eq(number),
            to_ask.read_addr.eq(number), to_check.read_addr.eq(answers.tag),
            answers.length.eq(to_check.read_data),
        ]
        for ram in (to_ask, to_check):
            m.d.comb += [ram.write_en.eq(self.lengths.valid & ~full), ram.write_addr.eq(sent),
                         ram.write_data.eq(self.lengths.payload)]
        m.d.sync += sent.eq(sent + (self.lengths.valid & ~full))
        ringing = self._ring(m, sent, filled, out, slot.slots)
        leaving = self._land(m, answers, again, read, out, number, asks)
        asking = self._ask(m, slot, to_ask, again, filled, read, out, number, asks)
        for name in READ_ANSWER_COUNTERS.members:
            m.d.comb += self.counters[name].eq(answers.counters[name])
        # Effects of a count appear in registers of the next cycle.
        follows = Signal()
        m.d.sync += follows.eq(ringing | leaving)
        m.d.comb += self.idle.eq(answers.idle & again.idle
                                 & ~(ringing | leaving | asking | follows))
        return m

    def _ring(self, m: Module, sent, filled, out, slots):
        """Process counts of filled slots; return whether one is inside."""
        event, takes, bad = Signal(RingIndex), Signal(), Signal()
        ahead, room, known, most = (Signal(INDEX_BITS, name=name)
                                    for name in ("ahead", "room", "known", "most"))
        m.d.comb += [
            ahead.eq(event.index - filled), room.eq(most - filled), known.eq(sent - filled),
            takes.eq((ahead <= room) & (ahead <= known)),
        ]
        m.d.sync += [event.eq(self.produced), most.eq(out + slots),
                     bad.eq(event.valid & ~takes & (ahead < _HALF))]
        with m.If(event.valid & takes):
            m.d.sync += filled.eq(event.index)
        count(m, self.counters, bad_index=bad)
        return event.valid | bad

    def _land(self, m: Module, answers, again, read, out, number, asks):
        """Track outstanding and completed reads; return whether anything moves."""
        bits = ceil_log2(self._outstanding)
        asked, landed = Signal(self._outstanding), Signal(self._outstanding)
        place, inside, here, moves = answers.tag[:bits], Signal(), Signal(), Signal()

        def bit(enable, tag):
            return Cat(enable & (tag[:bits] == k) for k in range(self._outstanding))

        m.d.comb += [
            again.i.payload.eq(answers.answered_tag), again.i.valid.eq(answers.short),
            moves.eq(landed.bit_select(out[:bits], 1)), answers.asked.eq(inside & here),
        ]
        m.d.sync += [
            # The tag is in the outstanding range; its read is in flight.
            inside.eq((answers.tag - out)[:INDEX_BITS] < (read - out)[:INDEX_BITS]),
            here.eq(asked.bit_select(place, 1)),
            asked.eq((asked & ~bit(answers.answered, answers.tag))
                     | bit(asks, number)),
            landed.eq((landed & ~bit(moves, out)) | bit(answers.landed, answers.answered_tag)),
            out.eq(out + moves),
        ]
        count(m, self.counters, slots=moves)
        return moves

    def _ask(self, m: Module, slot, to_ask, again, filled, read, out, number, asks):
        """Make reads, and report read slots to the GPU; return whether anything moves."""
        packet, record, index = self.records.payload, Signal(ReadRecord), Signal(IndexRecord)
        length, told, ahead = Signal(Length), Signal(INDEX_BITS), Signal(INDEX_BITS)
        more, due, drained, choosing, tells = Signal(), Signal(), Signal(), Signal(), Signal()
        wait, repeats, calm = Signal(range(4)), Signal(), Signal()
        m.d.comb += [
            length.eq(to_ask.read_data),
            record.bytes.eq(length.beats * BEAT_BYTES), record.tag.eq(number),
            ahead.eq(out - told),
            packet.opcode.eq(Mux(tells, Opcode.INDEX, Opcode.READ)),
            packet.address.eq(Mux(tells, self.index_address, slot.address)),
            packet.record.eq(Mux(tells, index.as_value(), record.as_value())),
        ]
        # One cycle old: wait until the previous change has taken effect.
        m.d.sync += [
            more.eq((read != filled) & ((read - out)[:INDEX_BITS] < self._outstanding)),
            due.eq((ahead != 0) & (ahead >= self.every)), drained.eq((ahead != 0) & (read == out)),
            calm.eq(choosing),
        ]
        with m.FSM(name="asks"):
            with m.State("CHOOSE"):
                m.d.comb += choosing.eq(1)
                m.d.sync += [number.eq(Mux(again.o.valid, again.o.payload, read)), wait.eq(3),
                             index.index.eq(out)]
                with m.If(calm):
                    with m.If(again.o.valid):
                        m.d.comb += again.o.ready.eq(1)
                        m.d.sync += repeats.eq(1)
                        m.next = "ADDRESS"
                    with m.Elif(due | (drained & ~more)):
                        m.next = "TELL"
                    with m.Elif(more):
                        m.d.sync += repeats.eq(0)
                        m.next = "ADDRESS"
            with m.State("ADDRESS"):
                m.d.sync += wait.eq(wait - 1)
                with m.If(wait == 0):
                    m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += [self.records.valid.eq(1), asks.eq(self.records.ready)]
                with m.If(self.records.ready):
                    m.d.sync += read.eq(read + ~repeats)
                    m.next = "CHOOSE"
            with m.State("TELL"):
                m.d.comb += [tells.eq(1), self.records.valid.eq(1)]
                with m.If(self.records.ready):
                    m.d.sync += told.eq(index.index)
                    m.next = "CHOOSE"
        count(m, self.counters, reads=asks, repeats=asks & repeats,
              slots_told=tells & self.records.ready)
        return ~choosing | ~calm | more | due | drained

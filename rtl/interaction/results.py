"""Result packager: packs pooled vectors into packets to the host."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS, NicConfig
from rtl.formats import CREDIT_BITS, STEP_BITS, HostFrame, Opcode, PooledTag, RawBeat, Status
from rtl.gateable import Gateable
from rtl.interaction.records import PooledBeat
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import SkidBuffer, StreamFIFO
from rtl.stream.packing import QUARTER, placed

__all__ = ["ResultPackager"]

_Packet = data.StructLayout(
    {"sample": 32, "first_bag": 16, "last": 1, "step": STEP_BITS, "count": 16, "lost": 1})


class ResultPackager(Gateable, wiring.Component):
    """Pack the pooled vectors of one sample into POOLED packets.

    The payload of a packet is a :data:`rtl.formats.PooledTag` beat and as many whole vectors as fit
    into ``config.host_payload_beats``. A sample with more bags continues in the next packet.
    Vectors of 4 or 8 values share beats, the first one in the lowest lanes; unused lanes of the
    last beat are zero.

    A packet is held until its last vector has arrived, because the header counts vectors and the
    tag shows whether the sample ends. The buffer holds two packets, so one fills while the other
    leaves. A packet ends with a lost vector, whose status PEER is in its tag and in its header.

    Ports
    -----
    i: stream of :data:`~rtl.interaction.records.PooledBeat`.
    vector_beats: beats of a vector; may change while empty.
    vector_packing: log2 of the vectors that share a beat, 0 to 2; must be 0 if a vector has several
        beats.
    credit: copied into the header when it is made.
    headers: stream of :data:`rtl.formats.HostFrame`, one per packet; the last packet of a sample
        ``answers`` it.
    payload: stream of :data:`rtl.formats.RawBeat`, packets in the order of their headers.
    counters: ``samples`` that ended, ``packets``, ``vectors``.
    idle: inactive until an input changes. A packet that waits for its next vector does not clear
        it.

    Raises ``TypeError`` if ``config`` is not a :class:`~rtl.config.NicConfig`.
    """

    LATENCY = {
        ("last beat of a packet", "header"): 3,
        ("last beat of a packet", "tag beat"): 3,
    }
    RATE = "1 beat per cycle in, and out at most 1 tag beat more a packet"

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self._room, self._beats = config.host_payload_beats - 1, config.vector_beats
        super().__init__({
            "i": In(stream.Signature(PooledBeat)),
            "vector_beats": In(range(self._beats + 1)), "vector_packing": In(2),
            "credit": In(CREDIT_BITS),
            "headers": Out(stream.Signature(HostFrame)),
            "payload": Out(stream.Signature(RawBeat)),
            "counters": Out(CounterLayout("samples", "packets", "vectors")), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.beats = beats = StreamFIFO(RawBeat, 2 * (self._room + 1), style="bram")
        # A packet takes at least one beat, so there are never more packets than beats.
        m.submodules.packets = packets = StreamFIFO(_Packet, 2 * (self._room + 1))
        m.submodules.header_buffer = header = SkidBuffer(HostFrame)
        m.submodules.payload_buffer = payload = SkidBuffer(RawBeat)
        wiring.connect(m, header.o, wiring.flipped(self.headers))
        wiring.connect(m, payload.o, wiring.flipped(self.payload))

        # Input: count the vectors of a packet, and close it when it is full or the sample ends.
        item, take = self.i.payload, Signal()
        bags, in_packet = Signal(16), Signal(range(4 * self._room + 1))
        # Beats left in the packet, before and after the current vector.
        room, left = Signal(range(self._room + 1), init=self._room), Signal(range(self._room + 1))
        closes, full = Signal(), Signal()
        # Beats of two vectors, which do not change while a packet is open.
        pair = Signal(range(2 * self._beats + 1))
        m.d.sync += pair.eq(self.vector_beats << 1)
        # A beat is written when no other vector fits; vectors that share it are collected here.
        held, collected = Signal(BEAT_BITS, reset_less=True), Signal(BEAT_BITS)
        shared = self.vector_packing
        m.d.comb += [
            self.i.ready.eq(beats.i.ready & packets.i.ready),
            take.eq(self.i.valid & self.i.ready),
            left.eq(room - self.vector_beats),
            full.eq(~(Cat(shared.any(), shared[1]) & ~in_packet[:2]).any()),
            closes.eq(item.beat_last & (
                item.bag_last_of_sample | item.lost | (full & (room < pair)))),
            collected.eq(Cat(Mux(here, value, held.word_select(k, QUARTER)) for k, (here, value)
                             in enumerate(placed(item.data, in_packet, shared)))),
            beats.i.valid.eq(take & (full | closes)),
            beats.i.payload.data.eq(collected), beats.i.payload.last.eq(closes),
            packets.i.valid.eq(take & closes),
            packets.i.payload.sample.eq(item.sample), packets.i.payload.step.eq(item.step),
            packets.i.payload.first_bag.eq(bags - in_packet),
            packets.i.payload.last.eq(item.bag_last_of_sample),
            packets.i.payload.count.eq(in_packet + 1), packets.i.payload.lost.eq(item.lost),
        ]
        with m.If(take & (shared != 0)):
            m.d.sync += held.eq(collected)
        with m.If(take & item.beat_last):
            m.d.sync += [
                room.eq(Mux(closes, self._room, Mux(full, left, room))),
                in_packet.eq(Mux(closes, 0, in_packet + 1)),
                bags.eq(Mux(item.bag_last_of_sample, 0, bags + 1)),
            ]

        # Output: header and tag beat together, then the vectors.
        inside, start = Signal(), Signal()
        packet, tag = packets.o.payload, Signal(PooledTag)
        m.d.comb += [
            start.eq(~inside & packets.o.valid & header.i.ready & payload.i.ready),
            packets.o.ready.eq(start), header.i.valid.eq(start),
            header.i.payload.opcode.eq(Opcode.POOLED),
            header.i.payload.step.eq(packet.step), header.i.payload.count.eq(packet.count),
            header.i.payload.credit.eq(self.credit), header.i.payload.answers.eq(packet.last),
            tag.sample.eq(packet.sample), tag.first_bag.eq(packet.first_bag),
            tag.last.eq(packet.last), tag.status.eq(Mux(packet.lost, Status.PEER, 0)),
            header.i.payload.status.eq(tag.status),
        ]
        with m.If(inside):
            m.d.comb += [
                payload.i.valid.eq(beats.o.valid), payload.i.payload.eq(beats.o.payload),
                beats.o.ready.eq(payload.i.ready),
            ]
            with m.If(beats.o.valid & payload.i.ready & beats.o.payload.last):
                m.d.sync += inside.eq(0)
        with m.Else():
            m.d.comb += [payload.i.valid.eq(start), payload.i.payload.data.eq(tag)]
            with m.If(start):
                m.d.sync += inside.eq(1)

        count(m, self.counters, samples=start & packet.last, packets=start,
              vectors=Mux(start, packet.count, 0))
        # ``beats`` may hold beats of an open packet; its output register fills first.
        m.d.comb += self.idle.eq(packets.idle & ~inside & header.idle & payload.idle
                                 & ((beats.level == 0) | beats.o.valid))
        return m

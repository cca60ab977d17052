"""Intake: numbers new packets, and copies them into the pool as they leave."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS
from rtl.formats import NODE_BITS, SEQUENCE_BITS, FrameInfo, RawBeat
from rtl.network.link.layouts import LinkedFrame
from rtl.network.link.packets import HEADER_FIELDS, TIME_BITS, Kept, Record
from rtl.stream import SkidBuffer, StreamFIFO

__all__ = ["LinkIntake"]

AHEAD = 4
"""Packets that have numbers and whose payload has not arrived."""


class LinkIntake(wiring.Component):
    """Admit a packet when its window and the pool have room; later packets wait.

    Packets to a failed peer are discarded. Packets keep their order.

    Parameters
    ----------
    beats: beats of the pool.
    most: most beats of a packet.

    Ports
    -----
    headers, payload: new packets.
    header_out, payload_out: the same packets with their numbers; payload passes combinationally.
    node, lost, full, fits, sequence: destination of the waiting header; the destination has failed;
        its window is full; the pool has room; number of the packet. Combinational.
    number, claim: the header gets its number, and a claim to beats of the pool.
    again: admit no packet in this cycle, and repeat the decision about the header.
    take, data, beat: write access to the pool.
    kept: event :func:`rtl.network.link.packets.Kept`, in the cycle after the last beat.
    swallowed: event: a packet is discarded.
    time: cycle counter.
    stall_window, stall_pool: a packet waits for its window, or for the pool.
    idle: inactive until an input changes.
    """

    LATENCY = {("header", "the same header"): 2, ("payload beat", "the same beat"): 0,
               ("last payload beat", "the packet is kept"): 1}
    RATE = "1 header in 2 cycles, 1 beat per cycle"

    def __init__(self, beats: int, most: int):
        self._most, self._kept, self._record = most, Kept(beats, most), Record(beats, most)
        super().__init__({
            "headers": In(stream.Signature(FrameInfo)), "payload": In(stream.Signature(RawBeat)),
            "header_out": Out(stream.Signature(LinkedFrame)),
            "payload_out": Out(stream.Signature(RawBeat)),
            "node": Out(NODE_BITS), "lost": In(1), "full": In(1), "fits": In(1),
            "sequence": In(SEQUENCE_BITS), "number": Out(1), "claim": Out(1), "again": In(1),
            "take": Out(1), "data": Out(BEAT_BITS), "beat": In(range(beats)),
            "kept": Out(self._kept), "swallowed": Out(1), "time": In(TIME_BITS),
            "stall_window": Out(1), "stall_pool": Out(1), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        admitted = data.StructLayout({
            "node": NODE_BITS, "sequence": SEQUENCE_BITS, "swallow": 1,
            **{name: self._record[name].shape for name in HEADER_FIELDS}})
        m.submodules.header = header = SkidBuffer(LinkedFrame)
        m.submodules.order = order = StreamFIFO(admitted, AHEAD)
        wiring.connect(m, header.o, wiring.flipped(self.header_out))
        # Check, or check again, for use in the next cycle. Events in between can only add room.
        item = self.headers.payload
        checked, swallow, full, fits = (Signal(name=name) for name in (
            "checked", "swallow", "full", "fits"))
        sequence = Signal(SEQUENCE_BITS, reset_less=True)
        passing, may = Signal(), Signal()
        m.d.comb += [
            self.node.eq(item.destination),
            may.eq(checked & ~self.again & (swallow | (fits & ~full & header.i.ready))),
            passing.eq(may & order.i.ready), self.headers.ready.eq(passing),
            header.i.valid.eq(passing & ~swallow), order.i.valid.eq(may & checked),
            self.number.eq(passing & ~swallow), self.claim.eq(passing & ~swallow),
            self.swallowed.eq(passing & swallow),
            self.stall_window.eq(checked & ~swallow & full),
            self.stall_pool.eq(checked & ~swallow & ~full & ~fits),
            header.i.payload.sequence.eq(sequence), order.i.payload.node.eq(item.destination),
            order.i.payload.sequence.eq(sequence), order.i.payload.swallow.eq(swallow),
            *(header.i.payload[name].eq(item[name])
              for name in ("destination", *HEADER_FIELDS)),
            *(order.i.payload[name].eq(item[name])
              for name in HEADER_FIELDS),
        ]
        with m.If(passing | self.again):
            m.d.sync += checked.eq(0)
        with m.Elif(~may):
            m.d.sync += [checked.eq(self.headers.valid), swallow.eq(self.lost),
                         full.eq(self.full), fits.eq(self.fits), sequence.eq(self.sequence)]

        # Payload in transit. A packet without payload also takes a beat.
        packet, moves, ends = order.o.payload, Signal(), Signal()
        inside, first = Signal(), Signal.like(self.beat, reset_less=True)
        length = Signal.like(self.kept.record.beats)
        m.d.comb += [
            self.payload_out.valid.eq(
                self.payload.valid & order.o.valid & ~packet.swallow & ~packet.empty),
            self.payload_out.payload.eq(self.payload.payload),
            self.payload.ready.eq(order.o.valid & ~packet.empty
                                  & (packet.swallow | self.payload_out.ready)),
            moves.eq(order.o.valid & (packet.empty | (
                self.payload.valid & (packet.swallow | self.payload_out.ready)))),
            ends.eq(moves & (packet.empty | self.payload.payload.last)), order.o.ready.eq(ends),
            self.take.eq(moves & ~packet.swallow), self.data.eq(self.payload.payload.data),
        ]
        kept, record = Signal(self._kept), Signal(self._record)
        m.d.comb += [
            record.last.eq(self.beat), record.beats.eq(length + 1), record.tries.eq(1),
            record.time.eq(self.time), self.kept.eq(kept),
            *(record[name].eq(packet[name]) for name in HEADER_FIELDS),
        ]
        m.d.sync += [
            kept.valid.eq(ends & ~packet.swallow), kept.node.eq(packet.node),
            kept.sequence.eq(packet.sequence), kept.first.eq(Mux(inside, first, self.beat)),
            kept.record.eq(record),
        ]
        with m.If(moves):
            m.d.sync += [inside.eq(~ends), length.eq(Mux(ends, 0, length + 1))]
        with m.If(~inside):
            m.d.sync += first.eq(self.beat)
        m.d.comb += self.idle.eq(~self.headers.valid & header.idle & order.idle & ~kept.valid)
        return m

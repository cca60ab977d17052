"""Packet reader: sends closed packet buffers to a frame assembler, one after the other."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS
from rtl.formats import (
    BEAT_INDEX_BITS,
    CREDIT_BITS,
    NODE_BITS,
    STEP_BITS,
    FrameInfo,
    RawBeat,
)
from rtl.network.packet_pool import FreedBuffer
from rtl.stream import SkidBuffer

__all__ = ["PacketReader", "Ready"]


def Ready(buffers: int, units: int, beats: int, sized: bool = False) -> data.StructLayout:
    """Layout of a packet that may leave: ``beats`` of payload that contain ``units``; if ``sized``,
    with the ``final_beat`` of its header."""
    return data.StructLayout({
        "destination": NODE_BITS, "step": STEP_BITS, "buffer": range(buffers),
        "units": range(units + 1), "beats": range(beats + 1),
        **({"final_beat": BEAT_INDEX_BITS} if sized else {})})


class PacketReader(wiring.Component):
    """Send the header and then the beats of each packet, read from a RAM of latency 1.

    Parameters
    ----------
    opcode: opcode of the packets.
    buffers, units, beats, sized: see :func:`Ready`.
    bits: number of low bits of a beat that can be nonzero.
    least: fewest beats of a packet.

    Ports
    -----
    i: stream of :func:`Ready`.
    headers, payload: streams of :data:`rtl.formats.FrameInfo` and :data:`rtl.formats.RawBeat`; a
        header leaves before its payload.
    read_en, read_buffer, read_beat, read_units: read access to the RAM; ``read_units`` are the
        units of the packet.
    beat: {buffer, units, index} of the beat at the output of the RAM.
    data: that beat, formed from the RAM output combinationally.
    freed: event :func:`rtl.network.packet_pool.FreedBuffer`, with the read of the last beat.
    credit_node, credit: destination of a header, and the credit in it, combinational.
    idle: inactive until an input changes.
    """

    LATENCY = {
        ("packet", "its header"): 1,
        ("packet", "its first beat"): 3,
    }
    RATE = "1 beat per cycle, packets back to back"

    def __init__(self, opcode: int, buffers: int, units: int, beats: int, *,
                 bits: int = BEAT_BITS, least: int = 1, sized: bool = False):
        self._opcode, self._bits, self._least = opcode, bits, least
        self._index = range(beats)
        self._ready = Ready(buffers, units, beats, sized)
        super().__init__({
            "i": In(stream.Signature(self._ready)),
            "headers": Out(stream.Signature(FrameInfo)),
            "payload": Out(stream.Signature(RawBeat)),
            "read_en": Out(1), "read_buffer": Out(range(buffers)), "read_beat": Out(range(beats)),
            "read_units": Out(range(units + 1)),
            "beat": Out(data.StructLayout({
                "buffer": range(buffers), "units": range(units + 1), "index": range(beats)})),
            "data": In(BEAT_BITS), "freed": Out(FreedBuffer(buffers)),
            "credit_node": Out(NODE_BITS), "credit": In(CREDIT_BITS), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.headers = headers = SkidBuffer(FrameInfo)
        m.submodules.payload = payload = SkidBuffer(
            data.StructLayout(RawBeat.members | {"data": self._bits}))
        wiring.connect(m, headers.o, wiring.flipped(self.headers))
        m.d.comb += [
            self.payload.valid.eq(payload.o.valid), payload.o.ready.eq(self.payload.ready),
            *(self.payload.payload[name].eq(payload.o.payload[name]) for name in RawBeat.members),
        ]
        item, current, active = self.i.payload, Signal(self._ready, reset_less=True), Signal()
        index, ended = Signal(self._index), Signal(reset_less=True)
        beat = Signal.like(self.beat, reset_less=True)
        pull, finish, load = Signal(), Signal(), Signal()
        loaded, loaded_last = Signal(), Signal(reset_less=True)  # the RAM output holds a beat
        m.d.comb += [
            pull.eq(active & (~loaded | payload.i.ready)),
            finish.eq(pull & ended),
            self.i.ready.eq(headers.i.ready & (~active | finish)),
            load.eq(self.i.valid & self.i.ready),
            headers.i.valid.eq(load),
            headers.i.payload.opcode.eq(self._opcode),
            headers.i.payload.destination.eq(item.destination),
            headers.i.payload.step.eq(item.step), headers.i.payload.count.eq(item.units),
            headers.i.payload.credit.eq(self.credit), self.credit_node.eq(item.destination),
            self.read_en.eq(pull), self.read_buffer.eq(current.buffer), self.read_beat.eq(index),
            self.read_units.eq(current.units),
            self.freed.valid.eq(finish), self.freed.buffer.eq(current.buffer),
            payload.i.valid.eq(loaded), payload.i.payload.data.eq(self.data),
            payload.i.payload.last.eq(loaded_last), self.beat.eq(beat),
            self.idle.eq(~active & ~loaded & headers.idle & payload.idle),
        ]
        if "final_beat" in self._ready.members:
            m.d.comb += headers.i.payload.final_beat.eq(item.final_beat)
        with m.If(pull):
            m.d.sync += [
                loaded.eq(1), loaded_last.eq(ended), beat.buffer.eq(current.buffer),
                beat.units.eq(current.units), beat.index.eq(index),
                index.eq(Mux(ended, 0, index + 1)),
            ]
        with m.Elif(payload.i.ready):
            m.d.sync += loaded.eq(0)
        # Computed one cycle ahead, because much logic depends on the end of a packet.
        with m.If(load):
            m.d.sync += ended.eq(item.beats == 1 if self._least == 1 else 0)
        with m.Elif(pull):
            m.d.sync += ended.eq(index + 2 == current.beats)
        with m.If(load):
            m.d.sync += [current.eq(item), active.eq(1)]
        with m.Elif(finish):
            m.d.sync += active.eq(0)
        return m

"""Stores of the packagers: records by lane, and vectors that may share beats."""

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.config import BEAT_BITS
from rtl.formats import RECORD_BITS, RECORDS_PER_BEAT
from rtl.memory import Ram
from rtl.stream.packing import QUARTER, Placing, placing, written

__all__ = ["RecordStore", "VectorStore", "held_lanes", "reading", "style_of"]


def style_of(depth: int) -> str:
    """Return the style of a lane of ``depth`` words."""
    return "lutram" if depth <= 64 else "bram"


def reading(buffers: int, beats: int) -> dict:
    """Return the ports that select a beat, as :class:`rtl.network.PacketReader` drives them."""
    return {"read_en": In(1), "read_buffer": In(range(buffers)), "read_beat": In(range(beats))}


def held_lanes(m: Module, read_en: Value, beat: Value, units: Value, lanes: int) -> Signal:
    """Return which of ``lanes`` hold one of the ``units`` of a buffer, in the ``beat`` that is
    read; computed during the read."""
    held, beats, rest = Signal(lanes), units[3:], units[:3]
    whole, final = Signal(), Signal()
    m.d.comb += [whole.eq(beat < beats), final.eq(beat == beats)]
    with m.If(read_en):
        # A partial beat never has a record in the last lane.
        m.d.sync += held.eq(Cat(
            whole | (final & (k < rest) if k + 1 < RECORDS_PER_BEAT else 0)
            for k in range(lanes)))
    return held


class RecordStore(wiring.Component):
    """Store records of packet buffers: written one by one, read as beats of eight.

    Parameters
    ----------
    buffers: number of buffers.
    beats: beats of records in a buffer.
    lanes: most records of a beat.

    Ports
    -----
    write, buffer, position, record: write one record.
    read_en, read_buffer, read_beat: read one beat.
    read_units: number of records in the buffer that is read.
    data: the beat, zero after the last record.
    shares: event: the record written in the previous cycle is not the first one of its beat.
    """

    LATENCY = {
        ("write", "record in the RAM"): 2,
        ("read", "its data"): 1,
    }

    def __init__(self, buffers: int, beats: int, lanes: int = RECORDS_PER_BEAT):
        self._buffers, self._beats, self._lanes = buffers, beats, lanes
        most = beats * RECORDS_PER_BEAT
        super().__init__({
            "write": In(1), "buffer": In(range(buffers)), "position": In(range(most)),
            "record": In(RECORD_BITS), **reading(buffers, beats),
            "read_units": In(range(most + 1)), "data": Out(BEAT_BITS), "shares": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        depth = self._buffers << ceil_log2(self._beats)
        write, lane = Signal(), Signal(3, reset_less=True)
        address = Signal(range(max(2, depth)), reset_less=True)
        value = Signal(RECORD_BITS, reset_less=True)
        m.d.sync += [
            write.eq(self.write), value.eq(self.record), lane.eq(self.position[:3]),
            address.eq(Cat(self.position[3:], self.buffer)),
        ]
        parts = Signal(data.ArrayLayout(RECORD_BITS, RECORDS_PER_BEAT))
        held = held_lanes(m, self.read_en, self.read_beat, self.read_units, self._lanes)
        for k in range(self._lanes):
            m.submodules[f"lane{k}"] = ram = Ram(RECORD_BITS, depth, style=style_of(depth))
            m.d.comb += [
                ram.write_en.eq(write & (lane == k)), ram.write_addr.eq(address),
                ram.write_data.eq(value), ram.read_en.eq(self.read_en),
                ram.read_addr.eq(Cat(self.read_beat, self.read_buffer)),
            ]
            with m.If(held[k]):
                m.d.comb += parts[k].eq(ram.read_data)
        m.d.comb += [self.data.eq(parts), self.shares.eq(write & (lane != 0))]
        return m


class VectorStore(wiring.Component):
    """Store beats of vectors of packet buffers. Vectors of 4 or 8 values share beats
    (:mod:`rtl.stream.packing`).

    Parameters
    ----------
    buffers: number of buffers.
    beats: beats of a buffer.
    positions: positions of a buffer.
    first: beat of position 0.

    Ports
    -----
    write, buffer, position, vector: write one beat.
    vector_packing: log2 of the vectors that share a beat.
    read_en, read_buffer, read_beat: read one beat.
    data: the beat.
    """

    LATENCY = {
        ("write", "beat in the RAM"): 2,
        ("read", "its data"): 1,
    }

    def __init__(self, buffers: int, beats: int, positions: int, first: int = 0):
        self._buffers, self._beats, self._first = buffers, beats, first
        super().__init__({
            "write": In(1), "buffer": In(range(buffers)), "position": In(range(positions)),
            "vector": In(BEAT_BITS), "vector_packing": In(2), **reading(buffers, beats),
            "data": Out(BEAT_BITS)})

    def elaborate(self, platform) -> Module:
        m = Module()
        stride = ceil_log2(self._beats)
        depth = self._buffers << stride
        write, vector = Signal(), Signal(BEAT_BITS, reset_less=True)
        buffer = Signal.like(self.buffer, reset_less=True)
        # The address is computed one cycle before the write.
        beat, where = Signal(stride, reset_less=True), Signal(Placing, reset_less=True)
        m.d.sync += [
            write.eq(self.write), vector.eq(self.vector), buffer.eq(self.buffer),
            beat.eq((self.position >> self.vector_packing) + self._first),
            where.eq(placing(self.position, self.vector_packing)),
        ]
        read = []
        for quarter, value in enumerate(written(vector, where)):
            m.submodules[f"vectors{quarter}"] = ram = Ram(QUARTER, depth, style=style_of(depth))
            m.d.comb += [
                ram.write_en.eq(write & where.writes[quarter]),
                ram.write_addr.eq(Cat(beat, buffer)),
                ram.write_data.eq(value), ram.read_en.eq(self.read_en),
                ram.read_addr.eq(Cat(self.read_beat, self.read_buffer)),
            ]
            read.append(ram.read_data)
        m.d.comb += self.data.eq(Cat(read))
        return m

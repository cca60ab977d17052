"""Word store: buffers of packets of bags, written by segments and read as beats."""

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.config import BEAT_BITS
from rtl.formats import RECORD_BITS, RECORDS_PER_BEAT
from rtl.memory import Ram
from rtl.network.packet_store import held_lanes, reading, style_of

__all__ = ["WordStore"]


class WordStore(wiring.Component):
    """Store segments in packet buffers: a segment begins at any word of a beat and is written in
    one cycle, to up to two beats.

    Each of the 8 lanes is a RAM of 64 bits with its own address. The words of a segment are rotated
    from their places in the input to their places in the packet.

    Parameters
    ----------
    buffers: number of buffers.
    beats: beats of a buffer.

    Ports
    -----
    write, buffer, position: write a segment; its first word is word ``position`` of the buffer.
    words, first, size: the segment, words ``first`` to ``first + size - 1`` of ``words``.
    read_en, read_buffer, read_beat: read one beat.
    read_units: number of words in the buffer that is read.
    data: the beat, zero after the last word.
    """

    LATENCY = {
        ("write", "segment in the RAMs"): 3,
        ("read", "its data"): 1,
    }
    RATE = "1 segment per cycle"

    def __init__(self, buffers: int, beats: int):
        self._buffers, self._beats = buffers, beats
        most = beats * RECORDS_PER_BEAT
        super().__init__({
            "write": In(1), "buffer": In(range(buffers)), "position": In(range(most)),
            "words": In(BEAT_BITS), "first": In(range(RECORDS_PER_BEAT)),
            "size": In(range(RECORDS_PER_BEAT + 1)), **reading(buffers, beats),
            "read_units": In(range(most + 1)), "data": Out(BEAT_BITS)})

    def elaborate(self, platform) -> Module:
        m = Module()
        stride = ceil_log2(self._beats)
        depth = self._buffers << stride
        # Stage 1: lanes, sources and addresses; stage 2: the rotated words.
        words = Signal(data.ArrayLayout(RECORD_BITS, RECORDS_PER_BEAT), reset_less=True)
        m.d.sync += words.eq(self.words)
        parts = Signal(data.ArrayLayout(RECORD_BITS, RECORDS_PER_BEAT))
        held = held_lanes(m, self.read_en, self.read_beat, self.read_units, RECORDS_PER_BEAT)
        start, beat = self.position[:3], self.position[3:]
        for k in range(RECORDS_PER_BEAT):
            # Number of the lane's word in the segment, and its place in the input.
            number, source = Signal(3, name=f"number{k}"), Signal(3, name=f"source{k}")
            source1 = Signal(3, reset_less=True, name=f"selected{k}")
            address1, address2 = (Signal(range(max(2, depth)), reset_less=True,
                                         name=f"address{k}_{stage}") for stage in (1, 2))
            writes1, writes2 = (Signal(name=f"writes{k}_{stage}") for stage in (1, 2))
            value = Signal(RECORD_BITS, reset_less=True, name=f"value{k}")
            row = Signal(stride, name=f"row{k}")
            m.d.comb += [number.eq(k - start), source.eq(number + self.first),
                         row.eq(beat + (k < start))]
            m.d.sync += [
                source1.eq(source), writes1.eq(self.write & (number < self.size)),
                address1.eq(Cat(row, self.buffer)),
                value.eq(Array(words)[source1]), writes2.eq(writes1), address2.eq(address1),
            ]
            m.submodules[f"lane{k}"] = ram = Ram(RECORD_BITS, depth, style=style_of(depth))
            m.d.comb += [
                ram.write_en.eq(writes2), ram.write_addr.eq(address2), ram.write_data.eq(value),
                ram.read_en.eq(self.read_en),
                ram.read_addr.eq(Cat(self.read_beat, self.read_buffer)),
            ]
            with m.If(held[k]):
                m.d.comb += parts[k].eq(ram.read_data)
        m.d.comb += self.data.eq(parts)
        return m

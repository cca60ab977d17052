"""Stores of the packagers: records by lane, and vectors that may share beats."""

from amaranth.hdl import C, Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.config import BEAT_BITS
from rtl.formats import RECORD_BITS, RECORDS_PER_BEAT
from rtl.memory import Ram
from rtl.stream.packing import QUARTER, placed

__all__ = ["RecordStore", "VectorStore"]


def _style(depth: int) -> str:
    return "lutram" if depth <= 64 else "bram"


def _reading(buffers: int, beats: int) -> dict:
    """Return the ports that select a beat, as :class:`rtl.network.PacketReader` drives them."""
    return {"read_en": In(1), "read_buffer": In(range(buffers)), "read_beat": In(range(beats))}


class RecordStore(wiring.Component):
    """Records of packet buffers, written one by one and read as beats of eight.

    Latency: see ``LATENCY``.

    Parameters: ``buffers``; ``beats`` of records in a buffer; ``lanes``: records that a beat can
    hold.

    Ports: ``write``, ``buffer``, ``position``, ``record``; ``read_en``, ``read_buffer``,
    ``read_beat``; ``index`` and ``units``, the number of the beat in the RAM's output and the
    records in its buffer, and ``data``, that beat, zero after the last record.
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
            "record": In(RECORD_BITS), **_reading(buffers, beats),
            "index": In(range(beats)), "units": In(range(most + 1)), "data": Out(BEAT_BITS)})

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
        for k in range(self._lanes):
            m.submodules[f"lane{k}"] = ram = Ram(RECORD_BITS, depth, style=_style(depth))
            m.d.comb += [
                ram.write_en.eq(write & (lane == k)), ram.write_addr.eq(address),
                ram.write_data.eq(value), ram.read_en.eq(self.read_en),
                ram.read_addr.eq(Cat(self.read_beat, self.read_buffer)),
            ]
            with m.If(Cat(C(k, 3), self.index) < self.units):
                m.d.comb += parts[k].eq(ram.read_data)
        m.d.comb += self.data.eq(parts)
        return m


class VectorStore(wiring.Component):
    """Beats of vectors of packet buffers; vectors of 4 or 8 values share them
    (:mod:`rtl.stream.packing`).

    Latency: see ``LATENCY``.

    Parameters: ``buffers``; ``beats`` of a buffer; ``positions`` of a buffer; ``first``, the beat
    of position 0.

    Ports: ``write``, ``buffer``, ``position``, ``vector``; ``vector_packing``; ``read_en``,
    ``read_buffer``, ``read_beat``; ``data``, the beat read.
    """

    LATENCY = {
        ("write", "beat in the RAM"): 2,
        ("read", "its data"): 1,
    }

    def __init__(self, buffers: int, beats: int, positions: int, first: int = 0):
        self._buffers, self._beats, self._first = buffers, beats, first
        super().__init__({
            "write": In(1), "buffer": In(range(buffers)), "position": In(range(positions)),
            "vector": In(BEAT_BITS), "vector_packing": In(2), **_reading(buffers, beats),
            "data": Out(BEAT_BITS)})

    def elaborate(self, platform) -> Module:
        m = Module()
        stride = ceil_log2(self._beats)
        depth = self._buffers << stride
        write, written = Signal(), Signal(BEAT_BITS, reset_less=True)
        buffer, position = (Signal.like(port, reset_less=True, name=name) for name, port in (
            ("buffer", self.buffer), ("position", self.position)))
        beat = Signal(stride)
        m.d.sync += [
            write.eq(self.write), written.eq(self.vector), buffer.eq(self.buffer),
            position.eq(self.position),
        ]
        m.d.comb += beat.eq((position >> self.vector_packing) + self._first)
        read = []
        for quarter, (enable, value) in enumerate(
                placed(written, position, self.vector_packing)):
            m.submodules[f"vectors{quarter}"] = ram = Ram(QUARTER, depth, style=_style(depth))
            m.d.comb += [
                ram.write_en.eq(write & enable), ram.write_addr.eq(Cat(beat, buffer)),
                ram.write_data.eq(value), ram.read_en.eq(self.read_en),
                ram.read_addr.eq(Cat(self.read_beat, self.read_buffer)),
            ]
            read.append(ram.read_data)
        m.d.comb += self.data.eq(Cat(read))
        return m

"""Vector decoder: vectors of 16-bit values or 8-bit codes become vectors of float32."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS, LANES
from rtl.float import (
    CODE_CONVERTER_LATENCY,
    HALF_CONVERTER_LATENCY,
    CodeConverter,
    HalfConverter,
)
from rtl.float.delay import delayed
from rtl.formats import ValueFormat
from rtl.interaction.code_reader import CodeReader
from rtl.shared import Shared
from rtl.stream import Level, StreamFIFO

__all__ = ["VectorDecoder"]

_HALF = BEAT_BITS // 2


class VectorDecoder(wiring.Component):
    """Convert the vectors of the hold buffer to float32.

    A beat of 16-bit values becomes two beats of float32, the values of the lower lanes first; the
    lower half of a lane contains its first value. Of a vector with an odd number of beats of
    float32, the last beat in becomes one beat. Vectors of int8: see
    :class:`~rtl.interaction.code_reader.CodeReader`.

    Parameters: ``shape``, a :func:`~rtl.interaction.records.slot_beat`; ``beats`` of the longest
        vector; ``codes``: also vectors of int8.

    Ports
    -----
    i: stream of ``shape``.
    value_format: a :class:`~rtl.formats.ValueFormat`; with ``FLOAT32`` beats pass unchanged.
    value_beats: beats of a vector at ``o``.
    value_count (``codes``): values of a vector of int8; behind them, ``o`` has +0. All three may
        change while idle.
    o: stream of ``shape``; ``beat_last`` ends the float32 vector.
    idle: no beat is inside.
    """

    LATENCY = {
        ("beat", "its first beat of float32"): 1 + HALF_CONVERTER_LATENCY + 2,
        ("last beat of an int8 vector", "its first beat of float32"):
            CodeReader.LATENCY["last beat of a vector", "its first codes"]
            + CODE_CONVERTER_LATENCY + 2}
    RATE = "1 beat out per cycle"
    OUT_BEATS = 16
    """Beats between their choice and their output: each takes a place for eight cycles."""
    OUT_CODES = 32
    """The same with ``codes``: each takes a place for 18 cycles."""

    def __init__(self, shape: data.StructLayout, beats: int, *, codes: bool = False):
        self._shape, self._beats, self._codes = shape, beats, codes
        super().__init__({
            "i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)),
            "value_format": In(ValueFormat), "value_beats": In(range(beats + 1)), "idle": Out(1)}
            | ({"value_count": In(range(LANES * beats + 1))} if codes else {}))

    def elaborate(self, platform) -> Module:
        m = Module()
        places = self.OUT_CODES if self._codes else self.OUT_BEATS
        m.submodules.output = output = StreamFIFO(self._shape, places)
        m.submodules.credit = credit = Level(places, init=places)
        wiring.connect(m, output.o, wiring.flipped(self.o))

        # ``chosen`` keeps the upper lanes of a beat until they leave, while ``upper``.
        short, item = self.value_format != ValueFormat.FLOAT32, self.i.payload
        upper, taken, some, offered = Signal(), Signal(), Signal(), Signal()
        chosen, ends = Signal(self._shape, reset_less=True), Signal(reset_less=True)
        m.d.comb += [
            self.i.ready.eq(credit.some & ~upper), some.eq(offered | upper),
            taken.eq(some & credit.some), credit.down.eq(taken), offered.eq(self.i.valid),
            credit.up.eq(self.o.valid & self.o.ready),
            self.idle.eq(credit.level[-1]),
        ]
        with m.If(credit.some):
            with m.If(upper):
                m.d.sync += [chosen.data[:_HALF].eq(chosen.data[_HALF:]),
                             chosen.beat_last.eq(ends), upper.eq(0)]
            with m.Elif(offered):
                two = short & ~(item.beat_last & self.value_beats[0])
                m.d.sync += [chosen.eq(item), chosen.beat_last.eq(item.beat_last & ~two),
                             ends.eq(item.beat_last), upper.eq(two)]

        # Beats beside the converters, whose pipelines have no enable: the FIFO has room.
        valid = _later(m, taken, 1 + HALF_CONVERTER_LATENCY)
        beat = delayed(m, chosen, HALF_CONVERTER_LATENCY, "beat")
        values, converted = [], Signal()
        m.d.sync += converted.eq(short)  # A register, for the many bits.
        for lane in range(LANES):
            converter = Shared(HalfConverter(), "half_converter")
            m.submodules[f"converter{lane}"] = converter
            m.d.comb += [converter.i.eq(chosen.data.word_select(lane, 16)),
                         converter.bfloat.eq(self.value_format == ValueFormat.BFLOAT16)]
            values.append(converter.o)
        m.d.comb += [output.i.valid.eq(valid), output.i.payload.eq(beat)]
        with m.If(converted):
            m.d.comb += output.i.payload.data.eq(Cat(values))
        if self._codes:
            self._convert_codes(m, output.i, credit, offered)
        return m

    def _convert_codes(self, m: Module, out, credit: Level, offered: Signal) -> None:
        """Convert the vectors at ``i`` into ``out`` while they are int8; otherwise they are
        ``offered``."""
        m.submodules.reader = reader = CodeReader(self._shape, self._beats)
        coded = Signal()
        m.d.sync += coded.eq(self.value_format >= ValueFormat.INT8)
        m.d.comb += [
            reader.i.valid.eq(self.i.valid & coded), reader.i.payload.eq(self.i.payload),
            reader.row.eq(self.value_format == ValueFormat.INT8_ROW),
            reader.count.eq(self.value_count), reader.go.eq(credit.some),
        ]
        with m.If(coded):
            m.d.comb += [offered.eq(0), self.i.ready.eq(reader.i.ready),
                         credit.down.eq(reader.taken),
                         self.idle.eq(credit.level[-1] & reader.idle)]
        m.submodules.code_converter = converter = CodeConverter()
        m.d.comb += [converter.codes.eq(reader.codes), converter.scale.eq(reader.scale),
                     converter.bias.eq(reader.bias)]
        valid = _later(m, reader.valid, CODE_CONVERTER_LATENCY)
        slot, here = (delayed(m, beside, CODE_CONVERTER_LATENCY, name) for beside, name in (
            (reader.slot, "slot"), (reader.here, "here")))
        with m.If(coded):
            m.d.comb += [out.valid.eq(valid), out.payload.eq(slot), out.payload.data.eq(Cat(
                Mux(here[lane], converter.o.word_select(lane, 32), 0) for lane in range(LANES)))]


def _later(m: Module, flag: Value, cycles: int) -> Value:
    """Return ``flag`` after ``cycles``, 0 after reset."""
    flags = Signal(cycles)
    m.d.sync += flags.eq(Cat(flag, flags))
    return Value.cast(flags[-1])

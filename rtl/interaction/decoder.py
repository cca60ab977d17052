"""Vector decoder: vectors of 16-bit values, two in each lane, become vectors of float32."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS, LANES
from rtl.float import HALF_CONVERTER_LATENCY, HalfConverter
from rtl.formats import ValueFormat
from rtl.shared import Shared
from rtl.stream import Level, StreamFIFO

__all__ = ["VectorDecoder"]

_HALF = BEAT_BITS // 2


class VectorDecoder(wiring.Component):
    """Convert the vectors of the hold buffer to float32.

    A beat of 16-bit values becomes two beats of float32, the values of the lower lanes first; the
    lower half of a lane contains its first value. Of a vector with an odd number of beats of
    float32, the last beat in becomes one beat.

    Parameters: ``shape``, a :func:`~rtl.interaction.records.slot_beat`; ``beats`` of the longest
        vector.

    Ports
    -----
    i: stream of ``shape``.
    value_format: a :class:`~rtl.formats.ValueFormat`; with ``FLOAT32`` beats pass unchanged.
    value_beats: beats of a vector at ``o``. Both may change while idle.
    o: stream of ``shape``; ``beat_last`` ends the float32 vector.
    idle: no beat is inside.
    """

    LATENCY = {("beat", "its first beat of float32"): 1 + HALF_CONVERTER_LATENCY + 2}
    RATE = "1 beat out per cycle"
    OUT_BEATS = 16
    """Beats between their choice and their output: each takes a place for eight cycles."""

    def __init__(self, shape: data.StructLayout, beats: int):
        self._shape = shape
        super().__init__({
            "i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)),
            "value_format": In(ValueFormat), "value_beats": In(range(beats + 1)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.output = output = StreamFIFO(self._shape, self.OUT_BEATS)
        m.submodules.credit = credit = Level(self.OUT_BEATS, init=self.OUT_BEATS)
        wiring.connect(m, output.o, wiring.flipped(self.o))

        # ``chosen`` keeps the upper lanes of a beat until they leave, while ``upper``.
        short, item = self.value_format != ValueFormat.FLOAT32, self.i.payload
        upper, taken, some = Signal(), Signal(), Signal()
        chosen, ends = Signal(self._shape, reset_less=True), Signal(reset_less=True)
        m.d.comb += [
            self.i.ready.eq(credit.some & ~upper), some.eq(self.i.valid | upper),
            taken.eq(some & credit.some), credit.down.eq(taken),
            credit.up.eq(self.o.valid & self.o.ready),
            self.idle.eq(credit.level[-1]),
        ]
        with m.If(credit.some):
            with m.If(upper):
                m.d.sync += [chosen.data[:_HALF].eq(chosen.data[_HALF:]),
                             chosen.beat_last.eq(ends), upper.eq(0)]
            with m.Elif(self.i.valid):
                two = short & ~(item.beat_last & self.value_beats[0])
                m.d.sync += [chosen.eq(item), chosen.beat_last.eq(item.beat_last & ~two),
                             ends.eq(item.beat_last), upper.eq(two)]

        # Beats beside the converters, whose pipelines have no enable: the FIFO has room.
        valid = [Signal(name=f"valid{n}") for n in range(1 + HALF_CONVERTER_LATENCY)]
        beats = [chosen, *(Signal(self._shape, name=f"beat{n}", reset_less=True)
                           for n in range(HALF_CONVERTER_LATENCY))]
        m.d.sync += [valid[0].eq(taken), *(after.eq(before) for line in (valid, beats)
                                           for before, after in pairwise(line))]
        values, converted = [], Signal()
        m.d.sync += converted.eq(short)  # A register, for the many bits.
        for lane in range(LANES):
            converter = Shared(HalfConverter(), "half_converter")
            m.submodules[f"converter{lane}"] = converter
            m.d.comb += [converter.i.eq(chosen.data.word_select(lane, 16)),
                         converter.bfloat.eq(self.value_format == ValueFormat.BFLOAT16)]
            values.append(converter.o)
        m.d.comb += [output.i.valid.eq(valid[-1]), output.i.payload.eq(beats[-1])]
        with m.If(converted):
            m.d.comb += output.i.payload.data.eq(Cat(values))
        return m

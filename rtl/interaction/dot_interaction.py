"""Dot interaction: computes one value of the result from every pair of a sample's vectors."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS, NicConfig
from rtl.formats import STEP_BITS
from rtl.interaction.dot_array import DotArray
from rtl.interaction.dot_schedule import DotSchedule
from rtl.interaction.flatten import Flattener
from rtl.interaction.records import ResultBeat, VectorInBeat
from rtl.interaction.slices import SliceLoader
from rtl.interaction.transpose import Transposer
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import SkidBuffer, StreamFIFO

__all__ = ["DotInteraction"]

_DenseBeat = data.StructLayout(
    {"data": BEAT_BITS, "sample": 32, "step": STEP_BITS, "vector_last": 1, "dots": 1})


class DotInteraction(wiring.Component):
    """Compute the dot product of every two vectors of a sample (DLRM's dot interaction; paper,
    section 4.1.3).

    The dense vector waits for its dots. All vectors, including the dense vector, pass the transpose
    (only if a vector may have several beats), are recoded, and are stored in a ring that the dot
    units read. Dots are computed in result order, row-major with j < i, or j <= i with ``itself``;
    flattening packs them. The order of additions is that of :class:`~rtl.float.DotProduct`, slices
    in ascending order. Successive samples overlap: while a sample is multiplied, the next one is
    loaded and the previous one leaves. For the rate with small samples, see
    :class:`~rtl.interaction.dot_schedule.DotSchedule`.

    Vectors beyond ``interaction_vectors`` are dropped and counted; the result is that of the other
    vectors.

    Ports
    -----
    i: stream of :data:`~rtl.interaction.records.VectorInBeat`. The result of a sample of one vector
        is its dense vector (and, with ``itself``, one dot).
    itself: pair vectors with themselves too; may change while empty.
    o: stream of :data:`~rtl.interaction.records.ResultBeat`, samples in order.
    counters: ``samples`` whose results have left, ``beats_in``, ``beats_out``; ``dropped`` beats;
        ``stall_input``, cycles in which an input beat waits; ``stall_output``, cycles in which a
        group of dots waits for room.
    idle: inactive until an input changes. An unfinished sample that waits for its next beat does
        not clear it.

    Raises ``TypeError`` if ``config`` is not a :class:`~rtl.config.NicConfig`.
    """

    LATENCY = {
        ("last of two vectors", "last beat of the result, max_dimension 16"): 39,
        ("last of two vectors", "last beat of the result, max_dimension 32"): 48,
        ("last of 27 vectors of 16 values", "last beat of the result, with 13 dot_units"): 65,
    }
    RATE = (
        "a sample takes as many cycles as the largest of its beats in, of its beats out and, "
        "for each slice, of its pairs divided by dot_units and rounded up")
    ROOM = 64
    """Beats of dots, and of dense vectors, that may wait: the depth of LUTRAM. A group reserves its
    beat when it begins, about 40 cycles before the beat is ready."""

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self._config = config
        super().__init__({
            "i": In(stream.Signature(VectorInBeat)), "itself": In(1),
            "o": Out(stream.Signature(ResultBeat)),
            "counters": Out(CounterLayout(
                "samples", "beats_in", "beats_out", "dropped", "stall_input", "stall_output")),
            "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        m.submodules.dense = dense = StreamFIFO(_DenseBeat, self.ROOM, style="lutram")
        m.submodules.loader = loader = SliceLoader(config)
        m.submodules.schedule = schedule = DotSchedule(config, self.ROOM)
        m.submodules.array = array = DotArray(config)
        m.submodules.flattener = flattener = Flattener(config, self.ROOM)
        m.submodules.output = output = SkidBuffer(ResultBeat)
        wiring.connect(m, loader.slices, schedule.slices)
        wiring.connect(m, output.o, wiring.flipped(self.o))

        # Input: a dense vector is stored for the result, and paired like the other vectors.
        item, place = self.i.payload, Signal(range(config.interaction_vectors + 1))
        void, take, ready = Signal(), Signal(), Signal()
        m.d.comb += [
            void.eq(place == config.interaction_vectors),
            self.i.ready.eq(ready & dense.i.ready), take.eq(self.i.valid & self.i.ready),
            dense.i.valid.eq(take & (place == 0)),
            dense.i.payload.data.eq(item.data), dense.i.payload.sample.eq(item.sample),
            dense.i.payload.step.eq(item.step), dense.i.payload.vector_last.eq(item.vector_last),
            dense.i.payload.dots.eq(~item.sample_last | self.itself),
        ]
        with m.If(take & item.vector_last):
            m.d.sync += place.eq(Mux(item.sample_last, 0, place + ~void))
        if config.vector_beats > 1:
            m.submodules.transposer = transposer = Transposer(config)
            wiring.connect(m, transposer.o, loader.i)
            m.d.comb += [
                ready.eq(transposer.i.ready), transposer.i.valid.eq(take),
                transposer.i.payload.data.eq(item.data), transposer.i.payload.void.eq(void),
                transposer.i.payload.vector_last.eq(item.vector_last),
                transposer.i.payload.sample_last.eq(item.sample_last),
            ]
            transposing = ~transposer.idle
        else:
            m.d.comb += [
                ready.eq(loader.i.ready), loader.i.valid.eq(take),
                loader.i.payload.data.eq(item.data), loader.i.payload.void.eq(void),
                loader.i.payload.last.eq(item.sample_last), loader.i.payload.first.eq(1),
                loader.i.payload.final.eq(1),
            ]
            transposing = 0

        m.d.comb += [
            loader.itself.eq(self.itself), schedule.itself.eq(self.itself),
            loader.released.eq(schedule.released),
            array.write_en.eq(loader.write_en), array.write_addr.eq(loader.write_addr),
            array.write_data.eq(loader.write_data),
            array.valid.eq(schedule.valid), array.group.eq(schedule.group),
            array.rows.eq(schedule.rows), array.columns.eq(schedule.columns),
            flattener.valid.eq(array.o_valid), flattener.group.eq(array.o_group),
            flattener.dots.eq(array.dots),
            schedule.left.eq(flattener.o.valid & flattener.o.ready),
        ]

        # Output: the dense vector, then its dots.
        dots, sample, step = Signal(), Signal(32), Signal(STEP_BITS)
        # An inverted copy for the data, to leave the control register with few loads.
        dense_data = Signal(init=1)
        result = output.i.payload
        m.d.comb += result.data.eq(
            Mux(dense_data, dense.o.payload.data, flattener.o.payload.data))
        with m.If(dots):
            m.d.comb += [
                output.i.valid.eq(flattener.o.valid), flattener.o.ready.eq(output.i.ready),
                result.last.eq(flattener.o.payload.last),
                result.sample.eq(sample), result.step.eq(step),
            ]
        with m.Else():
            m.d.comb += [
                output.i.valid.eq(dense.o.valid), dense.o.ready.eq(output.i.ready),
                result.sample.eq(dense.o.payload.sample),
                result.last.eq(dense.o.payload.vector_last & ~dense.o.payload.dots),
                result.step.eq(dense.o.payload.step),
            ]
        if config.link:
            self._lose(m, take, output)
        with m.If(output.i.valid & output.i.ready):
            with m.If(dots):
                m.d.sync += [dots.eq(~result.last), dense_data.eq(result.last)]
            with m.Else():
                follow = dense.o.payload.vector_last & dense.o.payload.dots
                m.d.sync += [
                    dots.eq(follow), dense_data.eq(~follow),
                    sample.eq(dense.o.payload.sample), step.eq(dense.o.payload.step),
                ]

        out = self.o.valid & self.o.ready
        count(m, self.counters, samples=out & self.o.payload.last, beats_in=take, beats_out=out,
              dropped=take & void, stall_input=self.i.valid & ~self.i.ready,
              stall_output=schedule.waiting)
        m.d.comb += self.idle.eq(
            dense.idle & loader.idle & schedule.idle & array.idle & flattener.idle & output.idle
            & ~transposing)
        return m

    def _lose(self, m: Module, take: Signal, output: SkidBuffer) -> None:
        """Mark each result whose sample has lost a bag."""
        # Every sample has a dense vector that waits, unless its result is leaving.
        m.submodules.losses = losses = StreamFIFO(1, 2 * self.ROOM, style="lutram")
        item, before = self.i.payload, Signal()
        m.d.comb += [
            losses.i.valid.eq(take & item.vector_last & item.sample_last),
            losses.i.payload.eq(before | item.lost), output.i.payload.lost.eq(losses.o.payload),
            losses.o.ready.eq(output.i.valid & output.i.ready & output.i.payload.last),
        ]
        with m.If(take):
            m.d.sync += before.eq((before | item.lost) & ~losses.i.valid)

"""Row optimizer: updates rows by the sums of their gradients."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import LANES, NicConfig
from rtl.float import (
    FLOAT_ADDER_LATENCY,
    RECODED,
    RECODER_LATENCY,
    DotProduct,
    FloatAdder,
    Recoder,
    dot_tree_latency,
)
from rtl.float.delay import delayed
from rtl.formats import OptimizerMode
from rtl.gateable import Gateable
from rtl.gradient.adagrad import ADAGRAD_LATENCY, ADAGRAD_STATE_CYCLE, AdagradStep
from rtl.gradient.records import update_layout, updated_layout
from rtl.gradient.row_lanes import (
    HALF,
    HALF_BITS,
    RECODED_HALF,
    ROW_CYCLE,
    ROW_LANES_LATENCY,
    RowLanes,
)
from rtl.gradient.slice_sums import SliceSums, slice_sums_latency
from rtl.monitor.counters import CounterLayout, count
from rtl.shared import Shared
from rtl.stream import Level, StreamFIFO

__all__ = ["RowOptimizer"]

OUT_BEATS = 16
"""Beats between the lanes and the output; more than the cycles between them."""

_IN_CYCLES = 1 + RECODER_LATENCY
"""Cycles from the arrival of half a beat to its recoded gradient."""

_FIFO_CYCLES = 2

_SQUARES_LATENCY = dot_tree_latency(HALF) + FLOAT_ADDER_LATENCY
"""Cycles from the second half of a recoded gradient to the sum of the squares of both halves."""

_Step = data.StructLayout({"state": 32, "step": RECODED})


def _waiting(slices: int, several: bool) -> int:
    """Return the most cycles from the first half of a row to the end of its wait."""
    return (1 + _IN_CYCLES + _SQUARES_LATENCY + (slice_sums_latency(slices) if several else 0)
            + ADAGRAD_LATENCY + _FIFO_CYCLES + 1 + ROW_CYCLE)


class RowOptimizer(Gateable, wiring.Component):
    """Update rows by the sums of their gradients, with plain SGD or exact row-wise Adagrad.

    For a row ``w``, its gradient ``g`` of ``d`` values and its state ``m``::

        SGD:      w' = w - lr * g
        Adagrad:  m' = m + dot(g, g) / d      w' = w - (lr / (sqrt(m') + eps)) * g

    Every operation is rounded to binary32, to nearest even; a NaN is 0x7FC00000. The dot product
    has the order of the interaction: products are rounded, 16 lanes are added in one balanced tree,
    and slices are added in ascending order. SGD does not change the state.

    A beat is processed in two halves, in two cycles. Global reduction also delivers one beat of
    sums in two cycles, and halves need half the adders and multipliers. The tree of a slice is the
    sum of the trees of its lower and upper lanes.

    Halves wait in block RAM, with recoded gradients, while the step of their row is computed. Rows
    leave in order of arrival. With SGD, a row leaves once it is complete.

    Parameters
    ----------
    config: sizes; ``vector_beats`` is the largest number of beats of a row.
    id_bits: bits of a row's identification, 1 to 64.

    Ports
    -----
    i: stream of :func:`~rtl.gradient.records.update_layout`. Rows have the same number of beats
        until the block is idle; lanes beyond ``dimension`` are +0 in row and gradient.
    o: stream of :func:`~rtl.gradient.records.updated_layout`; lanes beyond ``dimension`` are +0.
    mode: :class:`~rtl.formats.OptimizerMode`.
    dimension: values of a row, 4, 8 or a multiple of 16.
    learning_rate, epsilon: ``lr`` and ``eps``, binary32. ``mode``, ``dimension``, ``learning_rate``
        and ``epsilon`` may change while no row is in flight, at least 32 cycles before the next
        beat.
    counters: ``rows``, ``beats`` updated; ``stall_in``, cycles in which a beat finds no place at
        the input; ``stall_out``, cycles in which a beat whose step is ready waits for the output.
    idle: inactive until an input changes. An unfinished row that waits for its next beat is idle.

    Raises ``TypeError`` or ``ValueError`` for a parameter of the wrong type or size.
    """

    LATENCY = {
        ("beat of a row of n beats", "the same beat, SGD"): "2 n + 14, at least 18",
        ("beat of a row of n beats", "the same beat, Adagrad"): "8 n + 107 at most",
        ("beat of a row of one beat", "the same beat, Adagrad, max_dimension 16 or less"): 100,
    }
    RATE = "1 beat in 2 cycles in both modes, for rows of any number of beats"

    def __init__(self, config: NicConfig, *, id_bits: int = 32):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        if isinstance(id_bits, bool) or not isinstance(id_bits, int):
            raise TypeError(f"id_bits must be an integer, not {id_bits!r}")
        if not 1 <= id_bits <= 64:
            raise ValueError(f"id_bits must be between 1 and 64, not {id_bits!r}")
        self._beats, self._id_bits = config.vector_beats, id_bits
        super().__init__({
            "i": In(stream.Signature(update_layout(id_bits))),
            "o": Out(stream.Signature(updated_layout(id_bits))),
            "mode": In(OptimizerMode), "dimension": In(range(16 * LANES + 1)),
            "learning_rate": In(32), "epsilon": In(32),
            "counters": Out(CounterLayout("rows", "beats", "stall_in", "stall_out")),
            "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        several = self._beats > 1
        halves = 1 << _waiting(self._beats, several).bit_length()
        rows = 1 << _waiting(1, several).bit_length()
        m.submodules.olds = olds = StreamFIFO(HALF_BITS, halves)
        m.submodules.gradients = gradients = StreamFIFO(RECODED_HALF.size, halves)
        # ``last`` of a half comes from registers instead of block RAM, because much logic depends
        # on it.
        m.submodules.lasts = lasts = StreamFIFO(1, halves, style="lutram")
        m.submodules.ids = ids = StreamFIFO(self._id_bits, rows)
        # In registers too: an adder follows.
        m.submodules.states = states = StreamFIFO(32, rows, style="lutram")
        m.submodules.steps = steps = StreamFIFO(_Step, rows)
        adagrad = Signal()
        m.d.sync += adagrad.eq(self.mode == OptimizerMode.ROWWISE_ADAGRAD)

        # Input, by halves. Gradients, states and steps arrive later than the halves of the row and
        # leave no later, so the places of ``olds`` suffice for them. More places are reserved for
        # arrivals before the levels are updated: the previous half, and the other half of this
        # beat.
        beat, take, whole, ready, upper = (
            self.i.payload, Signal(), Signal(), Signal(), Signal())
        row, gradient = Signal(HALF_BITS), Signal(HALF_BITS)
        m.d.sync += [ready.eq((olds.level < halves - 2) & (ids.level < rows - 1)),
                     upper.eq(upper ^ take)]
        m.d.comb += [
            take.eq(self.i.valid & (ready | upper)), self.i.ready.eq(upper),
            row.eq(beat.row.word_select(upper, HALF_BITS)),
            gradient.eq(beat.gradient.word_select(upper, HALF_BITS)),
            whole.eq(self.i.valid & upper & beat.last),
            olds.i.valid.eq(take), olds.i.payload.eq(row),
            ids.i.valid.eq(whole), ids.i.payload.eq(beat.id),
            states.i.valid.eq(whole & adagrad), states.i.payload.eq(beat.state),
        ]
        # Long enough for every FIFO to settle, and for ``busy`` below.
        taken = Signal(_IN_CYCLES + _FIFO_CYCLES)
        m.d.sync += taken.eq(Cat(take, taken))
        arrived = Signal(HALF_BITS, reset_less=True)
        last = delayed(m, beat.last & upper, _IN_CYCLES, "last")
        m.d.sync += arrived.eq(gradient)
        recoded = Signal(RECODED_HALF)
        for lane in range(HALF):
            m.submodules[f"recoder{lane}"] = recoder = Shared(Recoder(), "recoder")
            m.d.comb += [recoder.i.eq(arrived[32 * lane:32 * lane + 32]),
                         recoded[lane].eq(recoder.o)]
        come, come_upper = taken[_IN_CYCLES - 1], delayed(m, upper, _IN_CYCLES, "upper")
        m.d.comb += [
            gradients.i.valid.eq(come), gradients.i.payload.eq(recoded),
            lasts.i.valid.eq(come), lasts.i.payload.eq(last),
        ]

        # Compute a step for every row. ``busy`` is a register, because the idle of the NIC depends
        # on it; ``taken`` lasts two cycles longer than a half takes to get there.
        busy = Signal()
        done, result, computing = self._adagrad(
            m, come & adagrad, come_upper, recoded, last, states)
        m.d.sync += busy.eq(computing)
        m.submodules.recoder_rate = rate = Shared(Recoder(), "recoder")
        m.d.comb += [
            rate.i.eq(self.learning_rate),
            steps.i.valid.eq(Mux(adagrad, done, whole)),
            steps.i.payload.eq(Mux(adagrad, result, Cat(beat.state, rate.o))),
        ]

        # Output. The id of a row is available long before its step; with SGD its gradient is
        # available a little later. The lower half of a beat reserves a place in the output FIFO for
        # both halves.
        leave, room, leaving_upper = Signal(), Signal(), Signal()
        given, ends = self.o.valid & self.o.ready, lasts.o.payload
        # The take of a beat depends on all sinks of the rows, so it is late.
        m.submodules.places = places = Level(OUT_BEATS, init=OUT_BEATS, late=True)
        m.d.comb += [
            room.eq(places.some | leaving_upper),
            places.down.eq(leave & ~leaving_upper), places.up.eq(given),
            leave.eq(gradients.o.valid & steps.o.valid & room),
            gradients.o.ready.eq(steps.o.valid & room), lasts.o.ready.eq(gradients.o.ready),
            steps.o.ready.eq(gradients.o.valid & room & ends),
            ids.o.ready.eq(leave & ends),
        ]
        m.d.sync += leaving_upper.eq(leaving_upper ^ leave)
        self._leave(m, leave, leaving_upper,
                    Cat(steps.o.payload.state, ids.o.payload, ends), olds)

        count(m, self.counters, rows=given & self.o.payload.last, beats=given,
              stall_in=self.i.valid & ~ready & ~upper,
              stall_out=gradients.o.valid & steps.o.valid & ~room)
        m.d.comb += self.idle.eq(~taken.any() & ~busy & ids.idle
                                 & (places.level == OUT_BEATS))
        return m

    def _adagrad(self, m: Module, valid: Value, upper: Value, recoded: Value, last: Value,
                 states: StreamFIFO) -> tuple[Value, Value, Value]:
        """Compute Adagrad's state and step of each row whose gradient arrives, by halves.

        Return whether a row is done, its :data:`_Step`, and whether slices are in flight.
        """
        m.submodules.squares = squares = DotProduct(accumulate=False, lanes=HALF)
        m.submodules.both = both = Shared(FloatAdder(keep=False), "float_adder_plain")
        stages, lower = Signal(_SQUARES_LATENCY), Signal(32, reset_less=True)
        m.d.sync += [stages.eq(Cat(valid & upper, stages)), lower.eq(squares.o)]
        m.d.comb += [
            squares.a.eq(recoded), squares.b.eq(recoded), both.a.eq(lower), both.b.eq(squares.o)]
        last = delayed(m, last, _SQUARES_LATENCY, "tree_last")
        total, total_valid, busy = both.o, stages[-1], stages.any()
        if self._beats > 1:
            m.submodules.sums = sums = SliceSums(self._beats)
            m.d.comb += [sums.valid.eq(total_valid), sums.term.eq(total), sums.last.eq(last)]
            total, total_valid, busy = sums.o, sums.o_valid, busy | ~sums.idle

        m.submodules.adagrad = unit = AdagradStep()
        under_way = Signal(ADAGRAD_LATENCY)
        m.d.sync += under_way.eq(Cat(total_valid, under_way))
        m.d.comb += [
            unit.total.eq(total), unit.dimension.eq(self.dimension),
            unit.learning_rate.eq(self.learning_rate), unit.epsilon.eq(self.epsilon),
            unit.state.eq(states.o.payload),
            states.o.ready.eq(under_way[ADAGRAD_STATE_CYCLE - 1]),
        ]
        return (Value.cast(under_way[-1]), Value.cast(Cat(unit.new_state, unit.step)),
                Value.cast(busy))

    def _leave(self, m: Module, leave: Value, upper: Value, origin: Value,
               olds: StreamFIFO) -> None:
        """Update half a beat with its step. The lanes have no enable, so a FIFO follows."""
        gradients, steps = m.submodules.gradients.o, m.submodules.steps.o
        m.submodules.lanes = lanes = RowLanes()
        step, half = Signal(RECODED, reset_less=True), Signal(RECODED_HALF, reset_less=True)
        moving, uppers = Signal(1 + ROW_LANES_LATENCY), Signal(1 + ROW_LANES_LATENCY)
        unused, lower = Signal(LANES), Signal(HALF_BITS, reset_less=True)
        unused_half = Signal(HALF)
        old = Signal(HALF_BITS, reset_less=True)
        m.d.sync += [
            moving.eq(Cat(leave, moving)), uppers.eq(Cat(upper, uppers)),
            step.eq(steps.payload.step), half.eq(gradients.payload),
            old.eq(olds.o.payload),
            unused.eq(Cat(self.dimension <= lane for lane in range(LANES))),
            unused_half.eq(unused.word_select(uppers[ROW_CYCLE - 1], HALF)),
        ]
        with m.If(~uppers[-1]):
            m.d.sync += lower.eq(lanes.o)
        m.d.comb += [
            lanes.step.eq(step), lanes.gradient.eq(half), lanes.row.eq(old),
            lanes.unused.eq(unused_half),
            olds.o.ready.eq(moving[ROW_CYCLE - 1]),
        ]
        m.submodules.output = output = StreamFIFO(self.o.payload.shape(), OUT_BEATS)
        wiring.connect(m, output.o, wiring.flipped(self.o))
        m.d.comb += [
            output.i.valid.eq(moving[-1] & uppers[-1]),
            output.i.payload.eq(
                Cat(lower, lanes.o, delayed(m, origin, len(moving), "origin"))),
        ]

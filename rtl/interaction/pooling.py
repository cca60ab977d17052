"""Pooling: sums the vectors of a bag in slot order; a mean divides by their number."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.config import BEAT_BITS, LANES, NicConfig
from rtl.float import (
    COUNT_DIVIDER_LANE_LATENCY,
    FLOAT_ADDER_LATENCY,
    RECIPROCAL_LATENCY,
    CountDividerLane,
    CountReciprocal,
    FloatAdder,
)
from rtl.formats import STEP_BITS
from rtl.interaction.bag_ring import BagRing, round_slots
from rtl.interaction.records import PooledBeat, SlotBeat
from rtl.memory import Ram
from rtl.monitor.counters import CounterLayout, count
from rtl.shared import Shared
from rtl.stream import StreamFIFO

__all__ = ["BAGS", "OUT_BEATS", "Pooler"]

BAGS = 64
"""Bags between their first beat in and their last beat out. They leave in order: while one of 100
vectors is summed, 800 cycles, this many others may end before it."""

OUT_BEATS = 16
"""Beats in flight to the output; more than the cycles from a read of a sum to its leaving."""

_Origin = data.StructLayout({"sample": 32, "step": STEP_BITS, "last": 1})
_Leaving = data.StructLayout({"valid": 1, "beat_last": 1, "origin": _Origin})


class Pooler(wiring.Component):
    """Sum the slots of each bag in float32, in slot order, starting from the first vector, and for
    a mean divide the sum by float32 of their number.

    A bag ends with a KEY_END slot; an EMPTY slot is a bag by itself, whose zeros are its sum and
    its mean. The vectors of a bag must wait for each other's sums, so several bags are processed at
    once (:class:`~rtl.interaction.bag_ring.BagRing`; DESIGN, section 7: 0.95 beats per cycle for
    bags of 1 to 100), and the sums leave in bag order. The first vector of a bag takes the same
    path as the others and is kept bit for bit; a mean's NaN is 0x7FC00000, whatever the number.

    The reciprocal of a bag's number is computed while its last vector is added and stored with the
    sum, so the division adds only its multipliers to the path.

    Latency and rate: see ``LATENCY`` and ``RATE``.

    Parameters
    ----------
    config: sizes; ``vector_beats`` is the largest number of beats of a vector.
    queue_beats: beats that may wait to be added, a power of two.

    Ports
    -----
    i: stream of :data:`~rtl.interaction.records.SlotBeat`, vectors whole and in slot order.
    vector_beats: beats of a vector; may change while empty.
    mean: divide each sum; may change while empty.
    o: stream of :data:`~rtl.interaction.records.PooledBeat`, in bag order.
    counters: ``beats_in``; ``beats_out``; ``adds``, beats added to another; ``stall_adder``,
        turns of the adders that no vector used though some wait.
    idle: an unfinished bag that waits for its next slot is idle.

    Raises ``TypeError`` or ``ValueError`` for a parameter of the wrong type or size.
    """

    LATENCY = {
        ("bag of one vector", "its sum"): 13,
        ("bag of one vector", "its mean"): 36,
    }
    RATE = "1 beat per cycle in and out for bags of any length"
    QUEUE_BEATS = 4096
    """Beats that may wait to be added, by default."""

    def __init__(self, config: NicConfig, *, queue_beats: int = QUEUE_BEATS):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        if isinstance(queue_beats, bool) or not isinstance(queue_beats, int):
            raise TypeError(f"queue_beats must be an integer, not {queue_beats!r}")
        if not 32 <= queue_beats <= 16384 or queue_beats & (queue_beats - 1):
            raise ValueError("queue_beats must be a power of two between 32 and 16384, "
                             f"not {queue_beats!r}")
        self._beats, self._depth = config.vector_beats, queue_beats
        super().__init__({
            "i": In(stream.Signature(SlotBeat)), "o": Out(stream.Signature(PooledBeat)),
            "vector_beats": In(range(self._beats + 1)), "mean": In(1),
            "counters": Out(CounterLayout("beats_in", "beats_out", "adds", "stall_adder")),
            "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.ring = ring = BagRing(self._beats, self._depth, BAGS)
        wiring.connect(m, wiring.flipped(self.i), ring.i)
        m.d.comb += ring.vector_beats.eq(self.vector_beats)
        now = ring.o
        bag, beat = Signal.like(now.bag), Signal.like(now.beat)
        beat_bits = ceil_log2(self._beats)
        m.submodules.sums = sums = Ram(BEAT_BITS, round_slots(self._beats), style="lutram")
        m.submodules.results = results = Ram(
            BEAT_BITS, BAGS << beat_bits, style="bram" if beat_bits else "lutram")

        # Add, and write the sum where the bag's next vector reads it.
        stages = [now] + [Signal(now.shape(), name=f"stage{n}")
                          for n in range(1, FLOAT_ADDER_LATENCY + 1)]
        m.d.sync += [after.eq(before) for before, after in pairwise(stages)]
        done, total = stages[-1], Signal(BEAT_BITS)
        for lane in range(LANES):
            m.submodules[f"lane{lane}"] = adder = Shared(FloatAdder(), "float_adder")
            bits = slice(32 * lane, 32 * lane + 32)
            m.d.comb += [
                adder.a.eq(ring.data[bits]), adder.b.eq(sums.read_data[bits]),
                adder.keep.eq(now.first), total[bits].eq(adder.o),
            ]
        m.d.comb += [
            sums.read_en.eq(ring.reading.valid), sums.read_addr.eq(ring.reading.slot),
            sums.write_en.eq(done.valid), sums.write_addr.eq(done.slot), sums.write_data.eq(total),
            results.write_en.eq(done.valid & done.last),
            results.write_addr.eq(Cat(done.beat[:beat_bits], done.bag)),
            results.write_data.eq(total),
        ]

        final_beat = (self.vector_beats - 1)[:len(beat)]
        summed = Signal()
        m.d.comb += summed.eq(done.valid & done.last & (done.beat == final_beat))
        divisors, divided, divided_bag = self._reciprocals(m, now)
        finished = Signal(BAGS)
        with m.If(self.mean):
            m.d.comb += finished.eq(divided << divided_bag)
        with m.Else():
            m.d.comb += finished.eq(summed << done.bag)

        # Out: bags in order.
        ready, read, under_way = Signal(BAGS), Signal(), Signal(range(OUT_BEATS + 1))
        last, leave = Signal(), Signal()
        taken, given = self.i.valid & self.i.ready, self.o.valid & self.o.ready
        m.d.comb += [
            read.eq(ready.bit_select(bag, 1) & (under_way != OUT_BEATS)),
            last.eq(beat == final_beat), leave.eq(read & last),
            results.read_en.eq(read), results.read_addr.eq(Cat(beat[:beat_bits], bag)),
            divisors.read_en.eq(read), divisors.read_addr.eq(bag),
        ]
        m.d.sync += [
            # A number may be released a cycle late.
            ring.left.eq(leave),
            ready.eq((ready | finished) & ~(leave << bag)), under_way.eq(under_way + read - given)]
        with m.If(read):
            m.d.sync += beat.eq(Mux(last, 0, beat + 1))
        with m.If(leave):
            m.d.sync += bag.eq(bag + 1)
        m.submodules.origins = origins = Ram(_Origin.size, BAGS, style="lutram")
        item = self.i.payload
        m.d.comb += [
            origins.write_en.eq(taken), origins.write_addr.eq(ring.bag),
            origins.write_data.eq(Cat(item.sample, item.step, item.sample_last)),
            origins.read_en.eq(read), origins.read_addr.eq(bag),
        ]
        leaving = Signal(_Leaving)
        read_valid, read_last = Signal(), Signal()
        m.d.sync += [read_valid.eq(read), read_last.eq(last)]
        m.d.comb += leaving.eq(Cat(read_valid, read_last, origins.read_data))
        self._leave(m, leaving, results.read_data, divisors.read_data)

        closed = Signal(range(BAGS + 1))
        m.d.sync += closed.eq(closed + summed - leave)
        count(m, self.counters, beats_in=taken, beats_out=given,
              adds=now.valid & ~now.first, stall_adder=ring.stall)
        flying = Cat(stage.valid for stage in stages)
        m.d.comb += self.idle.eq(
            ring.idle & ~flying.any() & (closed == 0) & (under_way == 0))
        return m

    def _reciprocals(self, m: Module, now) -> tuple[Ram, Signal, Signal]:
        """Divide 1 by the number of vectors of each bag that ends, and store it beside the sum.

        Returns the RAM of reciprocals, and whether and for which bag one is being written.
        """
        # The last beat of a sum is available before its divisor, however many there are.
        assert FLOAT_ADDER_LATENCY + self._beats - 1 <= RECIPROCAL_LATENCY
        m.submodules.reciprocal = unit = CountReciprocal()
        m.submodules.divisors = divisors = Ram(len(unit.o) + len(unit.exponent), BAGS,
                                               style="lutram")
        valid, bag = now.valid & now.last & (now.beat == 0), now.bag
        for stage in range(RECIPROCAL_LATENCY):
            after_valid = Signal(name=f"dividing{stage}")
            after_bag = Signal.like(now.bag, name=f"dividing_bag{stage}", reset_less=True)
            m.d.sync += [after_valid.eq(valid), after_bag.eq(bag)]
            valid, bag = after_valid, after_bag
        m.d.comb += [
            unit.n.eq(now.keys), divisors.write_en.eq(valid), divisors.write_addr.eq(bag),
            divisors.write_data.eq(Cat(unit.o, unit.exponent)),
        ]
        return divisors, valid, bag

    def _leave(self, m: Module, leaving: data.View, total: Signal, divisor: Signal) -> None:
        """Multiply by the reciprocal for a mean; the units have no enable, so a FIFO follows."""
        stages = [leaving] + [Signal(_Leaving, name=f"leaving{n}")
                              for n in range(COUNT_DIVIDER_LANE_LATENCY)]
        m.d.sync += [after.eq(before) for before, after in pairwise(stages)]
        mean = Signal(BEAT_BITS)
        for lane in range(LANES):
            unit = Shared(CountDividerLane(), "count_divider_lane")
            m.submodules[f"divider{lane}"] = unit
            bits = slice(32 * lane, 32 * lane + 32)
            m.d.comb += [
                unit.x.eq(total[bits]), Cat(unit.factor, unit.exponent).eq(divisor),
                mean[bits].eq(unit.o),
            ]
        m.submodules.output = output = StreamFIFO(PooledBeat, OUT_BEATS)
        wiring.connect(m, output.o, wiring.flipped(self.o))
        chosen, out = Mux(self.mean, stages[-1], leaving), output.i.payload
        chosen = data.View(_Leaving, chosen)
        m.d.comb += [
            output.i.valid.eq(chosen.valid), out.data.eq(Mux(self.mean, mean, total)),
            out.beat_last.eq(chosen.beat_last), out.sample.eq(chosen.origin.sample),
            out.step.eq(chosen.origin.step), out.bag_last_of_sample.eq(chosen.origin.last),
        ]

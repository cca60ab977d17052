"""Pooling: sums the vectors of a bag in slot order; a mean divides by their number."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.config import BEAT_BITS, LANES, NicConfig
from rtl.float import (
    COUNT_DIVIDER_LANE_LATENCY,
    FLOAT_ADDER_LATENCY,
    MINUS_ZERO,
    RECIPROCAL_LATENCY,
    CountDividerLane,
    CountReciprocal,
    FloatAdder,
)
from rtl.formats import STEP_BITS, RecordKind, repeat_fields
from rtl.gateable import Gateable
from rtl.interaction.bag_ring import BagRing, round_slots
from rtl.interaction.records import pooled_beat, slot_beat
from rtl.memory import Ram
from rtl.monitor.counters import CounterLayout, count
from rtl.shared import Shared
from rtl.stream import Level, StreamFIFO

__all__ = ["BAGS", "OUT_BEATS", "Pooler"]

BAGS = 64
"""Bags between their first beat in and their last beat out. Bags leave in order: while a bag of 100
vectors is summed, 800 cycles, this many other bags may end before it."""

OUT_BEATS = 16
"""Beats in flight to the output; more than the cycles from the read of a sum to its output."""

_Origin = data.StructLayout({"sample": 32, "step": STEP_BITS, "last": 1, "lost": 1})
_Finished = data.StructLayout({"valid": 1, "bag": range(BAGS)})


class Pooler(Gateable, wiring.Component):
    """Sum the slots of each bag in float32, in slot order, starting with the first vector; for a
    mean, divide the sum by float32 of their number.

    A bag ends with a KEY_END slot. An EMPTY slot is a separate bag, whose zeros are its sum and its
    mean. A bag that its owner has pooled is a bag of one vector; its mean divides by its ``keys``.
    The vectors of a bag must wait for the previous sum, so several bags are processed at once
    (:class:`~rtl.interaction.bag_ring.BagRing`), and the sums leave in bag order. The first vector
    of a bag takes the same path as the others and is kept bit for bit. The NaN of a mean is
    0x7FC00000 for every number of vectors.

    The reciprocal of a bag's number is computed while its last vector is added, and stored with the
    sum. The division therefore adds only its multipliers to the path.

    Parameters
    ----------
    config: sizes; ``vector_beats`` is the largest number of beats of a vector.
    queue_beats: beats that may wait to be added, a power of two.

    Ports
    -----
    i: stream of :func:`~rtl.interaction.records.slot_beat`, whole vectors in slot order.
    vector_beats: beats of a vector; may change while empty.
    mean: divide each sum; may change while empty.
    by_table (with ``config.owner_bags``): divide the sums of bags whose last slot has the ``mean``
        bit, whatever ``mean`` is; may change while empty. Other sums then leave as late as means.
    o: stream of :func:`~rtl.interaction.records.pooled_beat`, in bag order.
    counters: ``beats_in``; ``beats_out``; ``adds``, beats added to another; ``stall_adder``, turns
        of the adders that no vector used although some wait.
    idle: inactive until an input changes. An unfinished bag that waits for its next slot does not
        clear it.

    Raises ``TypeError`` or ``ValueError`` for a parameter of the wrong type or size.
    """

    LATENCY = {
        ("bag of one vector", "its sum"): 14,
        ("bag of one vector", "its mean"): 38,
    }
    RATE = "1 beat per cycle in and out for bags of any length"
    QUEUE_BEATS = 4096
    """Default of the beats that may wait to be added."""

    def __init__(self, config: NicConfig, *, queue_beats: int = QUEUE_BEATS):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        if isinstance(queue_beats, bool) or not isinstance(queue_beats, int):
            raise TypeError(f"queue_beats must be an integer, not {queue_beats!r}")
        if not 32 <= queue_beats <= 16384 or queue_beats & (queue_beats - 1):
            raise ValueError("queue_beats must be a power of two between 32 and 16384, "
                             f"not {queue_beats!r}")
        self._beats, self._depth = config.vector_beats, queue_beats
        self._pooled, self._positions = config.owner_bags > 0, config.repeat_positions
        super().__init__({
            "i": In(stream.Signature(slot_beat(self._pooled, self._positions))),
            "o": Out(stream.Signature(pooled_beat(self._positions))),
            "vector_beats": In(range(self._beats + 1)), "mean": In(1),
            **({"by_table": In(1)} if self._pooled else {}),
            "counters": Out(CounterLayout("beats_in", "beats_out", "adds", "stall_adder")),
            "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.ring = ring = BagRing(
            self._beats, self._depth, BAGS, pooled=self._pooled, positions=self._positions)
        wiring.connect(m, wiring.flipped(self.i), ring.i)
        m.d.comb += ring.vector_beats.eq(self.vector_beats)
        now = ring.o
        beat_bits = ceil_log2(self._beats)
        m.submodules.sums = sums = Ram(
            BEAT_BITS, round_slots(self._beats), style="lutram", latency=0)
        m.submodules.results = results = Ram(
            BEAT_BITS, BAGS << beat_bits, style="bram" if beat_bits else "lutram")

        # Add, and write the sum where the bag's next vector reads it.
        flying = [now.valid] + [Signal(name=f"flying{n}") for n in range(FLOAT_ADDER_LATENCY)]
        stages = [now] + [Signal(now.shape(), name=f"stage{n}", reset_less=True)
                          for n in range(FLOAT_ADDER_LATENCY)]
        m.d.sync += [after.eq(before) for line in (flying, stages)
                     for before, after in pairwise(line)]
        done, total, sum_ = stages[-1], Signal(BEAT_BITS), Signal(BEAT_BITS, reset_less=True)
        m.d.sync += sum_.eq(Mux(ring.coming.first, MINUS_ZERO.replicate(LANES), sums.read_data))
        for lane in range(LANES):
            m.submodules[f"lane{lane}"] = adder = Shared(FloatAdder(), "float_adder")
            bits = slice(32 * lane, 32 * lane + 32)
            m.d.comb += [
                adder.a.eq(ring.data[bits]), adder.b.eq(sum_[bits]),
                adder.keep.eq(now.first), total[bits].eq(adder.o),
            ]
        m.d.comb += [
            sums.read_addr.eq(ring.coming.slot),
            sums.write_en.eq(flying[-1]), sums.write_addr.eq(done.slot), sums.write_data.eq(total),
            results.write_en.eq(flying[-1] & done.last),
            results.write_addr.eq(Cat(done.beat[:beat_bits], done.bag)),
            results.write_data.eq(total),
        ]

        # Finished bags are known one cycle ahead.
        final_beat, before = (self.vector_beats - 1)[:len(now.beat)], stages[-2]
        ends, summed = flying[-2] & before.last & (before.beat == final_beat), Signal()
        divisors, divided = self._reciprocals(m, now)
        finished = Signal(_Finished)
        m.d.sync += [summed.eq(ends),
                     finished.eq(Mux(self._divides, divided, Cat(ends, before.bag)))]

        # Output: bags in order. ``turns`` are the numbers of the oldest bag and of the next two;
        # ``there`` shows for two of them whether they are finished. The bit of a number in ``bits``
        # inverts whenever its bag is finished; the bit above the number is the value that means
        # finished.
        turns = [Signal(range(2 * BAGS), name=f"turn{k}", init=BAGS + k) for k in range(3)]
        bits, there = Signal(BAGS), [Signal(name=f"there{k}") for k in range(2)]
        bag, now_there = turns[0][:-1], [
            now | (finished.valid & (finished.bag == turn[:-1])) for now, turn in zip(
                (*there, bits.bit_select(turns[2][:-1], 1) == turns[2][-1]), turns)]
        for number in range(BAGS):
            with m.If(finished.valid & (finished.bag == number)):
                m.d.sync += bits[number].eq(~bits[number])
        beat, read, last, leave = Signal.like(now.beat), Signal(), Signal(), Signal()
        taken, given = self.i.valid & self.i.ready, self.o.valid & self.o.ready
        m.submodules.places = places = Level(OUT_BEATS, init=OUT_BEATS)
        m.submodules.closed = closed = Level(BAGS)
        m.d.comb += [
            read.eq(there[0] & places.some),
            places.down.eq(read), places.up.eq(given),
            last.eq(beat == final_beat), leave.eq(read & last),
            closed.up.eq(summed), closed.down.eq(leave),
            results.read_addr.eq(Cat(beat[:beat_bits], bag)),
        ]
        # A separate register, because ``bag`` is that of the sums.
        read_bag = Signal(range(BAGS), reset_less=True)
        m.d.sync += read_bag.eq(bag)
        m.d.comb += divisors.read_addr.eq(read_bag)
        m.d.sync += ring.left.eq(leave)  # A number may be released one cycle late.
        m.d.sync += [flag.eq(Mux(leave, now_there[k + 1], now_there[k]))
                     for k, flag in enumerate(there)]
        with m.If(read):
            m.d.sync += beat.eq(Mux(last, 0, beat + 1))
        with m.If(leave):
            m.d.sync += [*(turn.eq(next_) for turn, next_ in pairwise(turns)),
                         turns[2].eq(turns[2] + 1)]
        repeats = repeat_fields(self._positions)
        origin = data.StructLayout(
            _Origin.members | ({"mean": 1} if self._pooled else {}) | repeats)
        m.submodules.origins = origins = Ram(origin.size, BAGS, style="lutram")
        # A bag is lost if any of its vectors is lost.
        item, before, lost = self.i.payload, Signal(), Signal()
        m.d.comb += lost.eq(before | item.lost)
        with m.If(taken):
            m.d.sync += before.eq(lost & ~(item.beat_last & (item.kind != RecordKind.KEY)))
        m.d.comb += [
            origins.write_en.eq(taken), origins.write_addr.eq(ring.bag),
            origins.write_data.eq(Cat(item.sample, item.step, item.sample_last, lost,
                                      *((item.mean,) if self._pooled else ()),
                                      *(item[name] for name in repeats))),
            origins.read_addr.eq(bag),
        ]
        leaving = Signal(data.StructLayout({"valid": 1, "beat_last": 1, "origin": origin}))
        read_valid, read_last = Signal(), Signal(reset_less=True)
        m.d.sync += [read_valid.eq(read), read_last.eq(last)]
        m.d.comb += leaving.eq(Cat(read_valid, read_last, origins.read_data))
        self._leave(m, leaving, results.read_data, divisors.read_data)

        count(m, self.counters, beats_in=taken, beats_out=given,
              adds=now.valid & ~now.first, stall_adder=ring.stall)
        m.d.comb += self.idle.eq(ring.idle & ~Cat(flying).any() & ~closed.some
                                 & places.level[-1])
        return m

    def _reciprocals(self, m: Module, now: data.View) -> tuple[Ram, data.View]:
        """Divide 1 by the number of vectors of each bag that ends, and store it beside the sum.

        Return the RAM of reciprocals, and the bag whose reciprocal is written in the next cycle.
        """
        # The last beat of a sum is available before its divisor for any number of beats.
        assert FLOAT_ADDER_LATENCY + self._beats - 1 <= RECIPROCAL_LATENCY
        m.submodules.reciprocal = unit = CountReciprocal()
        # The lanes take a divisor one cycle after the sum, so it is read one cycle later.
        m.submodules.divisors = divisors = Ram(len(unit.o) + len(unit.exponent), BAGS,
                                               style="lutram")
        valid = [now.valid & now.last & (now.beat == 0)]
        valid += [Signal(name=f"dividing{stage}") for stage in range(RECIPROCAL_LATENCY)]
        bags = [now.bag] + [Signal.like(now.bag, name=f"dividing_bag{stage}", reset_less=True)
                            for stage in range(RECIPROCAL_LATENCY)]
        m.d.sync += [after.eq(before) for line in (valid, bags) for before, after in pairwise(line)]
        m.d.comb += [
            unit.n.eq(now.keys), divisors.write_en.eq(valid[-1]), divisors.write_addr.eq(bags[-1]),
            divisors.write_data.eq(Cat(unit.o, unit.exponent)),
        ]
        return divisors, data.View(_Finished, Cat(valid[-2], bags[-2]))

    @property
    def _divides(self) -> Value:
        """Whether sums pass the dividers."""
        return self.mean | self.by_table if self._pooled else self.mean

    def _leave(self, m: Module, leaving: data.View, total: Signal, divisor: Signal) -> None:
        """Multiply by the reciprocal for a mean; the units have no enable, so a FIFO follows."""
        stages, layout = range(COUNT_DIVIDER_LANE_LATENCY), leaving.shape()
        valid = [leaving.valid] + [Signal(name=f"dividing_valid{n}") for n in stages]
        items = [leaving] + [Signal(layout, name=f"leaving{n}", reset_less=True) for n in stages]
        # Of a NIC that pools by table, the sums beside the means.
        sums = [total] + [Signal(BEAT_BITS, name=f"sum{n}", reset_less=True)
                          for n in stages if self._pooled]
        m.d.sync += [after.eq(before) for line in (valid, items, sums)
                     for before, after in pairwise(line)]
        mean = Signal(BEAT_BITS)
        for lane in range(LANES):
            unit = Shared(CountDividerLane(), "count_divider_lane")
            m.submodules[f"divider{lane}"] = unit
            bits = slice(32 * lane, 32 * lane + 32)
            m.d.comb += [
                unit.x.eq(total[bits]), Cat(unit.factor, unit.exponent).eq(divisor),
                mean[bits].eq(unit.o),
            ]
        m.submodules.output = output = StreamFIFO(
            pooled_beat(self._positions), OUT_BEATS)
        wiring.connect(m, output.o, wiring.flipped(self.o))
        late, out = self._divides, output.i.payload
        chosen = data.View(layout, Mux(late, items[-1], leaving))
        m.d.comb += [
            output.i.valid.eq(Mux(late, valid[-1], valid[0])),
            out.data.eq(Mux(late, mean, total)),
            out.beat_last.eq(chosen.beat_last), out.sample.eq(chosen.origin.sample),
            out.step.eq(chosen.origin.step), out.bag_last_of_sample.eq(chosen.origin.last),
            out.lost.eq(chosen.origin.lost),
            *(out[name].eq(chosen.origin[name]) for name in repeat_fields(self._positions)),
        ]
        if self._pooled:
            with m.If(self.by_table & ~items[-1].origin.mean):
                m.d.comb += out.data.eq(sums[-1])

"""Pooling: the vectors of a bag are added in slot order."""

from itertools import pairwise

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.config import BEAT_BITS, LANES, NicConfig
from rtl.counters import CounterLayout, count
from rtl.float import FLOAT_ADDER_LATENCY, FloatAdder
from rtl.formats import STEP_BITS, RecordKind
from rtl.interaction.records import PooledBeat, SlotBeat
from rtl.memory import Ram
from rtl.shared import Shared
from rtl.stream import SkidBuffer

__all__ = ["Pooler"]

BAGS = 16
"""Bags in work at once. The loop of one sum is ``FLOAT_ADDER_LATENCY + 2`` = 8 cycles, so eight
long bags keep the adders busy; a bag of one vector is gone after twelve cycles."""


class Pooler(wiring.Component):
    """Sum the slots of each bag in float32, in slot order, starting from the first vector.

    A bag ends with a KEY_END slot; an EMPTY slot is a bag of its own, whose zeros are its sum.
    A bag's vectors must wait for each other's sums, so :data:`BAGS` bags are in work at once: each
    has a queue in one shared RAM, the adders take from the queues in turn, and the sums leave in
    the order of the bags (DESIGN, section 7: 0.95 beats per cycle for bags of 1 to 100). The first
    vector of a bag takes the way of the others and is kept bit for bit.

    Latency of a bag of one vector: 12 cycles. Throughput 1 beat per cycle in for any bag length up
    to ``queue_beats``, and 1 beat per cycle out.

    Parameters
    ----------
    config: sizes; ``vector_beats`` is the largest number of beats of a vector.
    queue_beats: beats of one bag that may wait, a power of two. A longer bag works, but makes
        those behind it wait.

    Ports
    -----
    i: stream of :data:`~rtl.interaction.records.SlotBeat`, vectors whole and in slot order.
    vector_beats: beats of a vector; may change while empty.
    o: stream of :data:`~rtl.interaction.records.PooledBeat`, in bag order.
    counters: ``beats_in``; ``beats_out``; ``adds``, beats added to another; ``stall_adder``,
        cycles in which beats wait and all need a sum that is still on its way.
    idle: an unfinished bag that waits for its next slot is idle.

    Raises ``TypeError`` or ``ValueError`` for a parameter of the wrong kind or size.
    """

    def __init__(self, config: NicConfig, *, queue_beats: int = 256):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        if isinstance(queue_beats, bool) or not isinstance(queue_beats, int):
            raise TypeError(f"queue_beats must be an integer, not {queue_beats!r}")
        if not 4 <= queue_beats <= 4096 or queue_beats & (queue_beats - 1):
            raise ValueError("queue_beats must be a power of two between 4 and 4096, "
                             f"not {queue_beats!r}")
        self._beats, self._depth = config.vector_beats, queue_beats
        super().__init__({
            "i": In(stream.Signature(SlotBeat)), "o": Out(stream.Signature(PooledBeat)),
            "vector_beats": In(range(self._beats + 1)),
            "counters": Out(CounterLayout("beats_in", "beats_out", "adds", "stall_adder")),
            "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        beats, depth = self._beats, self._depth
        # A sum's address: bag, then beat of the vector.
        beat_bits, bag_bits = max(1, ceil_log2(beats)), ceil_log2(BAGS)
        m.submodules.queues = queues = Ram(BEAT_BITS, BAGS * depth,
                                           style="uram" if BAGS * depth >= 2048 else "bram")
        m.submodules.sums = sums = Ram(BEAT_BITS, BAGS << beat_bits, style="lutram")
        m.submodules.results = results = Ram(BEAT_BITS, BAGS << beat_bits, style="lutram")
        origin_layout = data.StructLayout({"sample": 32, "step": STEP_BITS, "last": 1})
        m.submodules.origins = origins = Ram(origin_layout.size, BAGS, style="lutram")
        m.submodules.output = output = SkidBuffer(PooledBeat)
        wiring.connect(m, output.o, wiring.flipped(self.o))
        final_beat = (self.vector_beats - 1)[:beat_bits]

        # State of each bag; a bag is open from its first beat in to its last beat out.
        opened, closed, first = Signal(BAGS), Signal(BAGS), Signal(BAGS)
        queued = [Signal(range(depth + 1), name=f"queued{k}") for k in range(BAGS)]
        adding = [Signal(range(FLOAT_ADDER_LATENCY + 4), name=f"adding{k}") for k in range(BAGS)]
        at = [Signal(beat_bits, name=f"at{k}") for k in range(BAGS)]
        heads = [Signal(range(depth), name=f"head{k}") for k in range(BAGS)]
        waiting, full, busy = Signal(BAGS), Signal(BAGS), Signal(BAGS)
        m.d.comb += [
            waiting.eq(Cat(q != 0 for q in queued)), full.eq(Cat(q == depth for q in queued)),
            busy.eq(Cat(a != 0 for a in adding)),
        ]

        # In: the beats of a bag go to its queue.
        filling, inside, tail = Signal(bag_bits), Signal(), Signal(range(depth))
        put, ends = Signal(), Signal()
        enter, leave = Signal(BAGS), Signal(BAGS)
        item = self.i.payload
        m.d.comb += [
            self.i.ready.eq(Mux(inside, ~full.bit_select(filling, 1),
                                ~opened.bit_select(filling, 1))),
            put.eq(self.i.valid & self.i.ready),
            ends.eq(item.beat_last & (item.kind != RecordKind.KEY)),
            enter.eq(put << filling),
            queues.write_en.eq(put), queues.write_addr.eq(Cat(tail, filling)),
            queues.write_data.eq(item.data),
            origins.write_en.eq(put), origins.write_addr.eq(filling),
            origins.write_data.eq(Cat(item.sample, item.step, item.sample_last)),
        ]
        with m.If(put):
            m.d.sync += [inside.eq(~ends), tail.eq(Mux(ends, 0, tail + 1))]
            with m.If(ends):
                m.d.sync += filling.eq(filling + 1)

        # Choose a bag: it has a beat, and the sum that this beat adds to is there, which it is if
        # fewer beats of the bag than a vector has are on their way.
        eligible, choice, previous = Signal(BAGS), Signal(BAGS), Signal(BAGS)
        picked = Signal(BAGS)
        m.d.comb += [
            eligible.eq(waiting & Cat(a < self.vector_beats for a in adding)),
            choice.eq(_next(m, eligible, previous)),
        ]
        m.d.sync += picked.eq(choice)
        with m.If(choice.any()):
            m.d.sync += previous.eq(choice)
        for k in range(BAGS):
            with m.If(enter[k]):
                m.d.sync += opened[k].eq(1)
                with m.If(~opened[k]):
                    m.d.sync += [first[k].eq(1), heads[k].eq(0)]
                with m.If(ends):
                    m.d.sync += closed[k].eq(1)
            with m.If(picked[k]):
                m.d.sync += [heads[k].eq(heads[k] + 1), at[k].eq(at[k] + 1)]
                with m.If(at[k] == final_beat):
                    m.d.sync += [at[k].eq(0), first[k].eq(0)]
            with m.If(leave[k]):
                m.d.sync += [opened[k].eq(0), closed[k].eq(0)]
            m.d.sync += queued[k].eq(queued[k] + enter[k] - choice[k])

        # Read both operands, add, write the sum. ``stages`` follow an addition through.
        place = data.StructLayout({"valid": 1, "bag": bag_bits, "beat": beat_bits, "first": 1})
        stages = [Signal(place, name=f"stage{n}") for n in range(FLOAT_ADDER_LATENCY + 1)]
        # The registers of the bag are read one cycle after the choice.
        pick = Signal(place)
        m.d.comb += [
            pick.valid.eq(picked.any()), pick.bag.eq(_encode(picked, range(BAGS))),
            pick.beat.eq(_encode(picked, at)), pick.first.eq((picked & first).any()),
            queues.read_en.eq(pick.valid),
            queues.read_addr.eq(Cat(_encode(picked, heads), pick.bag)),
            sums.read_en.eq(pick.valid), sums.read_addr.eq(Cat(pick.beat, pick.bag)),
        ]
        m.d.sync += stages[0].eq(pick)
        m.d.sync += [after.eq(before) for before, after in pairwise(stages)]
        done, finishing = stages[-1], stages[-2]
        total = Signal(BEAT_BITS)
        for lane in range(LANES):
            m.submodules[f"lane{lane}"] = adder = Shared(FloatAdder(), "float_adder")
            bits = slice(32 * lane, 32 * lane + 32)
            m.d.comb += [
                adder.a.eq(queues.read_data[bits]), adder.b.eq(sums.read_data[bits]),
                adder.keep.eq(stages[0].first), total[bits].eq(adder.o),
            ]
        for copy in (sums, results):
            m.d.comb += [copy.write_en.eq(done.valid), copy.write_data.eq(total),
                         copy.write_addr.eq(Cat(done.beat, done.bag))]
        # A bag chosen in the cycle of the write reads one cycle after it.
        finished = Signal(BAGS)
        m.d.comb += finished.eq(finishing.valid << finishing.bag)
        for k in range(BAGS):
            m.d.sync += adding[k].eq(adding[k] + choice[k] - finished[k])

        # Out: bags in order. A bag is ready one cycle after its last sum was begun to be written.
        ready = Signal(BAGS)
        m.d.sync += ready.eq(closed & ~waiting & ~busy & ~leave)
        leaving, out_beat = Signal(bag_bits), Signal(beat_bits)
        read, room, out_last = Signal(), Signal(), Signal()
        read_valid, read_last = Signal(), Signal()
        m.d.comb += [
            room.eq(~read_valid | output.i.ready),
            read.eq(ready.bit_select(leaving, 1) & room),
            out_last.eq(out_beat == final_beat),
            leave.eq((read & out_last) << leaving),
            results.read_en.eq(read), results.read_addr.eq(Cat(out_beat, leaving)),
            origins.read_en.eq(read), origins.read_addr.eq(leaving),
            output.i.valid.eq(read_valid), output.i.payload.data.eq(results.read_data),
            output.i.payload.beat_last.eq(read_last),
        ]
        origin = data.View(origin_layout, origins.read_data)
        m.d.comb += [
            output.i.payload.sample.eq(origin.sample), output.i.payload.step.eq(origin.step),
            output.i.payload.bag_last_of_sample.eq(origin.last),
        ]
        with m.If(room):
            m.d.sync += read_valid.eq(read)
        with m.If(read):
            m.d.sync += [read_last.eq(out_last), out_beat.eq(Mux(out_last, 0, out_beat + 1))]
            with m.If(out_last):
                m.d.sync += leaving.eq(leaving + 1)

        count(m, self.counters, beats_in=put, beats_out=self.o.valid & self.o.ready,
              adds=pick.valid & ~pick.first, stall_adder=waiting.any() & ~eligible.any())
        flying = Cat(pick.valid, *(s.valid for s in stages))
        m.d.comb += self.idle.eq(
            ~(waiting.any() | closed.any() | flying.any() | read_valid) & output.idle)
        return m


def _next(m: Module, requests: Value, previous: Value) -> Value:
    """Return one bit of ``requests``: the lowest above the bit ``previous``, or the lowest."""
    bits = len(requests)
    above, chosen = Signal(bits), Signal(bits)
    # Bits above ``previous``: all that borrowing from it leaves standing.
    m.d.comb += above.eq(requests & ~(previous | (previous - 1)) & Mux(previous.any(), -1, 0))
    pool = Signal(bits)
    m.d.comb += [pool.eq(Mux(above.any(), above, requests)), chosen.eq(pool & (~pool + 1))]
    return chosen


def _encode(one_hot: Value, values) -> Value:
    """Return the value at the place of the one bit of ``one_hot``, 0 if there is none."""
    result = Const(0)
    for bit, value in zip(one_hot, values, strict=True):
        result = result | Mux(bit, value, 0)
    return result

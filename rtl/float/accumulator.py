"""Float accumulator: adds float32 vectors by entry with one pipelined adder per lane."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.float.add import FLOAT_ADDER_LATENCY, MINUS_ZERO, FloatAdder
from rtl.float.exact import check_lanes, exact_term_layout
from rtl.float.exact_table import exact_operation_layout
from rtl.float.pairing import Pairing
from rtl.gateable import Gateable
from rtl.memory import Ram
from rtl.shared import Shared
from rtl.stream import SkidBuffer, StreamFIFO

__all__ = ["FloatAccumulator"]

_IN_FLIGHT = 32
"""Results in flight: the FIFO is LUTRAM, which has this size anyway."""

_UNCOUNTED = 4
"""Operations that may be accepted before the number in flight counts them."""


class FloatAccumulator(Gateable, wiring.Component):
    """Add float32 vectors by entry; each addition is rounded to float32.

    The ports are those of :class:`~rtl.float.exact_accumulator.ExactAccumulator`. The memory is two
    float32 per lane and entry. The order of the additions of an entry depends on the cycles in
    which its terms arrive (:class:`~rtl.float.pairing.Pairing`), so equal terms may give sums that
    differ by rounding. A partial sum may overflow to infinity. A sum of one term is that term. NaN
    is 0x7FC00000.

    Each of two places has a memory, with a value of each entry. Values leave the adder into a FIFO,
    and from there return to the pairing or leave as sums. The user marks the first term of an
    entry. After reset, a sweep of one cycle per entry precedes the first operation.

    Parameters
    ----------
    entries: number of entries, at least 2.
    meta_shape: shape of the user's data that accompany a taken sum.
    style: ``bram`` or ``uram``, memory of the values.
    lanes: binary32 of a beat.

    Ports
    -----
    i: stream of :func:`~rtl.float.exact_table.exact_operation_layout`. ``take``: output the sum
        with ``meta``; otherwise add ``data`` to ``entry``. ``first``: ignore the entry's old
        content; without effect on a taking operation. Between terms and taking operations, ``i`` is
        not ready until nothing is in flight.
    o: output stream of :func:`~rtl.float.exact.exact_term_layout`, one beat per sum, in the order
        of the taking operations.
    idle: no operation is in flight; stored entries do not clear it.

    Member ``operands``: for a test, the operands of an addition or of a taken sum, and its entry.

    Raises ``ValueError`` for entries or lanes out of range.
    """

    LATENCY = {
        ("taking operation", "its beat"): 14,
        ("taking operation behind the first term of an entry", "its beat"): 17,
        ("taking operation behind the second term of an entry", "its beat"): 31,
    }
    RATE = ("1 term per cycle, also on one entry, with a wait now and then if entries have more "
            "values than places; 1 sum per cycle")

    def __init__(self, entries: int, meta_shape: ShapeLike, *, style: str = "bram",
                 lanes: int = 16):
        if isinstance(entries, bool) or not isinstance(entries, int) or entries < 2:
            raise ValueError(f"entries must be an integer of at least 2, not {entries!r}")
        check_lanes(lanes)
        self._entries, self._meta, self._style, self._lanes = entries, meta_shape, style, lanes
        bits = 32 * lanes
        self.operands = Signal(data.StructLayout(
            {"valid": 1, "take": 1, "entry": range(entries), "a": bits, "b": bits}))
        super().__init__({
            "i": In(stream.Signature(exact_operation_layout(entries, meta_shape, lanes))),
            "o": Out(stream.Signature(exact_term_layout(meta_shape, lanes))), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        bits, operation = 32 * self._lanes, self.i.payload
        value = data.StructLayout({
            "data": bits, "entry": range(self._entries), "take": 1, "meta": self._meta})
        m.submodules.pairing = pairing = Pairing(self._entries)
        m.submodules.results = results = StreamFIFO(value, _IN_FLIGHT)
        # The pairing is late to take a result.
        m.submodules.returning = returning = SkidBuffer(value)
        wiring.connect(m, results.o, returning.i)
        accept = self._admit(m, pairing)
        front, decision = returning.o.payload, pairing.o
        m.d.comb += [
            pairing.valid.eq(accept), pairing.entry.eq(operation.entry),
            pairing.first.eq(operation.first & ~operation.take), pairing.take.eq(operation.take),
            pairing.results.valid.eq(returning.o.valid & ~front.take),
            pairing.results.payload.eq(front.entry),
            returning.o.ready.eq(Mux(front.take, self.o.ready, pairing.results.ready)),
            self.o.valid.eq(returning.o.valid & front.take), self.o.payload.data.eq(front.data),
            self.o.payload.meta.eq(front.meta), self.o.payload.count.eq(1),
            self.o.payload.last.eq(1),
        ]

        # The arrival and the result when the pairing has decided.
        def later(name: str, given, shape=bits) -> Signal:
            signal = Signal(shape, reset_less=True, name=name)
            m.d.sync += signal.eq(given)
            return signal

        # The results that the pairing holds, a cycle late: only a register enables their bits.
        newest = later("newest", front.data)
        next_result, result = (Signal(bits, reset_less=True, name=n) for n in ("next", "result"))
        loaded = Signal()
        m.d.sync += loaded.eq(pairing.results.ready)
        with m.If(loaded):
            m.d.sync += [next_result.eq(newest), result.eq(next_result)]
        arrival, metas, decided = (
            operation.data, [operation.meta], pairing.LATENCY["operation", "decision"])
        for number in range(decided):
            arrival = later(f"arrival{number}", arrival)
        for number in range(decided + 2):
            metas.append(later(f"meta{number}", metas[-1], self._meta))

        stored = []
        for place in range(2):
            from_result = decision.from_result[place]
            m.submodules[f"place{place}"] = ram = Ram(bits, self._entries, style=self._style)
            m.d.comb += [
                ram.read_en.eq(decision.add | decision.take), ram.read_addr.eq(decision.entry),
                ram.write_en.eq(decision.write[place]),
                ram.write_addr.eq(Mux(from_result, decision.result, decision.arrival)),
                ram.write_data.eq(Mux(from_result, result, arrival)),
            ]
            stored.append(ram.read_data)

        # One cycle later, the stored values are there.
        both, take, upper = (Signal(reset_less=True, name=n) for n in ("both", "take", "upper"))
        none, second = Signal(reset_less=True), Signal(reset_less=True)
        other = later("other", Mux(decision.again, result, arrival))
        returned = later("returned", result)
        m.d.sync += [
            both.eq(decision.both), take.eq(decision.take), second.eq(decision.full.all()),
            none.eq(decision.take & ~decision.full.all()),
            upper.eq(Mux(decision.take, ~decision.full[0], decision.place)),
        ]
        begun = Signal()
        m.d.sync += begun.eq(decision.add | decision.take)
        begin, neutral = self.operands, Cat([MINUS_ZERO] * self._lanes)
        m.d.sync += [
            begin.valid.eq(begun), begin.take.eq(take),
            begin.entry.eq(later("entry3", decision.entry, range(self._entries))),
            begin.a.eq(Mux(both, returned, Mux(upper, stored[1], stored[0]))),
            begin.b.eq(Mux(none, neutral, Mux(take & second, stored[1], other))),
        ]
        self._add(m, results.i, metas[-1])
        return m

    def _admit(self, m: Module, pairing: Pairing) -> Value:
        """Count what is in flight; return whether an operation is accepted."""
        operation, count, room = self.i.payload, Signal(range(_IN_FLIGHT + 1)), Signal()
        accept, taking, quiet = (Signal() for _ in range(3))
        # Accepted operations that are not decided yet.
        waiting = Signal(pairing.LATENCY["operation", "decision"] - 1)
        m.d.comb += [
            self.i.ready.eq(room & (quiet | (operation.take == taking))),
            accept.eq(self.i.valid & self.i.ready), self.idle.eq(quiet),
        ]
        m.d.sync += [
            count.eq(count + pairing.grows
                     - (pairing.shrinks | (self.o.valid & self.o.ready))),
            room.eq(pairing.swept & (count <= _IN_FLIGHT - _UNCOUNTED)),
            waiting.eq(Cat(accept, waiting)),
            quiet.eq(pairing.swept & (count == 0) & ~waiting.any() & ~accept),
        ]
        with m.If(accept):
            m.d.sync += taking.eq(operation.take)
        return accept

    def _add(self, m: Module, results, meta: Value) -> None:
        """Add the operands, lane by lane; the sum enters ``results`` with its data."""
        begin, lanes = self.operands, []
        for number in range(self._lanes):
            adder = Shared(FloatAdder(keep=False), "float_adder_plain")
            m.submodules[f"adder{number}"] = adder
            m.d.comb += [adder.a.eq(begin.a.word_select(number, 32)),
                         adder.b.eq(begin.b.word_select(number, 32))]
            lanes.append(adder.o)
        tag = data.StructLayout({"entry": begin.entry.shape(), "take": 1, "meta": self._meta})
        tags = [Signal(tag, reset_less=True, name=f"tag{n}")
                for n in range(FLOAT_ADDER_LATENCY + 1)]
        stages = [begin.valid]
        for number in range(FLOAT_ADDER_LATENCY):
            m.d.sync += (stage := Signal(name=f"valid{number}")).eq(stages[-1])
            stages.append(stage)
        m.d.sync += [after.eq(before) for before, after in pairwise(tags)]
        m.d.comb += [
            tags[0].entry.eq(begin.entry), tags[0].take.eq(begin.take), tags[0].meta.eq(meta),
            results.valid.eq(stages[-1]), results.payload.data.eq(Cat(lanes)),
            *(results.payload[name].eq(tags[-1][name]) for name in tag.members),
        ]

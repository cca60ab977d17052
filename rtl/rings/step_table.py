"""Step table: the open steps, their missing answers, and their errors."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.formats import STEP_BITS
from rtl.memory import Ram
from rtl.monitor.counters import CounterLayout, count
from rtl.rings.layouts import AnsweredStep, StepError
from rtl.stream import StreamFIFO

__all__ = ["MOST_SAMPLES", "STEP_TABLE_COUNTERS", "StepTable", "check_slots"]

STEP_TABLE_COUNTERS = CounterLayout(
    "finished", "timeouts", "errors", "stray_answers", "excess_answers", "stray_errors")

MOST_SAMPLES = 1 << 24
"""Most samples of a step."""
_SAMPLE_BITS, _TIME_BITS, _STATUS_BITS = 25, 32, 8
_TIMED_OUT = 1 << _SAMPLE_BITS
"""Amount that a timeout subtracts from the missing answers: more than any step has."""
_LEFT_BITS = 28
"""Bits of a signed count, from all samples down to a timeout and the answers that follow it."""


def check_slots(slots: object) -> None:
    """Raise ``TypeError`` or ``ValueError`` unless ``slots`` is a power of two, 2 to 128."""
    if isinstance(slots, bool) or not isinstance(slots, int):
        raise TypeError(f"slots must be an integer, not {slots!r}")
    if not 2 <= slots <= 128 or slots & (slots - 1):
        raise ValueError(f"slots must be a power of two between 2 and 128, not {slots!r}")


class StepTable(wiring.Component):
    """Track the open steps, and report each step exactly once when it finishes.

    A step finishes when as many answers have left as it was opened with (at the opening if there
    are 0), or when it is late. Its slot is held until it is released. Excess answers of a step, and
    answers of steps that are not open, change nothing. The table stores the first error of an open
    step.

    A slot is late when ``timeout`` cycles have passed since its step was opened, finished or not.
    Each cycle checks slot ``time`` mod ``slots``, so a late slot is found at most ``slots`` cycles
    later. Its step finishes in the next cycle without another event. With a timeout, a held slot
    means not idle, so ``time`` does not jump while checks matter.

    Parameters: ``slots``, a power of two.

    Ports
    -----
    open: ``valid``, a step requests the free ``slot``, with ``samples`` missing answers; not in two
        of four cycles. taken: the request is processed; not while an event is ``answered``.
        accepted, refused: three cycles later: the step is open; or a step of its number is held
        (``doubled``), or ``room`` was 0 in the cycle before.
    answered: event :data:`~rtl.rings.layouts.AnsweredStep`. error: event
        :data:`~rtl.rings.layouts.StepError`; it must not follow the last answer.
    finished: stream of slots, in the order in which they finish.
    slot; step, status, late: of a held slot, combinational; ``status`` is 0 without an error.
    release: free ``slot``. held: a bit for each slot.
    time, timeout: in cycles; timeout 0 is never.
    counters: steps ``finished``, and by ``timeouts``; ``errors`` stored; ``stray_answers`` and
        ``stray_errors``, events of steps that are not open; ``excess_answers``, events with more
        answers than were missing.
    idle: no movement until an input moves.

    Raises ``TypeError`` or ``ValueError`` for ``slots`` that are not a power of two, 2 to 128.
    """

    LATENCY = {
        ("last answer", "its step, finished"): 7,
        ("opening", "answers of the step count"): 4,
    }
    RATE = "1 event of each kind per cycle; 1 opening in 4 cycles, in a cycle without answers"

    def __init__(self, slots: int):
        check_slots(slots)
        self._slots = slots
        slot = range(slots)
        super().__init__({
            "open": In(data.StructLayout({
                "valid": 1, "slot": slot, "step": STEP_BITS, "samples": _SAMPLE_BITS})),
            "room": In(1), "taken": Out(1), "accepted": Out(1), "refused": Out(1),
            "doubled": Out(1),
            "answered": In(AnsweredStep), "error": In(StepError),
            "finished": Out(stream.Signature(slot)),
            "slot": In(slot), "step": Out(STEP_BITS), "status": Out(_STATUS_BITS), "late": Out(1),
            "release": In(1), "held": Out(slots), "time": In(_TIME_BITS), "timeout": In(_TIME_BITS),
            "counters": Out(STEP_TABLE_COUNTERS), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        slots = self._slots
        steps = [Signal(STEP_BITS, name=f"step{k}", reset_less=True) for k in range(slots)]
        # Held slots of unfinished steps; late slots; slots with an error.
        counting, late, failed = (Signal(slots, name=n) for n in ("counting", "late", "failed"))
        m.submodules.finished_slots = finished = StreamFIFO(range(slots), slots, style="lutram")
        wiring.connect(m, finished.o, wiring.flipped(self.finished))

        expiry = Signal(data.StructLayout({"valid": 1, "slot": range(slots)}))
        busy = Signal()
        event, opens, ends = self._walk(m, steps, counting, expiry, finished, busy)
        m.d.sync += counting.eq((counting | self._bit(opens, event.slot)) & ~ends)
        m.d.sync += self.held.eq((self.held | self._bit(opens, event.slot))
                                 & ~self._bit(self.release, self.slot))
        with m.If(opens):
            for k, step in enumerate(steps):
                with m.If(event.slot == k):
                    m.d.sync += step.eq(event.step)
        kept = self._keep_errors(m, steps, counting, failed, opens, event)
        looking = self._look(m, late, counting, expiry, opens, event)

        m.submodules.names = names = Ram(STEP_BITS, slots, latency=0)
        m.d.comb += [
            names.write_en.eq(opens), names.write_addr.eq(event.slot),
            names.write_data.eq(event.step), names.read_addr.eq(self.slot),
            self.step.eq(names.read_data), self.late.eq(late.bit_select(self.slot, 1)),
            self.idle.eq(~(kept | looking | busy) & finished.idle),
        ]
        return m

    def _bit(self, enable: Value, slot: Value) -> Value:
        """Return a bit for each slot; the bit of ``slot`` is ``enable``."""
        return Value.cast(Cat(enable & (slot == k) for k in range(self._slots)))

    def _walk(self, m, steps, counting, expiry, finished, busy):
        """Pass openings, answers and timeouts through lookup and count.

        Return the counted event, whether it opens a step, and the slots that ended in the previous
        cycle.
        """
        slots = self._slots
        kinds = data.StructLayout({"opens": 1, "answers": 1, "expires": 1})
        about = data.StructLayout({
            "step": STEP_BITS, "samples": _SAMPLE_BITS, "slot": range(slots),
            "amount": range(_TIMED_OUT + 1)})
        kind = [Signal(kinds, name=f"kind{k}") for k in range(5)]
        of = [Signal(about, name=f"of{k}", reset_less=k > 0) for k in range(5)]
        opening = Signal()
        m.d.comb += [
            opening.eq(Cat(kind[k].opens for k in (1, 2, 3)).any()),
            self.taken.eq(self.open.valid & ~self.answered.valid & ~opening),
            kind[0].opens.eq(self.taken), kind[0].answers.eq(self.answered.valid),
            kind[0].expires.eq(expiry.valid & ~self.answered.valid & ~self.taken),
            of[0].step.eq(Mux(self.answered.valid, self.answered.step, self.open.step)),
            of[0].samples.eq(self.open.samples),
            of[0].slot.eq(Mux(self.taken, self.open.slot, expiry.slot)),
            of[0].amount.eq(Mux(self.answered.valid, self.answered.count, Mux(
                self.taken, 1, _TIMED_OUT))),
        ]
        for k in range(1, 5):
            m.d.sync += [kind[k].eq(kind[k - 1]), of[k].eq(of[k - 1])]
        with m.If(kind[0].expires):
            m.d.sync += expiry.valid.eq(0)

        # Find the slot of the step: compare, then encode.
        hits, held, room = Signal(slots, name="hits"), Signal(slots, name="held_hits"), Signal()
        same, accept, found, stray = Signal(slots), Signal(), Signal(), Signal()
        m.d.comb += [
            same.eq(Cat(step == of[1].step for step in steps)), found.eq(hits.any()),
            accept.eq(kind[2].opens & ~held.any() & room),
        ]
        m.d.sync += [
            hits.eq(same & counting), held.eq(same & self.held), room.eq(self.room),
            kind[3].opens.eq(accept), kind[3].answers.eq(kind[2].answers & found),
            stray.eq(kind[2].answers & ~found),
            self.refused.eq(kind[2].opens & ~accept), self.doubled.eq(held.any()),
        ]
        with m.If(kind[2].answers):
            m.d.sync += of[3].slot.eq(_place(hits))

        # Missing answers less one: negative after the end.
        m.submodules.left = left = Ram(_LEFT_BITS, slots, latency=0)
        rest, active, old = Signal(_LEFT_BITS), Signal(), left.read_data
        m.d.comb += [
            active.eq(kind[3].as_value().any()), self.accepted.eq(kind[3].opens),
            rest.eq(Mux(kind[3].opens, of[3].samples, old) - of[3].amount),
            left.read_addr.eq(of[3].slot), left.write_addr.eq(of[3].slot),
            left.write_data.eq(rest), left.write_en.eq(active),
        ]
        ended, over, beyond = Signal(), Signal(), Signal(_LEFT_BITS, reset_less=True)
        m.d.sync += [
            ended.eq(active & (kind[3].opens | ~old[-1]) & rest[-1]),
            over.eq(kind[3].answers & old[-1]), beyond.eq(rest),
        ]
        m.d.comb += [finished.i.valid.eq(ended), finished.i.payload.eq(of[4].slot)]
        count(m, self.counters, finished=ended, timeouts=ended & kind[4].expires,
              stray_answers=stray + over,
              excess_answers=ended & kind[4].answers & ~beyond.all())
        m.d.comb += busy.eq(Cat(*(each.as_value() for each in kind[1:]), stray, over,
                                self.refused).any())
        return of[3], kind[3].opens, self._bit(ended, of[4].slot)

    def _keep_errors(self, m, steps, counting, failed, opens, event) -> Value:
        """Store the first error of each open step; return whether an error is in flight."""
        slots = self._slots
        m.submodules.statuses = statuses = Ram(_STATUS_BITS, slots, latency=0)
        error, hits = Signal(StepError), Signal(slots)
        status = Signal(_STATUS_BITS, reset_less=True)
        come, new = Signal(), Signal(slots)
        m.d.sync += [
            error.eq(self.error), come.eq(error.valid), status.eq(error.status),
            hits.eq(Cat(step == error.step for step in steps) & counting
                    & error.valid.replicate(slots)),
            failed.eq((failed | hits) & ~self._bit(opens, event.slot)),
        ]
        m.d.comb += [
            new.eq(hits & ~failed), statuses.write_en.eq(new.any()),
            statuses.write_addr.eq(_place(hits)),
            statuses.write_data.eq(status), statuses.read_addr.eq(self.slot),
            self.status.eq(Mux(failed.bit_select(self.slot, 1), statuses.read_data, 0)),
        ]
        count(m, self.counters, errors=new.any(), stray_errors=come & ~hits.any())
        return error.valid | come

    def _look(self, m, late, counting, expiry, opens, event) -> Value:
        """Check one slot per cycle for a timeout; return whether a check may matter."""
        slots = self._slots
        m.submodules.ages = ages = Ram(_TIME_BITS, slots, latency=0)
        look = self.time[:ceil_log2(slots)]
        age, slot = Signal(_TIME_BITS, reset_less=True), Signal(range(slots), reset_less=True)
        looked, ever, found = Signal(), Signal(), Signal()
        m.d.comb += [
            ages.write_en.eq(opens), ages.write_addr.eq(event.slot),
            ages.write_data.eq(self.time), ages.read_addr.eq(look),
            found.eq(looked & ever & (age >= self.timeout)),
        ]
        m.d.sync += [
            age.eq(self.time - ages.read_data), slot.eq(look), ever.eq(self.timeout != 0),
            looked.eq(self.held.bit_select(look, 1)),
            late.eq((late | self._bit(found, slot)) & ~self._bit(opens, event.slot)),
        ]
        # A step that ended meanwhile must not end again.
        with m.If(found & ~expiry.valid):
            m.d.sync += [expiry.valid.eq(counting.bit_select(slot, 1)), expiry.slot.eq(slot)]
        with m.Elif(~counting.bit_select(expiry.slot, 1)):
            m.d.sync += expiry.valid.eq(0)
        return expiry.valid | (self.held.any() & (self.timeout != 0))


def _place(bits: Value) -> Value:
    """Return the position of the only bit of ``bits`` that is 1."""
    return Value.cast(Cat(Cat(bits[k] for k in range(len(bits)) if k >> bit & 1).any()
                          for bit in range(ceil_log2(len(bits)))))

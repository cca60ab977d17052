"""A bench for proofs: a block with free inputs, and statements that must hold in every cycle."""

from collections.abc import Iterable

from amaranth.hdl import ClockDomain, Module, Mux, Shape, Signal, Value

__all__ = ["Bench"]


class Bench:
    """Build the surroundings of a block under proof.

    A free signal takes any value in any cycle, so a proof covers every behaviour of the block's
    neighbours. Registers start as after reset; memories start with any contents.

    Members
    -------
    m: the module for submodules and statements; its domain ``sync`` has no reset.
    inputs: the free signals.
    broken: for each statement, a signal that is 1 in a cycle that breaks it.
    picked: for each statement of order: an item is picked, that item, and the number of items ahead
        of it.
    """

    def __init__(self):
        self.m = Module()
        self.clock = ClockDomain("sync", reset_less=True)
        self.m.domains += self.clock
        self.inputs: list[Signal] = []
        self.broken: dict[str, Signal] = {}
        self.picked: dict[str, tuple[Signal, Signal, Signal]] = {}
        self._assumed = Signal(init=1)  # every assumption held until now

    def free(self, shape=1, name: str | None = None) -> Signal:
        """Return a signal that takes any value in any cycle."""
        signal = Signal(shape, name=f"{name or 'free'}_{len(self.inputs)}")
        self.inputs.append(signal)
        return signal

    def constant(self, shape=1, name: str | None = None) -> Signal:
        """Return a signal with any value that is the same in all cycles."""
        first, kept, value = Signal(init=1), Signal(shape), Signal(shape)
        start = self.free(Shape.cast(shape), name)
        self.m.d.comb += value.eq(Mux(first, start, kept))
        self.m.d.sync += [first.eq(0), kept.eq(value)]
        return value

    def always(self, name: str, holds: Value) -> None:
        """State that ``holds`` is 1 in every cycle while all assumptions hold."""
        self.broken[name] = broken = Signal(name=f"broken_{name}")
        self.m.d.comb += broken.eq(~Value.cast(holds).bool() & self._assumed)

    def assume(self, *conditions: Value) -> None:
        """Restrict the proof to behaviours in which every condition holds in every cycle. Call
        once."""
        allowed, held = Value.cast(1), self._assumed
        for condition in conditions:
            allowed &= Value.cast(condition).bool()
        self._assumed = Signal()
        self.m.d.comb += self._assumed.eq(held & allowed)
        self.m.d.sync += held.eq(self._assumed)

    def source(self, stream, payload: Value | None = None) -> Value:
        """Drive an input stream: items at any time, each held until it is taken.

        payload: by default all free; use fewer free bits to keep the state small.

        Return 1 when an item is taken.
        """
        m = self.m
        offered = payload if payload is not None else self.free(
            Shape.cast(stream.payload.shape()), "item")
        stalled, held = Signal(), Signal.like(Value.cast(offered))
        current = Value.cast(stream.payload)
        taken = stream.valid & stream.ready
        m.d.comb += [stream.valid.eq(stalled | self.free(name="offer")),
                     current.eq(Mux(stalled, held, offered))]
        m.d.sync += [stalled.eq(stream.valid & ~stream.ready), held.eq(current)]
        return taken

    def sink(self, stream, name: str, watched: Value | None = None,
             eager: Value | None = None) -> Value:
        """Take from an output stream at any time, and state that it obeys the stream contract.

        Valid and payload, or the ``watched`` part of the payload, must be stable until ready. While
        ``eager``, every item is taken at once. Return 1 when an item is taken.
        """
        m = self.m
        payload = Value.cast(stream.payload if watched is None else watched)
        stalled, before = Signal(), Signal.like(payload)
        ready = self.free(name="ready")
        m.d.comb += stream.ready.eq(ready if eager is None else ready | eager)
        m.d.sync += [stalled.eq(stream.valid & ~stream.ready), before.eq(payload)]
        self.always(f"{name}_holds", ~stalled | (stream.valid & (payload == before)))
        return stream.valid & stream.ready

    def in_order(self, name: str, entered: Value, item: Value, left: Value, left_item: Value,
                 most: int) -> Signal:
        """State that items leave in order of entry: none lost, duplicated, invented or overtaken.

        The solver picks any one item as it enters. The items ahead of it are counted down as they
        leave. When the count is 0, the next item to leave must equal the picked item, bit for bit.
        At most ``most`` items are inside. The caller must state that the picked item leaves at all.
        Return the number of items inside, before this cycle's events.
        """
        m = self.m
        item, left_item = Value.cast(item), Value.cast(left_item)
        inside = Signal(range(most + 3))
        m.d.sync += inside.eq(inside + entered - left)
        self.always(f"{name}_none_invented", ~left | (inside != 0))
        self.always(f"{name}_bounded", inside <= most)
        waiting, kept, ahead = Signal(), Signal.like(item), Signal.like(inside)
        self.picked[name] = waiting, kept, ahead
        with m.If(waiting):
            with m.If(left):
                m.d.sync += [ahead.eq(ahead - 1), waiting.eq(ahead != 0)]
        with m.Elif(entered & self.free(name="pick")):
            m.d.sync += [waiting.eq(1), kept.eq(item), ahead.eq(inside - left)]
        self.always(f"{name}_in_order", ~(waiting & left & (ahead == 0)) | (left_item == kept))
        return inside

    def within(self, name: str, cycles: int, due: Value, done: Value) -> Signal:
        """State that ``done`` is 1 at the latest after ``cycles`` cycles in which it was due.

        Cycles that are not due do not count and do not reset the count. Return the count.
        """
        count = Signal(range(cycles + 2))
        with self.m.If(done):
            self.m.d.sync += count.eq(0)
        with self.m.Elif(due):
            self.m.d.sync += count.eq(count + 1)
        self.always(name, count <= cycles)
        return count

    @staticmethod
    def any_of(values: Iterable[Value]) -> Value:
        """Return 1 if any value is not 0."""
        result = Value.cast(0)
        for value in values:
            result |= Value.cast(value).bool()
        return result

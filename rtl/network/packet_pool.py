"""Packet pool: assigns items to packet buffers by destination, and closes the buffers."""

from collections.abc import Collection

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.formats import NODE_BITS, STEP_BITS
from rtl.memory import Ram, report_swept
from rtl.stream import StreamFIFO

__all__ = ["FreedBuffer", "PacketPool", "Place", "free_buffers", "packet_buffers"]


def Place(buffers: int, positions: int, label: int = 0) -> data.StructLayout:
    """Layout of a closed packet: its buffer, its numbers of units and positions, and its label of
    ``label`` bits."""
    return data.StructLayout({
        "destination": NODE_BITS, "step": STEP_BITS, "buffer": range(buffers),
        "units": range(positions + 1), "positions": range(positions + 1),
        **({"label": label} if label else {})})


def FreedBuffer(buffers: int) -> data.StructLayout:
    """Layout of the event that a buffer is free again."""
    return data.StructLayout({"valid": 1, "buffer": range(buffers)})


class PacketPool(wiring.Component):
    """Assign positions in packet buffers, with one open buffer per destination.

    A unit (a record, a vector) is one or more items; each item takes one position. A buffer closes

    * with the item that completes its ``limit``-th unit;
    * with ``match_step``, before a unit of another step, which costs a cycle; or with ``label``,
      before a unit of another label;
    * when its first item is ``timeout`` cycles old. One destination is checked per cycle: ``time``
      mod ``destinations``, rounded up to a power of two. A buffer therefore closes at most that
      many cycles and one unit late. With ``timeout`` 0 it closes at the next check.

    An open buffer clears ``idle``, so ``time`` advances by one per cycle while a check matters.
    Items of a destination keep their order.

    Parameters
    ----------
    destinations: number of destinations.
    buffers: number of packet buffers, more than ``destinations``. With fewer buffers, open buffers
        could starve each other.
    positions: positions of a buffer.
    match_step: all units of a packet must have the same step.
    label: bits of the label of an item, which all units of a packet must share; 0 for none.
    more: additional input ports of a subclass.
    kept: names of the additional ports that belong to the item.

    Ports
    -----
    valid, destination, step, last: the offered item; ``last`` marks the last item of its unit.
    label: its label, with ``label``.
    take: the offered item enters.
    vacant: no item is inside, or the item inside gets its position. Unlike ``take``, it ignores the
        sweep after reset. Use it as a second enable for a wide part of the item stored outside.
    ready, buffer, position, unit: the item inside gets a position, at the earliest one cycle after
        ``take``. ``position`` and ``unit`` count from 0.
    limit: units that close a packet; a change applies one cycle later.
    time, timeout: cycle counter, and maximum age of an open buffer in cycles.
    closed: stream of :func:`Place`; has room for all buffers and never blocks.
    freed: event :func:`FreedBuffer`.
    full, expired, stepped: events: reason why a buffer closed.
    starved: event: an item waits for a free buffer.
    idle: no item inside, no buffer open or closed but unread, and the sweep after reset is done.
    """

    RATE = "1 item per cycle; a close by time-out takes a cycle from the input"

    def __init__(self, destinations: int, buffers: int, positions: int, *, match_step: bool,
                 label: int = 0, kept: Collection[str] = (), **more: wiring.Member):
        for name, value, low in (("destinations", destinations, 1),
                                 ("buffers", buffers, 2), ("positions", positions, 1)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be an integer, not {value!r}")
            if value < low:
                raise ValueError(f"{name} must be at least {low}, not {value!r}")
        if buffers <= destinations:
            raise ValueError(f"buffers must be more than destinations ({destinations}), "
                             f"not {buffers!r}")
        self._destinations, self._buffers = destinations, buffers
        self._positions, self._match_step = positions, match_step
        self._label = {"label": label} if label else {}
        self._kept = {name: more[name].shape for name in kept} | self._label
        self._place = Place(buffers, positions, label)
        super().__init__({
            "valid": In(1), "destination": In(NODE_BITS), "step": In(STEP_BITS), "last": In(1),
            "take": Out(1), "vacant": Out(1), "ready": Out(1), "buffer": Out(range(buffers)),
            "position": Out(range(positions + 1)), "unit": Out(range(positions + 1)),
            "limit": In(range(positions + 1)), "time": In(32), "timeout": In(16),
            "closed": Out(stream.Signature(self._place)),
            "freed": In(FreedBuffer(buffers)),
            "full": Out(1), "expired": Out(1), "stepped": Out(1), "starved": Out(1),
            "idle": Out(1), **{name: In(bits) for name, bits in self._label.items()}, **more,
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        n, place = self._destinations, self._place
        state_layout = data.StructLayout({name: place[name].shape for name in (
            "step", "buffer", "units", "positions", *self._label)})
        # The state of each open buffer. One copy is read for items, the other for timeouts.
        m.submodules.states = states = Ram(state_layout.size, n, latency=0)
        m.submodules.late_states = late_states = Ram(state_layout.size, n, latency=0)
        m.submodules.ages = ages = Ram(32, n, latency=0)
        m.submodules.closed = closed = StreamFIFO(place, self._buffers, style="lutram")
        wiring.connect(m, closed.o, wiring.flipped(self.closed))
        swept, free = free_buffers(m, self._buffers, self.freed)
        bits = max(1, ceil_log2(n))
        opened, middle, late = Signal(n), Signal(), Signal()
        late_index = Signal(bits, reset_less=True)

        # The item inside, and the state of its destination's buffer when the item entered.
        item = Signal(data.StructLayout(
            {"destination": bits, "step": STEP_BITS, "last": 1, **self._kept}), reset_less=True)
        state = Signal(state_layout, reset_less=True)  # valid if a buffer is open
        units, positions = Signal(state.units.shape()), Signal(state.positions.shape())
        inside, is_open, other_step, fills = (
            Signal(name=name) for name in ("inside", "is_open", "other_step", "fills"))
        updated, overdue = Signal(state_layout), Signal(state_layout)
        expiring, splits, last_of_all, placed = Signal(), Signal(), Signal(), Signal()
        # A register beside ``inside``, so ``vacant`` drives only enables.
        outside = Signal(init=1)
        m.d.comb += [
            self.expired.eq(expiring & opened.bit_select(late_index, 1)),
            self.stepped.eq(inside & ~expiring & other_step),
            self.starved.eq(inside & ~expiring & ~is_open & ~free.valid),
            self.ready.eq(inside & placed),
            placed.eq(~expiring & ~other_step & (is_open | free.valid)),
            last_of_all.eq(item.last & fills), self.full.eq(self.ready & last_of_all),
            self.vacant.eq(outside | placed), self.take.eq(swept & (~inside | self.ready)),
            free.ready.eq(self.ready & ~is_open),
            self.buffer.eq(Mux(is_open, state.buffer, free.payload)),
            units.eq(Mux(is_open, state.units, 0)), positions.eq(Mux(is_open, state.positions, 0)),
            self.position.eq(self._position(m, item, positions)), self.unit.eq(units),
            updated.step.eq(Mux(is_open, state.step, item.step)), updated.buffer.eq(self.buffer),
            *self._grow(item, units, positions, updated),
            *(updated[name].eq(Mux(is_open, state[name], item[name])) for name in self._label),
        ]
        for ram in (states, late_states):
            m.d.comb += [ram.write_en.eq(self.ready), ram.write_addr.eq(item.destination),
                         ram.write_data.eq(updated), ram.read_en.eq(1)]
        m.d.comb += [
            states.read_addr.eq(self.destination[:bits]),
            late_states.read_addr.eq(late_index), overdue.eq(late_states.read_data),
        ]
        with m.If(self.ready):
            m.d.sync += opened.bit_select(item.destination, 1).eq(~last_of_all)
        with m.If(self.stepped):
            m.d.sync += opened.bit_select(item.destination, 1).eq(0)
        finds = self._look(m, ages, opened, item, is_open, late, late_index)
        # A unit is never split: a timeout waits for the end of the unit.
        m.d.comb += splits.eq(Mux(self.ready, ~item.last, middle))
        m.d.sync += [middle.eq(splits),
                     expiring.eq(((late & ~expiring) | finds) & ~splits)]
        with m.If(expiring):
            m.d.sync += [late.eq(0), opened.bit_select(late_index, 1).eq(0)]
        self._enter(m, opened, item, state, updated, (is_open, other_step, fills), states,
                    late_index, expiring, last_of_all)
        with m.If(self.take):
            m.d.sync += [inside.eq(self.valid), outside.eq(~self.valid)]

        # The queue has room for every buffer. Valid is full, expired or stepped.
        m.d.comb += [
            closed.i.valid.eq(Mux(expiring, self.expired, inside & (
                other_step | ((is_open | free.valid) & last_of_all)))),
            closed.i.payload.destination.eq(Mux(expiring, late_index, item.destination)),
            closed.i.payload.step.eq(Mux(expiring, overdue.step, updated.step)),
            closed.i.payload.buffer.eq(Mux(expiring, overdue.buffer, self.buffer)),
        ]
        for name in self._label:
            m.d.comb += closed.i.payload[name].eq(Mux(expiring, overdue[name], updated[name]))
        for name in ("units", "positions"):
            m.d.comb += closed.i.payload[name].eq(Mux(
                expiring, overdue[name], Mux(other_step, state[name], updated[name])))
        m.d.comb += self.idle.eq(swept & ~inside & ~opened.any() & ~late & closed.idle)
        return m

    def _position(self, m, item, positions):
        """Return the position of ``item`` in its buffer, which has ``positions`` in use."""
        return positions

    def _grow(self, item, units, positions, updated) -> list:
        """Return the statements that set the numbers of units and positions after ``item``."""
        return [updated.positions.eq(positions + 1), updated.units.eq(units + item.last)]

    def _enter(self, m, opened, item, state, updated, flags, states, late_index, expiring,
               last_of_all):
        """Take the offered item or keep the item inside; update the state of its destination's
        buffer."""
        is_open, other_step, fills = flags
        target = self.destination[:len(item.destination)]
        same, found, open_next = Signal(), Signal(state.shape()), Signal()
        # Compared separately, because the select signal is late.
        other = open_next & (
            (same & (self.step != item.step)) | (~same & (self.step != found.step)))
        if self._label:
            other = open_next & (
                (same & (self.label != item.label)) | (~same & (self.label != found.label)))
        filling, splitting, single = self._compare(
            m, item, state, found, is_open, same, open_next, other)
        m.d.comb += [
            found.eq(states.read_data), same.eq(self.ready & (target == item.destination)),
            open_next.eq(Mux(same, ~last_of_all, opened.bit_select(target, 1)
                             & ~(expiring & (late_index == target)))),
        ]
        with m.If(self.take):
            m.d.sync += [
                item.destination.eq(target), item.step.eq(self.step), item.last.eq(self.last),
                *(item[name].eq(getattr(self, name)) for name in self._kept),
                is_open.eq(open_next), state.eq(Mux(same, updated, found)), fills.eq(filling),
            ]
            if self._match_step or self._label:
                m.d.sync += other_step.eq(splitting)
        # Without testing whether an open buffer expires: without one, the registers have these
        # values already.
        with m.Elif(self.stepped | (expiring & (late_index == item.destination))):
            m.d.sync += [is_open.eq(0), other_step.eq(0), fills.eq(single)]

    def _compare(self, m, item, state, found, is_open, same, open_next, other):
        """Return whether the offered item fills its buffer, whether the buffer closes before it,
        and whether it fills a buffer of its own. ``other``: the buffer is open for another step."""
        single, but_one, enough = Signal(), Signal(self.limit.shape()), Signal()
        m.d.sync += [single.eq(self.limit <= 1),
                     but_one.eq(Mux(self.limit == 0, 0, self.limit - 1))]
        m.d.comb += enough.eq((is_open & (state.units + item.last >= but_one))
                              | (~is_open & (item.last >= but_one)))
        filling = ((open_next & same & enough)
                   | (open_next & ~same & (found.units >= but_one)) | (~open_next & single))
        return filling, other, single

    def _look(self, m, ages, opened, item, is_open, late, late_index):
        """Check one destination for a timeout per cycle; return whether it has one. The age is
        known by then."""
        opening, look, next_look = Signal(), Signal.like(late_index), Signal.like(late_index)
        age, bits = Signal(32, reset_less=True), ceil_log2(self._destinations)
        m.d.comb += [
            opening.eq(self.ready & ~is_open),
            # One destination per cycle.
            look.eq(self.time[:bits]), next_look.eq((self.time + 1)[:bits]),
            ages.write_en.eq(opening), ages.write_addr.eq(item.destination),
            ages.write_data.eq(self.time), ages.read_addr.eq(next_look), ages.read_en.eq(1),
        ]
        m.d.sync += age.eq(Mux(opening & (next_look == item.destination), 1,
                               self.time + 1 - ages.read_data))
        finds = Signal()
        m.d.comb += finds.eq(~late & opened.bit_select(look, 1) & self._expires(m, age))
        with m.If(finds):
            m.d.sync += [late.eq(1), late_index.eq(look)]
        return finds

    def _expires(self, m, age) -> Value:
        """Return whether a buffer closes whose first item is ``age`` cycles old."""
        return age >= self.timeout


def packet_buffers(destinations: int) -> int:
    """Return the default number of packet buffers: two per destination, at least four."""
    return max(4, 2 * destinations)


def free_buffers(m: Module, buffers: int, freed) -> tuple:
    """Keep the free buffers in a queue that a sweep fills after reset. Return whether the sweep is
    done, and the stream of free buffers."""
    m.submodules.free = free = StreamFIFO(range(buffers), buffers, style="lutram")
    sweep, swept = Signal(range(buffers)), Signal()
    m.d.comb += [free.i.valid.eq(freed.valid | ~swept),
                 free.i.payload.eq(Mux(swept, freed.buffer, sweep))]
    with m.If(~swept):
        m.d.sync += [sweep.eq(sweep + 1), swept.eq(sweep == buffers - 1)]
    report_swept(m, swept)
    return swept, free.o

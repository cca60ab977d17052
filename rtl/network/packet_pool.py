"""Packet pool: assigns items to packet buffers by destination, and closes the buffers."""

from amaranth.hdl import C, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.formats import NODE_BITS, STEP_BITS
from rtl.memory import Ram
from rtl.stream import StreamFIFO

__all__ = ["FreedBuffer", "PacketPool", "Place", "free_buffers", "packet_buffers"]


def Place(buffers: int, positions: int) -> data.StructLayout:
    """Layout of a closed packet: its buffer, and its numbers of units and positions."""
    return data.StructLayout({
        "destination": NODE_BITS, "step": STEP_BITS, "buffer": range(buffers),
        "units": range(positions + 1), "positions": range(positions + 1)})


def FreedBuffer(buffers: int) -> data.StructLayout:
    """Layout of the event that a buffer may be used again."""
    return data.StructLayout({"valid": 1, "buffer": range(buffers)})


class PacketPool(wiring.Component):
    """Assign positions in packet buffers, one open buffer per destination.

    A unit (a record, a vector) is one or more items; each item takes a position. A buffer closes

    * with the item that makes it hold ``limit`` units,
    * with ``match_step``, before a unit of another step (which costs a cycle),
    * when its first item is ``timeout`` cycles old: destination ``time`` mod ``destinations``
      (rounded up to a power of two) is looked at in each cycle, so it closes at most that many
      cycles and a unit late; ``timeout`` 0 closes at the next look.

    Since an open buffer means not idle, ``time`` goes up by one while any look matters. Rate: see
    ``RATE``.

    Parameters
    ----------
    destinations, buffers: there must be more buffers than destinations, or the open ones could
        starve each other.
    positions: positions of a buffer.
    match_step: whether all units of a packet must be of one step.

    Ports
    -----
    valid, destination, step, last; ready, buffer, position, unit: an item (``last`` of its unit)
        requests a position and gets it when ``ready``, in the same cycle; ``position`` and ``unit``
        count from 0.
    limit (counts from a cycle later on), time, timeout.
    closed: stream of :func:`Place`; never blocks, since it has room for all buffers.
    freed: event :func:`FreedBuffer`.
    full, expired, stepped, starved: events to count: why a buffer closed, or that an item waits
        for a free one.
    idle: no buffer is open, or closed but unread, and the sweep after reset is done.
    """

    RATE = "1 item per cycle; a close by time-out takes a cycle from the input"

    def __init__(self, destinations: int, buffers: int, positions: int, *, match_step: bool):
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
        super().__init__({
            "valid": In(1), "destination": In(NODE_BITS), "step": In(STEP_BITS), "last": In(1),
            "ready": Out(1), "buffer": Out(range(buffers)), "position": Out(range(positions + 1)),
            "unit": Out(range(positions + 1)),
            "limit": In(range(positions + 1)), "time": In(32), "timeout": In(16),
            "closed": Out(stream.Signature(Place(buffers, positions))),
            "freed": In(FreedBuffer(buffers)),
            "full": Out(1), "expired": Out(1), "stepped": Out(1), "starved": Out(1),
            "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        n, place = self._destinations, Place(self._buffers, self._positions)
        state_layout = data.StructLayout({
            name: place[name].shape for name in ("step", "buffer", "units", "positions")})
        m.submodules.states = states = Ram(state_layout.size, n, latency=0)
        # Whether an item is taken depends only on reads by the item's own destination, and does not
        # wait for the time-outs to choose an address. ``nearly``: one more unit fills the buffer;
        # knowing it before that unit arrives shortens the path.
        own_layout = data.StructLayout(
            {"nearly": 1} | ({"step": STEP_BITS} if self._match_step else {}))
        m.submodules.own = own = Ram(own_layout.size, n, latency=0)
        m.submodules.ages = ages = Ram(32, n, latency=0)
        m.submodules.closed = closed = StreamFIFO(place, self._buffers, style="lutram")
        wiring.connect(m, closed.o, wiring.flipped(self.closed))
        swept, free = free_buffers(m, self._buffers, self.freed)

        bits = ceil_log2(n)
        opened, middle = Signal(n), Signal()
        late, late_index = Signal(), Signal(max(1, bits))
        expiring, index, target = Signal(), Signal(max(1, bits)), Signal(max(1, bits))
        found, updated = Signal(state_layout), Signal(state_layout)
        here, written, here_open = Signal(own_layout), Signal(own_layout), Signal()
        is_open, other_step, fills, single = Signal(), Signal(), Signal(), Signal()
        opening = Signal()
        but_one = Signal(self.limit.shape())
        m.d.sync += [single.eq(self.limit <= 1),
                     but_one.eq(Mux(self.limit == 0, 0, self.limit - 1))]
        m.d.comb += [
            # A unit is never split: a time-out waits for its end.
            expiring.eq(late & ~middle),
            target.eq(self.destination[:bits]), index.eq(Mux(expiring, late_index, target)),
            states.read_addr.eq(index), states.read_en.eq(1), found.eq(states.read_data),
            is_open.eq(opened.bit_select(index, 1)),
            own.read_addr.eq(target), own.read_en.eq(1), here.eq(own.read_data),
            here_open.eq(opened.bit_select(target, 1)),
            other_step.eq((here.step != self.step) if self._match_step else C(0)),
            self.buffer.eq(Mux(is_open, found.buffer, free.payload)),
            self.position.eq(Mux(is_open, found.positions, 0)),
            self.unit.eq(Mux(is_open, found.units, 0)),
            updated.step.eq(Mux(is_open, found.step, self.step)),
            updated.buffer.eq(self.buffer), updated.positions.eq(self.position + 1),
            updated.units.eq(self.unit + self.last),
            fills.eq(Mux(here_open, here.nearly, single)),
            states.write_en.eq(self.ready), states.write_addr.eq(target),
            states.write_data.eq(updated),
            written.nearly.eq(updated.units >= but_one),
            own.write_en.eq(self.ready), own.write_addr.eq(target),
            own.write_data.eq(written),
            # Computed without ``ready``, which needs the comparison with an open buffer's step.
            opening.eq(self.valid & swept & ~expiring & ~here_open & free.valid),
            ages.write_en.eq(opening), ages.write_addr.eq(target), ages.write_data.eq(self.time),
            free.ready.eq(opening),
        ]
        if self._match_step:
            m.d.comb += written.step.eq(self.step)
        with m.If(expiring):
            m.d.comb += self.expired.eq(is_open)
            m.d.sync += late.eq(0)
        with m.Elif(self.valid & swept):
            with m.If(here_open & other_step):
                m.d.comb += self.stepped.eq(1)
            with m.Elif(~here_open & ~free.valid):
                m.d.comb += self.starved.eq(1)
            with m.Else():
                m.d.comb += [self.ready.eq(1), self.full.eq(self.last & fills)]
                m.d.sync += [middle.eq(~self.last),
                             opened.bit_select(target, 1).eq(~self.full)]
        with m.If(self.expired | self.stepped):
            m.d.sync += opened.bit_select(index, 1).eq(0)

        # A closed packet enters its queue a cycle later; the queue has room for every buffer.
        push, pushed = Signal(), Signal(place, reset_less=True)
        m.d.sync += push.eq(self.full | self.expired | self.stepped)
        m.d.sync += [
            pushed.destination.eq(index), pushed.buffer.eq(self.buffer),
            pushed.step.eq(updated.step),
            pushed.units.eq(Mux(self.full, updated.units, self.unit)),
            pushed.positions.eq(Mux(self.full, updated.positions, self.position)),
        ]
        m.d.comb += [closed.i.valid.eq(push), closed.i.payload.eq(pushed)]

        look = Signal(max(1, bits))
        m.d.comb += [look.eq(self.time[:bits]), ages.read_addr.eq(look), ages.read_en.eq(1)]
        age = (self.time - ages.read_data)[:32]
        with m.If(~late & opened.bit_select(look, 1) & (age >= self.timeout)):
            m.d.sync += [late.eq(1), late_index.eq(look)]
        m.d.comb += self.idle.eq(swept & ~opened.any() & ~late & ~push & closed.idle)
        return m


def packet_buffers(destinations: int) -> int:
    """Return the packet buffers of a packager by default: two a destination, at least four."""
    return max(4, 2 * destinations)


def free_buffers(m: Module, buffers: int, freed) -> tuple:
    """Keep the free buffers of ``buffers`` in a queue, filled by a sweep after reset; return
    whether the sweep is over, and the stream of free buffers."""
    m.submodules.free = free = StreamFIFO(range(buffers), buffers, style="lutram")
    sweep, swept = Signal(range(buffers)), Signal()
    m.d.comb += [free.i.valid.eq(freed.valid | ~swept),
                 free.i.payload.eq(Mux(swept, freed.buffer, sweep))]
    with m.If(~swept):
        m.d.sync += [sweep.eq(sweep + 1), swept.eq(sweep == buffers - 1)]
    return swept, free.o

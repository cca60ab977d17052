"""A small packet pool between items and packets, and its invariant: the location of each buffer,
the state of the open buffers, and the reason for each close."""

import sys
from collections.abc import Sequence
from unittest.mock import patch

from amaranth.hdl import Array, Cat, Const, Mux, Signal, Value
from amaranth.lib import data
from amaranth.utils import bits_for, ceil_log2

from rtl.network.packet_pool import PacketPool
from rtl.network.vector_pool import VectorPool
from tests.formal.bench import Bench
from tests.formal.plain import TimedFIFO
from tests.formal.shown import LOCALS, ShownRam
from tests.mutants import contains, variant

__all__ = ["Pooling"]

TIME = 4
PLACED = 6
_SHOWN = [("        return m\n", f"        {LOCALS.format('inner')}return m\n"),
          ("        return finds\n", f"        {LOCALS.format('looking')}return finds\n"),
          ("m.d.sync += [single.eq(self.limit <= 1),",
           f"{LOCALS.format('entering')}m.d.sync += [single.eq(self.limit <= 1),"),
          ("sweep, swept = Signal(range(buffers)), Signal()",
           "sweep, swept = Signal(range(buffers)), Signal(); free.sweep = sweep")]
_SHOWN_SIZES = ("return filling, other, single",
                f"{LOCALS.format('entering')}return filling, other, single")


def _block(edits: Sequence[tuple[str, str]], sized: bool, node: int) -> type:
    """Return a pool after ``edits`` whose destinations have ``node`` bits, and whose signals are
    visible."""
    own = [edit for edit in edits if sized and contains(VectorPool, edit[0])]
    pool = variant(
        PacketPool, *(edit for edit in edits if edit not in own), *_SHOWN,
        ("ages = Ram(32, n", f"ages = Ram({TIME}, n"),
        ("age, bits = Signal(32,", f"age, bits = Signal({TIME},"),
        ('"time": In(32), "timeout": In(16)', f'"time": In({TIME}), "timeout": In({TIME})'),
        NODE_BITS=node, STEP_BITS=1, StreamFIFO=TimedFIFO, Ram=ShownRam)
    if not sized:
        return pool
    # A variant executes the imports of its module again.
    with patch.object(sys.modules[PacketPool.__module__], "PacketPool", pool):
        return variant(VectorPool, *own, _SHOWN_SIZES, BEAT_INDEX_BITS=1)


class Pooling:
    """The pool, its surroundings, and statements about it.

    Items are offered, packets read and their buffers freed at any time. A unit has one item, or two
    items of the same destination and step. Times have four bits; queues are registers
    (``test_streams``).

    match: a packet has units of one step.
    sizes: destinations, buffers, positions.
    sized: the pool is that of vectors. The step is then the label of a unit, and each label has a
        number of items and a limit of its own.

    Member ``here``: for each buffer, it gets an item.
    """

    def __init__(self, *edits: tuple[str, str], match: bool, sizes: tuple[int, int, int],
                 sized: bool = False):
        self.bench = bench = Bench()
        self.match, (self.destinations, self.buffers, self.positions) = match, sizes
        self.sized = sized
        m, node = bench.m, ceil_log2(self.destinations)
        block = _block(edits, sized, node)
        self.dut = dut = block(*sizes) if sized else block(*sizes, match_step=match)
        dut._MustUse__silence = True  # elaborated here, because statements refer to its parts
        m.submodules.dut = dut.elaborate(None)
        self.parts = m.submodules.dut.submodules
        self.timeout = bench.constant(2, "timeout")
        # By step. Without sizes, a step changes nothing.
        limits = [bench.constant(len(dut.limit), "limit") for _ in range(1 + sized)]
        twos = [bench.constant(1, "two") for _ in range(1 + sized)]
        self.limits, self.twos = Array(limits * (2 - sized)), Array(twos * (2 - sized))
        time, begin = Signal(TIME), bench.constant(1, "begin")
        # Constant inputs are valid from the cycle after reset on.
        self.started = Signal()
        m.d.sync += [time.eq(time + 1), self.started.eq(1)]
        self._offer(node)
        m.d.comb += [dut.time.eq(time + begin), dut.timeout.eq(self.timeout)]
        if not sized:
            m.d.comb += dut.limit.eq(limits[0])
        # A unit fits into a buffer, and so does the allowed number of units.
        bench.assume(*((Mux(sized & (limit == 0), 1, limit) << two) <= self.positions
                       for limit, two in zip(limits, twos, strict=True)))
        self._watch(node)

    def _offer(self, node: int) -> None:
        """Offer items at any time, and track the item inside."""
        bench, dut, m = self.bench, self.dut, self.bench.m
        destination, step = bench.free(node, "destination"), bench.free(name="step")
        offered = Signal(data.StructLayout({"destination": node, "step": 1, "last": 1}))
        self.second, self.kept, self.mine = Signal(), Signal(node + 1), Signal.like(offered)
        m.d.comb += [
            offered.eq(Cat(Mux(self.second, self.kept, Cat(
                Mux(destination < self.destinations, destination, 0), step)),
                ~self.twos[offered.step] | self.second)),
            dut.valid.eq(bench.free(name="offers") & self.started),
            dut.destination.eq(offered.destination), dut.last.eq(offered.last)]
        if self.sized:
            m.d.comb += [dut.label.eq(offered.step), dut.ahead.eq(self.most(offered.step) - 1)]
        else:
            m.d.comb += dut.step.eq(offered.step)
        self.inside, taken = Signal(), dut.take & dut.valid
        with m.If(taken):
            m.d.sync += [self.second.eq(self.twos[offered.step] & ~self.second),
                         self.kept.eq(offered),
                         self.mine.eq(offered)]
        with m.If(dut.ready | taken):
            m.d.sync += self.inside.eq(taken)
        bench.always("one_inside", ~(taken & self.inside) | dut.ready)
        bench.always("its_own", ~dut.ready | self.inside)
        bench.always("vacant", dut.vacant == (~self.inside | dut.ready))

    def _watch(self, node: int) -> None:
        """Track the content of each buffer, and state that items and packets match it."""
        bench, dut, m, mine, match = self.bench, self.dut, self.bench.m, self.mine, self.match
        number = bits_for(self.positions)
        self.noted = [Signal(data.StructLayout({
            "filling": 1, "closed": 1, "destination": node, "step": 1, "middle": 1,
            "units": number, "positions": number, "age": TIME}), name=f"buffer{k}")
            for k in range(self.buffers)]
        self.shown = shown = dut.closed.payload
        self.out = out = bench.sink(dut.closed, "closed", Cat(
            shown.destination, shown.buffer, shown.units, shown.positions))
        freed, frees, begins = (
            bench.free(range(self.buffers), "freed"), Signal(), dut.position == 0)
        gone = [(freed == k) & buffer.closed for k, buffer in enumerate(self.noted)]
        m.d.comb += [frees.eq(bench.free(name="frees") & bench.any_of(gone)),
                     dut.freed.valid.eq(frees), dut.freed.buffer.eq(freed)]
        good, told, reason, self.here = [], [], [], []
        for k, buffer in enumerate(self.noted):
            here, ends = dut.ready & (dut.buffer == k), out & (shown.buffer == k)
            self.here.append(here)
            same = (buffer.destination == mine.destination) & (~match | (buffer.step == mine.step))
            good.append(here & Mux(begins, ~buffer.filling & ~buffer.closed & (dut.unit == 0), (
                buffer.filling & same & (buffer.positions == dut.position)
                & (buffer.units == dut.unit) & (buffer.units < self.most(mine.step)))))
            told.append((shown.buffer == k) & self._is_told(buffer, shown))
            reason.append((shown.buffer != k) | self._has_reason(buffer))
            with m.If(here):
                m.d.sync += [
                    buffer.filling.eq(1), buffer.destination.eq(mine.destination),
                    buffer.middle.eq(~mine.last), buffer.positions.eq(dut.position + 1),
                    buffer.units.eq(dut.unit + mine.last)]
                with m.If(begins):
                    m.d.sync += buffer.step.eq(mine.step)
            with m.If(here & begins):
                m.d.sync += buffer.age.eq(1)
            with m.Elif(~buffer.age.all()):
                m.d.sync += buffer.age.eq(buffer.age + 1)
            with m.If(ends):
                m.d.sync += [buffer.filling.eq(0), buffer.closed.eq(1)]
            with m.If(frees & (freed == k)):
                m.d.sync += buffer.closed.eq(0)
        bench.always("place", ~dut.ready | bench.any_of(good))
        bench.always("fits", ~dut.ready | (dut.position < self.positions))
        bench.always("what_is_told", ~dut.closed.valid | bench.any_of(told))
        bench.always("for_a_reason", ~out | Cat(reason).all())
        bench.always("idle", ~dut.idle | ~(self.inside | bench.any_of(
            buffer.filling for buffer in self.noted)))

    def most(self, step: Value) -> Value:
        """Return the most units of a packet of ``step``."""
        return Mux(self.limits[step] == 0, 1, self.limits[step])

    def _step(self, of) -> Value:
        """Return the step of a part of the pool."""
        return of.label if self.sized else of.step

    def _is_told(self, buffer, told) -> Value:
        """Return whether an output packet matches the content of ``buffer``."""
        return (buffer.filling & ~buffer.middle & (buffer.units != 0)
                & (told.units == buffer.units) & (told.positions == buffer.positions)
                & (told.destination == buffer.destination)
                & (~self.match | (self._step(told) == buffer.step)))

    def _has_reason(self, buffer) -> Value:
        """Return whether a packet has a reason to close: it is full, it was old enough, or a unit
        of another step arrived."""
        return ((buffer.units == self.most(buffer.step))
                | (buffer.age >= self.timeout + 2) | self.match)

    def soon(self) -> None:
        """State bounds on the time until packets close and items get their places."""
        bench, dut, out, noted = self.bench, self.dut, self.out, self.noted
        # A check of each destination, the queue, and the packets before it.
        late = self.destinations + 2 + self.buffers
        for k, buffer in enumerate(noted):
            due = buffer.filling & ~buffer.middle & (
                (buffer.units == self.most(buffer.step)) | (buffer.age >= self.timeout + 1))
            bench.within(f"closes_{k}", late, due & dut.closed.ready,
                         out & (self.shown.buffer == k))
        free = bench.any_of(~buffer.filling & ~buffer.closed for buffer in noted)
        bench.within("placed", PLACED, self.inside & free & ~dut.closed.valid, dut.ready)

    def invariant(self) -> None:
        """State the locations of items and buffers, to make all statements inductive."""
        inner, layout = self.dut.inner, self.dut.inner["state_layout"]
        self.opened = [inner["opened"][d] for d in range(self.destinations)]
        self.cells = [data.View(layout, cell) for cell in self.parts.states.cells]
        closed, free = self.parts.closed, self.parts.free
        self.told = [(place.held, place.item) for place in (closed.front, *closed.places)]
        self.free = [(place.held, place.item) for place in (free.front, *free.places)]
        for name, fifo in (("closed", closed), ("free", free)):
            self.bench.always(f"{name}_queued", Cat(
                ~after.held | before.held
                for before, after in zip(fifo.places, fifo.places[1:])).all())
        self._item()
        self._buffers()
        self._looks()

    def _item(self) -> None:
        """State the state of the item inside and of its destination's buffer."""
        bench, inner, entering = self.bench, self.dut.inner, self.dut.entering
        item, state, middle, mine = inner["item"], inner["state"], inner["middle"], self.mine
        is_open, inside = inner["is_open"], self.inside
        bench.always("inside", (inner["inside"] == inside) & (inner["outside"] == ~inside)
                     & (~inside | self.started))
        if self.sized:
            bench.always("limits", ~inside | (entering["single"] == (self.most(mine.step) == 1)))
        else:
            bench.always("limits", ~self.started | (
                (entering["single"] == (self.limits[0] <= 1))
                & (entering["but_one"] == self.most(Const(0)) - 1)))
        bench.always("item", ~inside | (
            Cat(item.destination, self._step(item), item.last) == Value.cast(mine)))
        bench.always("destination", mine.destination < self.destinations)
        bench.always("is_open", ~inside | (
            is_open == Array(self.opened)[mine.destination]))
        bench.always("state", ~(inside & is_open) | (
            Value.cast(state) == Array(self.parts.states.cells)[mine.destination]))
        bench.always("fills", ~inside | (
            inner["fills"] == (Mux(is_open, state.units, 0) + 1 >= self.most(mine.step))))
        bench.always("other_step", Mux(
            inside & self.match,
            inner["other_step"] == (is_open & (self._step(state) != self._step(item))),
            self.match | ~inner["other_step"]))
        # In a unit of two items, the first is before the second.
        two = self.twos[mine.step]
        bench.always("second", (~self.second | (two & (self.kept == Cat(
            mine.destination, mine.step)))) & (~inside | (mine.last != self.second)))
        bench.always("middle", middle == (two & Mux(inside, mine.last, self.second)))
        bench.always("middle_of", ~middle | Cat(
            (mine.destination == d) & opened & (~self.match | (self._step(cell) == mine.step))
            for d, (opened, cell) in enumerate(zip(self.opened, self.cells, strict=True))).any())

    def _buffers(self) -> None:
        """State that each buffer has one location, whose state matches the buffer."""
        bench, inner, middle, mine = self.bench, self.dut.inner, self.dut.inner["middle"], self.mine
        swept, sweep = inner["swept"], self.parts.free.sweep
        late_cells = self.parts.late_states.cells
        bench.always("swept", swept | ((sweep < self.buffers) & ~Cat(
            self.inside, self.opened, [held for held, _ in self.told],
            [buffer.closed for buffer in self.noted]).any()))
        bench.always("free", Cat(
            ~held | (number < self.buffers) for held, number in self.free).all())
        for k, buffer in enumerate(self.noted):
            filling = sum([
                *(opened & (cell.buffer == k)
                  for opened, cell in zip(self.opened, self.cells, strict=True)),
                *(held & (place.buffer == k) for held, place in self.told)])
            bench.always(f"filling_{k}", buffer.filling == filling)
            bench.always(f"one_place_{k}", (~swept & (sweep <= k)) + buffer.closed + filling + sum(
                held & (number == k) for held, number in self.free) == 1)
        for d, (opened, cell) in enumerate(zip(self.opened, self.cells, strict=True)):
            bench.always(f"same_{d}", ~opened | (Value.cast(cell) == late_cells[d]))
            bench.always(f"open_{d}", ~opened | bench.any_of(
                (cell.buffer == k) & (buffer.destination == d)
                & (buffer.step == self._step(cell))
                & (buffer.units == cell.units) & (buffer.positions == cell.positions)
                & (buffer.units < self.most(buffer.step)) & (buffer.positions != 0)
                & (buffer.middle == (middle & (mine.destination == d)))
                & (buffer.positions == (buffer.units << self.twos[buffer.step]) + buffer.middle)
                for k, buffer in enumerate(self.noted)))
        for index, (held, place) in enumerate(self.told):
            bench.always(f"told_{index}", ~held | bench.any_of(
                (place.buffer == k) & self._is_told(buffer, place) & self._has_reason(buffer)
                for k, buffer in enumerate(self.noted)))

    def _looks(self) -> None:
        """State which buffer's age is known, and when a timeout is late."""
        bench, inner, timeout = self.bench, self.dut.inner, self.timeout
        late, index, expiring, middle = (
            inner[name] for name in ("late", "late_index", "expiring", "middle"))
        look, age, time = self.dut.looking["look"], self.dut.looking["age"], self.dut.time
        bench.always("late", (~late | Mux(expiring, ~middle, middle)) & (~expiring | late)
                     & (~late | (index < self.destinations)))
        for d, (opened, cell) in enumerate(zip(self.opened, self.cells, strict=True)):
            since = (time - self.parts.ages.cells[d])[:TIME]
            bench.always(f"age_{d}", ~(opened & (look == d)) | (age == since))
            bench.always(f"since_{d}", ~opened | bench.any_of(
                (cell.buffer == k) & (buffer.age.all() | (buffer.age == since)) & (
                    ~(late & (index == d)) | (buffer.age >= timeout + 1))
                for k, buffer in enumerate(self.noted)))

"""Table of exact float32 sums in block RAM or UltraRAM."""

from amaranth.hdl import Cat, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import LANES
from rtl.float.exact import (
    EXACT_SEGMENTS,
    check_lanes,
    check_units,
    exact_sum_layout,
    segment_slice,
)
from rtl.float.exact_lane import (
    CONTROL_LATENCY,
    HELD_LATENCY,
    LANE_CONTROL,
    SUM_LATENCY,
    ExactLane,
)
from rtl.gateable import Gateable
from rtl.memory import Ram
from rtl.shared import Shared

__all__ = ["ExactTable", "exact_operation_layout"]

_READ = HELD_LATENCY - 1
"""Cycles from an operation to the read of segment 0."""


def exact_operation_layout(entries: int, meta_shape: ShapeLike,
                           lanes: int = LANES) -> data.StructLayout:
    """Layout of what is to be done with one entry, see :class:`ExactTable`."""
    return data.StructLayout({
        "entry": range(entries), "data": 32 * lanes, "meta": meta_shape, "first": 1, "take": 1})


class ExactTable(Gateable, wiring.Component):
    """Exact sums of float32 vectors by entry: what gradient reduction adds up in (paper, 4.2).

    One term per cycle, whatever the entries: the same one in every cycle too. The order of the
    terms does not matter, and each lane keeps its own infinities and NaN.

    Nothing is ever swept: the user says which term is the first of an entry, and an entry whose
    sum was taken is free in the next cycle, for a first term.

    Sums are taken while no term is under way: a memory then gives all segments at once, needs no
    queue behind it, and nothing in the lanes. A sum leaves in as many cycles as ``units`` go into
    ``lanes``, its lowest lanes first.

    A read meets a write to its own entry only where the term is taken from the lanes' registers:
    what a memory gives then does not matter.

    Latency and rate: see ``LATENCY`` and ``RATE``. Memory: 67 columns of 72 bits for 16 lanes, of
    512 entries in block RAM or of 4,096 in UltraRAM.

    Parameters
    ----------
    entries: at least 2.
    meta_shape: of what goes with a sum that is taken, for the user.
    style: ``bram`` or ``uram``.
    lanes: binary32 of a beat.
    units: lanes that leave in a cycle; by default all.

    Ports
    -----
    i: input stream of :func:`exact_operation_layout`. ``take``: the sum is given out with
        ``meta``; else ``data`` is added to ``entry``. ``first``: the entry held nothing that
        counts. A term waits until the sum before it has left, a taking operation also until the
        terms before it are written.
    sums: output stream of :func:`~rtl.float.exact.exact_sum_layout` of ``units`` lanes, in the
        order of the taking operations. Who takes the first part of a sum takes the others in the
        cycles after it: so what waits for a sum to leave does not depend on ``ready`` in that
        cycle, but with all lanes in one part.
    idle: Out(1), nothing is under way; what entries hold does not count.

    Raises ``ValueError`` for entries, lanes or units out of range.
    """

    LATENCY = {
        ("taking operation", "sums"): 1,
        ("taking operation behind a term", "sums"): 11,
    }
    RATE = "1 term per cycle, whatever the entries; a sum leaves in lanes / units cycles"

    def __init__(self, entries: int, meta_shape: ShapeLike, *, style: str = "bram",
                 lanes: int = LANES, units: int | None = None):
        if isinstance(entries, bool) or not isinstance(entries, int) or entries < 2:
            raise ValueError(f"entries must be an integer of at least 2, not {entries!r}")
        check_lanes(lanes)
        self._units = lanes if units is None else units
        check_units(self._units, lanes)
        self._entries, self._meta, self._style = entries, meta_shape, style
        self._lanes = lanes
        super().__init__({
            "i": In(stream.Signature(exact_operation_layout(entries, meta_shape, lanes))),
            "sums": Out(stream.Signature(exact_sum_layout(meta_shape, self._units))),
            "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        operation, add, take = self.i.payload, Signal(), Signal()
        # Terms are ``busy`` on their way, or a sum is ``held`` in the memories' output.
        busy, held, final = Signal(), Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(Mux(operation.take, ~busy & (~held | final), ~held)),
            add.eq(self.i.valid & ~operation.take & ~held),
            take.eq(self.i.valid & self.i.ready & operation.take),
            self.idle.eq(~busy & ~held),
        ]

        # entries[n], adds[n]: the operation n cycles after it came.
        depth = SUM_LATENCY + EXACT_SEGMENTS - 1
        entries, adds = [operation.entry], [add]
        for stage in range(1, depth + 1):
            _extend(m, entries, f"entry{stage}")
            _extend(m, adds, f"add{stage}")
        m.d.sync += busy.eq(Cat(adds[:-1]).any())

        control = self._control(m, operation, entries, adds)
        lanes = []
        for number in range(self._lanes):
            lane = Shared(ExactLane(), "exact_lane")
            m.submodules[f"lane{number}"] = lane
            m.d.comb += [
                lane.x.eq(operation.data.word_select(number, 32)), lane.control.eq(control),
            ]
            lanes.append(lane)

        for segment in range(EXACT_SEGMENTS):
            where = segment_slice(segment)
            given, total = (Cat(Value.cast(getattr(lane, port))[where] for lane in lanes)
                            for port in ("held", "sum"))
            ram = Ram(len(given), self._entries, style=self._style)
            m.submodules[f"segment{segment}"] = ram
            m.d.comb += [
                ram.read_en.eq(take | adds[_READ + segment]),
                ram.read_addr.eq(Mux(busy, entries[_READ + segment], operation.entry)),
                given.eq(ram.read_data),
                ram.write_en.eq(adds[SUM_LATENCY + segment]),
                ram.write_addr.eq(entries[SUM_LATENCY + segment]), ram.write_data.eq(total),
            ]
        self._give(m, take, held, final, [lane.held for lane in lanes])
        return m

    def _give(self, m: Module, take: Value, held: Signal, final: Value, lanes: list) -> None:
        """Give out the sum that is ``held`` in the memories' output, part by part.

        A sum that is taken is there a cycle later; with its ``final`` part the next one may be.
        """
        turns, sums = self._lanes // self._units, self.sums.payload
        part = Signal(range(turns))
        m.d.comb += [
            final.eq((part == turns - 1) if turns > 1 else self.sums.ready),
            self.sums.valid.eq(held),
        ]
        with m.If(take):
            m.d.sync += [held.eq(1), sums.meta.eq(self.i.payload.meta)]
        with m.Elif(final):
            m.d.sync += held.eq(0)
        with m.If(held & (self.sums.ready | (part != 0))):
            m.d.sync += part.eq(Mux(final, 0, part + 1))
        with m.Switch(part):
            for turn in range(turns):
                with m.Case(turn):
                    m.d.comb += [sums.lanes[number].eq(lanes[turn * self._units + number])
                                 for number in range(self._units)]

    def _control(self, m: Module, operation, entry: list[Value], add: list[Value]) -> Value:
        """Return what the lanes are told, in time for their ``control``."""
        clear, control = [operation.first], Signal(LANE_CONTROL)
        for stage in range(1, CONTROL_LATENCY):
            _extend(m, clear, f"clear{stage}")
        # A read sees what was written up to the cycle before it, three operations ago.
        again = Signal(2)
        m.d.sync += [
            again.eq(Cat(add[ago] & (entry[ago] == entry[1]) for ago in (2, 3))),
            control.eq(Cat(clear[-1], again)),
        ]
        return Value.cast(control)


def _extend(m: Module, chain: list[Value], name: str) -> None:
    """Append to ``chain`` its last value, one cycle later."""
    later = Signal(len(chain[-1]), name=name)
    m.d.sync += later.eq(chain[-1])
    chain.append(later)

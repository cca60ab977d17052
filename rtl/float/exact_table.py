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
    """Layout of an operation on one entry, see :class:`ExactTable`."""
    return data.StructLayout({
        "entry": range(entries), "data": 32 * lanes, "meta": meta_shape, "first": 1, "take": 1})


class ExactTable(Gateable, wiring.Component):
    """Store exact sums of float32 vectors by entry: the memory of gradient reduction (paper, 4.2).

    The table takes one term per cycle, for any entries, including the same entry in every cycle.
    The order of the terms does not affect the sums. Each lane has its own infinities and NaN.

    The table needs no sweep: the user marks the first term of an entry, and an entry whose sum was
    taken is free for a first term in the next cycle.

    Sums are taken while no term is in flight. A memory then outputs all segments at once, without a
    queue and without use of the lanes. A sum leaves in ``lanes / units`` cycles, its lowest lanes
    first.

    A read coincides with a write to its own entry only if the term is taken from the registers of
    the lanes, so the memory's output is then irrelevant.

    Memory: 67 columns of 72 bits for 16 lanes, of 512 entries in block RAM or of 4,096 in UltraRAM.

    Parameters
    ----------
    entries: number of entries, at least 2.
    meta_shape: shape of the user's data that accompany a taken sum.
    style: ``bram`` or ``uram``.
    lanes: binary32 of a beat.
    units: lanes that leave per cycle, by default all.

    Ports
    -----
    i: stream of :func:`exact_operation_layout`. ``take``: output the sum with ``meta``; otherwise
        add ``data`` to ``entry``. ``first``: ignore the entry's old content. A term waits until the
        previous sum has left; a taking operation also waits until the previous terms are written.
    sums: stream of :func:`~rtl.float.exact.exact_sum_layout` of ``units`` lanes, in the order of
        the taking operations. After the first part of a sum, the other parts must be accepted in
        the following cycles. The wait for a sum to leave therefore does not depend on ``ready`` in
        the same cycle, unless all lanes are one part.
    idle: Out(1), no operation is in flight; stored entries do not clear it.

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
        # Terms in flight (``busy``), or a sum in the output of the memories (``held``).
        busy, held, final = Signal(), Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(Mux(operation.take, ~busy & (~held | final), ~held)),
            add.eq(self.i.valid & ~operation.take & ~held),
            take.eq(self.i.valid & self.i.ready & operation.take),
            self.idle.eq(~busy & ~held),
        ]

        # entries[n], adds[n]: the operation n cycles after its arrival.
        depth = SUM_LATENCY + EXACT_SEGMENTS - 1
        entries, adds = [operation.entry], [add]
        for stage in range(1, depth + 1):
            _extend(m, entries, f"entry{stage}", data=True)
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
        """Output the sum that is ``held`` in the output of the memories, part by part.

        A taken sum is there one cycle later; the next sum may follow its ``final`` part.
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
        """Return the lanes' ``control``, in time."""
        clear, control = [operation.first], Signal(LANE_CONTROL, reset_less=True)
        for stage in range(1, CONTROL_LATENCY):
            _extend(m, clear, f"clear{stage}", data=True)
        # A read sees writes of three or more operations ago.
        again = Signal(2, reset_less=True)
        m.d.sync += [
            again.eq(Cat(add[ago] & (entry[ago] == entry[1]) for ago in (2, 3))),
            control.eq(Cat(clear[-1], again)),
        ]
        return Value.cast(control)


def _extend(m: Module, chain: list[Value], name: str, data: bool = False) -> None:
    """Append to ``chain`` its last value, one cycle later; ``data`` needs no reset."""
    later = Signal(len(chain[-1]), name=name, reset_less=data)
    m.d.sync += later.eq(chain[-1])
    chain.append(later)

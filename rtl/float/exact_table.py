"""Table of exact float32 sums in block RAM or UltraRAM."""

from amaranth.hdl import Cat, Module, ShapeLike, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import LANES
from rtl.float.exact import EXACT_SEGMENTS, check_lanes, exact_sum_layout, segment_slice
from rtl.float.exact_lane import (
    CONTROL_LATENCY,
    LANE_CONTROL,
    SUM_LATENCY,
    ExactLane,
)
from rtl.float.exact_queue import ExactQueue
from rtl.memory import Ram
from rtl.shared import Shared

__all__ = ["ExactTable", "exact_operation_layout"]

_READ = CONTROL_LATENCY - 1
"""Cycles from an operation to the read of segment 0."""


def exact_operation_layout(entries: int, meta_shape: ShapeLike,
                           lanes: int = LANES) -> data.StructLayout:
    """Layout of what is to be done with one entry, see :class:`ExactTable`."""
    return data.StructLayout({
        "entry": range(entries), "data": 32 * lanes, "meta": meta_shape,
        "add": 1, "first": 1, "take": 1})


class ExactTable(wiring.Component):
    """Exact sums of float32 vectors by entry: what gradient reduction adds up in (paper, 4.2).

    One operation per cycle, whatever the entries: the same one in every cycle too. The order of
    the terms does not matter, and each lane keeps its own infinities and NaN.

    Nothing is ever swept: the user says which term is the first of an entry, and an entry whose
    sum was taken is free in the next cycle, for a first term.

    A read meets a write to its own entry only where the term is taken from the lanes' registers:
    what a memory gives then does not matter.

    Latency from a taking operation to ``sums`` 12 cycles. Memory: 67 columns of 72 bits for 16
    lanes, of 512 entries in block RAM or of 4,096 in UltraRAM.

    Parameters
    ----------
    entries: at least 2.
    meta_shape: of what goes with a sum that is taken, for the user.
    style: ``bram`` or ``uram``.
    lanes: binary32 of a beat.

    Ports
    -----
    i: input stream of :func:`exact_operation_layout`. ``add``: ``data`` is added to ``entry``.
        ``first``: the entry held nothing that counts. ``take``: the sum before ``data`` is given
        out with ``meta``; ``data``, if added too, is then the first term of the next sum. Waits
        where 32 sums that were taken are not given out yet.
    sums: output stream of :func:`~rtl.float.exact.exact_sum_layout`, in the order of the taking
        operations.
    idle: Out(1), nothing is under way; what entries hold does not count.

    Raises ``ValueError`` for entries or lanes out of range.
    """

    def __init__(self, entries: int, meta_shape: ShapeLike, *, style: str = "bram",
                 lanes: int = LANES):
        if isinstance(entries, bool) or not isinstance(entries, int) or entries < 2:
            raise ValueError(f"entries must be an integer of at least 2, not {entries!r}")
        check_lanes(lanes)
        self._entries, self._meta, self._style = entries, meta_shape, style
        self._lanes = lanes
        super().__init__({
            "i": In(stream.Signature(exact_operation_layout(entries, meta_shape, lanes))),
            "sums": Out(stream.Signature(exact_sum_layout(meta_shape, lanes))),
            "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.queue = queue = ExactQueue(self._meta, self._lanes)
        wiring.connect(m, queue.o, wiring.flipped(self.sums))
        operation, go = self.i.payload, Signal()
        m.d.comb += [
            self.i.ready.eq(queue.room), go.eq(self.i.valid & self.i.ready),
            queue.reserve.eq(go & operation.take),
        ]

        # entry[n], add[n], ...: the operation n cycles after it came.
        depth = SUM_LATENCY + EXACT_SEGMENTS - 1
        entry, add = [operation.entry], [go & operation.add]
        take, meta = [go & operation.take], [Value.cast(operation.meta)]
        for stage in range(1, depth + 1):
            for chain, name in ((entry, "entry"), (add, "add")):
                _extend(m, chain, f"{name}{stage}")
            if stage <= SUM_LATENCY:
                for chain, name in ((take, "take"), (meta, "meta")):
                    _extend(m, chain, f"{name}{stage}")
        m.d.comb += [queue.write.eq(take[SUM_LATENCY]), queue.sums.meta.eq(meta[SUM_LATENCY])]
        busy = Signal()
        m.d.sync += busy.eq(Cat(add[:-1]).any())
        m.d.comb += self.idle.eq(~busy & queue.idle)

        control = self._control(m, operation, entry, add)
        lanes = []
        for number in range(self._lanes):
            lane = Shared(ExactLane(), "exact_lane")
            m.submodules[f"lane{number}"] = lane
            m.d.comb += [
                lane.x.eq(operation.data.word_select(number, 32)), lane.control.eq(control),
                queue.sums.lanes[number].eq(lane.taken),
            ]
            lanes.append(lane)

        for segment in range(EXACT_SEGMENTS):
            where = segment_slice(segment)
            held, total = (Cat(Value.cast(getattr(lane, port))[where] for lane in lanes)
                           for port in ("held", "sum"))
            ram = Ram(len(held), self._entries, style=self._style)
            m.submodules[f"segment{segment}"] = ram
            m.d.comb += [
                ram.read_addr.eq(entry[_READ + segment]), held.eq(ram.read_data),
                ram.write_en.eq(add[SUM_LATENCY + segment]),
                ram.write_addr.eq(entry[SUM_LATENCY + segment]), ram.write_data.eq(total),
            ]
        return m

    def _control(self, m: Module, operation, entry: list[Value], add: list[Value]) -> Value:
        """Return what the lanes are told, in time for their ``control``."""
        clear, control = [operation.first | operation.take], Signal(LANE_CONTROL)
        for stage in range(1, CONTROL_LATENCY):
            _extend(m, clear, f"clear{stage}")
        # A read sees what was written up to the cycle before it, four operations ago.
        again = Signal(3)
        m.d.sync += [
            again.eq(Cat(add[ago] & (entry[ago] == entry[1]) for ago in (2, 3, 4))),
            control.eq(Cat(clear[-1], again)),
        ]
        return Value.cast(control)


def _extend(m: Module, chain: list[Value], name: str) -> None:
    """Append to ``chain`` its last value, one cycle later."""
    later = Signal(len(chain[-1]), name=name)
    m.d.sync += later.eq(chain[-1])
    chain.append(later)

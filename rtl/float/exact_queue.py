"""Sums that were taken out of a table, whose segments come one after the other."""

from amaranth.hdl import Cat, Module, Shape, ShapeLike, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import LANES
from rtl.float.exact import EXACT_SEGMENTS, exact_sum_layout, segment_slice
from rtl.memory import Ram

__all__ = ["ExactQueue"]

_DEPTH = 32
"""What LUTRAM has anyway; more than the cycles from the reservation to the sum's last segment."""


class ExactQueue(wiring.Component):
    """FIFO of sums whose segment k is written k cycles after segment 0; read whole.

    Latency 2 cycles from the last segment, throughput one entry per cycle. A place is reserved
    before a sum is under way, for a pipeline that cannot wait.

    Ports
    -----
    room: Out(1), a place can be reserved.
    reserve: In(1), a place is taken; only with ``room``.
    write: In(1), segment 0 of a sum is there; the others follow by themselves.
    sums: In(exact_sum_layout), ``meta`` together with segment 0.
    o: output stream of the same.
    idle: Out(1), no place is taken.
    """

    def __init__(self, meta_shape: ShapeLike, lanes: int = LANES):
        self._lanes = lanes
        self._meta_bits = Shape.cast(meta_shape).width
        layout = exact_sum_layout(meta_shape, lanes)
        super().__init__({
            "room": Out(1), "reserve": In(1), "write": In(1), "sums": In(layout),
            "o": Out(stream.Signature(layout)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        taken, ready = Signal(range(_DEPTH + 1)), Signal(range(_DEPTH + 1))
        head, tail = Signal(range(_DEPTH)), Signal(range(_DEPTH))
        valid, pull, popped = Signal(), Signal(), Signal()

        write, where = self.write, tail
        for segment in range(EXACT_SEGMENTS):
            bits = segment_slice(segment)
            pairs = [(Value.cast(self.sums.lanes[lane])[bits],
                      Value.cast(self.o.payload.lanes[lane])[bits]) for lane in range(self._lanes)]
            if segment == 0 and self._meta_bits:
                pairs.append((Value.cast(self.sums.meta), Value.cast(self.o.payload.meta)))
            given, got = (Cat(part) for part in zip(*pairs))
            m.submodules[f"segment{segment}"] = ram = Ram(len(given), _DEPTH, style="lutram")
            m.d.comb += [
                ram.write_en.eq(write), ram.write_addr.eq(where), ram.write_data.eq(given),
                ram.read_en.eq(pull), ram.read_addr.eq(head), got.eq(ram.read_data),
            ]
            if segment < EXACT_SEGMENTS - 1:
                write_later = Signal(name=f"write{segment + 1}")
                where_later = Signal.like(tail, name=f"where{segment + 1}")
                m.d.sync += [write_later.eq(write), where_later.eq(where)]
                write, where = write_later, where_later

        m.d.comb += [
            self.room.eq(taken != _DEPTH), self.idle.eq(taken == 0),
            pull.eq((ready != 0) & (~valid | self.o.ready)),
            popped.eq(valid & self.o.ready), self.o.valid.eq(valid),
        ]
        m.d.sync += [
            taken.eq(taken + self.reserve - popped),
            # The last segment is written in this cycle, and may be read in the next.
            ready.eq(ready + write - pull),
            tail.eq(tail + self.write), head.eq(head + pull),
            valid.eq(pull | (valid & ~self.o.ready)),
        ]
        return m

"""Segment store: a FIFO of segments that become readable once they are committed."""

from amaranth.hdl import Cat, Module, Mux, Shape, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.bags.layouts import Segment
from rtl.memory import Ram

__all__ = ["SegmentStore"]


class SegmentStore(wiring.Component):
    """FIFO of segments. A segment can be read after its ``commit``, and never after a ``revoke``.

    Both concern all segments since the last of them, with the segment that enters in the same
    cycle. They take effect a cycle later, because they arrive late in the cycle.

    A full store waits for its reader. Therefore never write more than ``depth`` segments between
    two commits.

    Parameters: ``depth`` in segments; ``shape`` of a segment with the data beside it.

    Ports
    -----
    i, o: streams of ``shape``. ``i`` also pauses in the cycle after a ``revoke``.
    commit, revoke: never both in a cycle.
    full: the RAM is full; the other reason that ``i`` is not ready.
    level: segments in the RAM, committed or not.
    idle: no output. Segments that are not committed do not count.

    Raises ``ValueError`` for a depth below 2.
    """

    LATENCY = {("commit", "its first segment"): 3}
    RATE = "1 segment per cycle"

    def __init__(self, depth: int, shape: data.StructLayout = Segment):
        if isinstance(depth, bool) or not isinstance(depth, int) or depth < 2:
            raise ValueError(f"depth must be an integer of at least 2, not {depth!r}")
        self.depth, self._shape = depth, shape
        super().__init__({
            "i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)),
            "commit": In(1), "revoke": In(1), "full": Out(1),
            "level": Out(range(depth + 1)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        depth = self.depth
        m.submodules.ram = ram = Ram(Shape.cast(self._shape).width, depth, style="bram")

        def following(pointer):
            return Mux(pointer == depth - 1, 0, pointer + 1)

        head, tail, start = (Signal(range(depth), name=n) for n in ("head", "tail", "start"))
        # Segments in the RAM, and those of them that are committed.
        level, ready_level = (Signal(range(depth + 1), name=n) for n in ("level", "ready_level"))
        # Flags beside the levels.
        some, full, valid = Signal(), self.full, Signal()
        commits, revokes, write, pull = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(~full & ~revokes), write.eq(self.i.valid & self.i.ready),
            pull.eq(some & (~valid | self.o.ready)),
            ram.write_en.eq(write), ram.write_addr.eq(tail), ram.write_data.eq(self.i.payload),
            ram.read_en.eq(pull), ram.read_addr.eq(head),
            self.o.valid.eq(valid), self.o.payload.eq(ram.read_data),
            self.level.eq(level), self.idle.eq(~Cat(some, valid, commits, revokes).any()),
        ]
        base = Mux(revokes, ready_level, level)  # nothing is written after a revoke
        m.d.sync += [
            commits.eq(self.commit), revokes.eq(self.revoke),
            level.eq(Mux(pull, Mux(write, level, base - 1), Mux(write, level + 1, base))),
            ready_level.eq(Mux(commits, level, ready_level) - pull),
            some.eq(Mux(pull, Mux(commits, level, ready_level) != 1,
                        Mux(commits, level != 0, some))),
            full.eq((Mux(revokes, ready_level == depth, full) | ((level == depth - 1) & write))
                    & ~pull),
        ]
        with m.If(revokes):
            m.d.sync += tail.eq(start)
        with m.Elif(write):
            m.d.sync += tail.eq(following(tail))
        with m.If(commits):
            m.d.sync += start.eq(tail)
        with m.If(pull):
            m.d.sync += [head.eq(following(head)), valid.eq(1)]
        with m.Elif(self.o.ready):
            m.d.sync += valid.eq(0)
        return m

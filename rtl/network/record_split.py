"""Record split: outputs the records of a beat one by one."""

from amaranth.hdl import Module, Shape, ShapeLike, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from rtl.config import BEAT_BITS
from rtl.formats import RECORD_BITS, RECORDS_PER_BEAT

__all__ = ["RecordSplit", "records_layout"]


def records_layout(user: ShapeLike) -> data.StructLayout:
    """Layout of a beat of 1 to 8 ``records``, the first one in the lowest bits, and ``user`` data
    unless its width is 0."""
    return data.StructLayout({
        "data": BEAT_BITS, "records": bits_for(RECORDS_PER_BEAT), **_beside(user)})


def _beside(user: ShapeLike) -> dict[str, ShapeLike]:
    return {"user": user} if Shape.cast(user).width else {}


class RecordSplit(wiring.Component):
    """Output the records of each beat, lowest first, from registers that hold the beat.

    The registers separate the output of a large memory from the logic behind it. ``i.ready``
    depends on ``o.ready`` combinationally.

    Parameters: ``user``, shape of data that accompanies the records of a beat.

    Ports
    -----
    i: stream of :func:`records_layout`.
    o: stream of {record, last, user}; ``last`` marks the last record of its beat.
    idle: no beat inside.
    """

    LATENCY = {("beat", "its first record"): 1}
    RATE = "1 record per cycle"

    def __init__(self, user: ShapeLike):
        self._layout = records_layout(user)
        super().__init__({
            "i": In(stream.Signature(self._layout)),
            "o": Out(stream.Signature(data.StructLayout(
                {"record": RECORD_BITS, "last": 1, **_beside(user)}))),
            "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        beat, here = Signal(self._layout, reset_less=True), Signal()
        # Number of the record in its beat, records left, and last record. ``last`` is a register,
        # because it controls the take of the next beat.
        index, left, last = Signal(range(RECORDS_PER_BEAT)), Signal.like(beat.records), Signal()
        m.d.comb += [
            self.i.ready.eq(~here | (self.o.ready & last)),
            self.o.valid.eq(here), self.o.payload.last.eq(last),
            self.o.payload.record.eq(beat.data.word_select(index, RECORD_BITS)),
            self.idle.eq(~here),
        ]
        if "user" in self._layout.members:
            m.d.comb += self.o.payload.user.eq(beat.user)
        with m.If(self.o.ready):
            m.d.sync += [index.eq(index + 1), left.eq(left - 1), last.eq(left == 2)]
        with m.If(self.i.ready):
            m.d.sync += [here.eq(self.i.valid), index.eq(0), left.eq(self.i.payload.records),
                         last.eq(self.i.payload.records == 1)]
        # The enable is not ``ready`` alone: its path back to the memory should have few loads.
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += beat.eq(self.i.payload)
        return m

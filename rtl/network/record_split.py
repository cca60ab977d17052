"""Record split: a beat of records in, its records one by one out."""

from amaranth.hdl import Module, Shape, ShapeLike, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from rtl.config import BEAT_BITS
from rtl.formats import RECORD_BITS, RECORDS_PER_BEAT

__all__ = ["RecordSplit", "records_layout"]


def records_layout(user: ShapeLike) -> data.StructLayout:
    """Layout of a beat of 1 to 8 ``records``, the first in the lowest bits, and ``user`` data, if
    these have any bits."""
    return data.StructLayout({
        "data": BEAT_BITS, "records": bits_for(RECORDS_PER_BEAT), **_beside(user)})


def _beside(user: ShapeLike) -> dict[str, ShapeLike]:
    return {"user": user} if Shape.cast(user).width else {}


class RecordSplit(wiring.Component):
    """Output the records of each beat, lowest first, from registers that hold the beat.

    Behind a large memory they keep its output apart from what follows. Latency and rate: see
    ``LATENCY`` and ``RATE``; ``i.ready`` follows ``o.ready``.

    Parameters: ``user``, shape of what goes with the records of a beat.

    Ports: ``i``, stream of :func:`records_layout`; ``o``, stream of {record, last, user}, ``last``
    of its beat; ``idle``.
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
        # The record in its beat, the records left, and whether this is the last: a register, since
        # the next beat comes with it.
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
        # Not with ``ready`` alone, whose way back to the memory should have few loads.
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += beat.eq(self.i.payload)
        return m

"""Code reader: joins the codes of int8 vectors with their scales and biases."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import LANES
from rtl.memory import Ram
from rtl.stream import Level

__all__ = ["CODE_READER_LATENCY", "CodeReader"]

CODE_READER_LATENCY = 2
"""Cycles from the choice of a beat of :class:`CodeReader` to its codes."""

_CODES = 4
"""Codes in a lane."""
_PAIR = 2
"""Lanes of a scale and a bias."""
_GROUP = 32
"""Values with the same scale and bias, unless the whole vector has them."""


class CodeReader(wiring.Component):
    """Read int8 vectors in beats of 16 codes, each with its scale and bias.

    A vector has the form of :class:`host.dlrm.codecs.Int8`: codes fill whole beats, and pairs of
    scale and bias follow, eight to a beat. If all fit in a beat, the pairs follow the last lane of
    codes. Pairs arrive last, so a vector is read once it is whole.

    Parameters: ``shape``, a :func:`~rtl.interaction.records.slot_beat`; ``beats`` of float32 of the
        longest vector.

    Ports
    -----
    i: stream of ``shape``.
    row: one scale and bias for the whole vector; otherwise, for each 32 values.
    count: values of a vector, at least 1; both may change while idle, some cycles before a vector.
    go: a beat may leave; ``taken``: a beat is chosen, for the outputs below two cycles later.
    valid, slot: a beat of codes, and its other fields: ``data`` is 0, ``beat_last`` ends the
        vector.
    codes, here: codes, and which of them are values of the vector.
    scale, bias: binary32.
    idle: no beat is inside.
    """

    LATENCY = {("last beat of a vector", "its first codes"): 1 + CODE_READER_LATENCY}
    RATE = "1 beat of codes per cycle"
    PLACES = 32
    """Beats inside; three of the longest vectors."""

    def __init__(self, shape: data.StructLayout, beats: int):
        self._shape, self._beats = shape, beats
        super().__init__({
            "i": In(stream.Signature(shape)), "row": In(1), "count": In(range(LANES * beats + 1)),
            "go": In(1), "taken": Out(1), "valid": Out(1), "slot": Out(shape),
            "codes": Out(8 * LANES), "here": Out(LANES), "scale": Out(32),
            "bias": Out(32), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        size = self._sizes(m)
        m.submodules.store = store = Ram(self._shape.size, self.PLACES, style="lutram")
        m.submodules.pairs = pairs = Ram(self._shape.size, self.PLACES, style="lutram")
        m.submodules.whole = whole = Level(self.PLACES)
        used, room = Signal(range(self.PLACES + 1)), Signal()
        at, accept, release = Signal(range(self.PLACES)), Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(room), accept.eq(self.i.valid & room),
            whole.up.eq(accept & self.i.payload.beat_last), whole.down.eq(release),
            self.taken.eq(whole.some & self.go), self.idle.eq(~used.any()),
        ]
        # ``room`` is late by the beat of a cycle.
        m.d.sync += [used.eq(used + accept - Mux(release, size.beats, 0)),
                     room.eq(used <= self.PLACES - 2)]
        with m.If(accept):
            m.d.sync += at.eq(at + 1)
        for ram in (store, pairs):
            m.d.comb += [ram.write_en.eq(accept), ram.write_addr.eq(at),
                         ram.write_data.eq(self.i.payload)]

        # The beat of codes that is chosen next: its quarter of a beat, and the lane of its pair.
        start, number = Signal(range(self.PLACES)), Signal(range(max(2, self._beats)))
        code_at, pair_at = Signal(range(self.PLACES)), Signal(range(self.PLACES))
        quarter, second, lane = Signal(2), Signal(), Signal(range(LANES))
        last = Signal()
        m.d.comb += [last.eq(number == size.last), release.eq(self.taken & last)]
        # A beat of pairs ends after its eighth.
        following = (lane + _PAIR)[:len(lane)]
        with m.If(~whole.some):
            m.d.sync += [lane.eq(size.lane), code_at.eq(start), pair_at.eq(start + size.pairs)]
        with m.If(self.taken):
            m.d.sync += [number.eq(number + 1), quarter.eq(quarter + 1), second.eq(~second),
                         code_at.eq(code_at + (quarter == 3))]
            with m.If(second & ~self.row):
                m.d.sync += [lane.eq(following), pair_at.eq(pair_at + (following == 0))]
            with m.If(last):
                m.d.sync += [
                    number.eq(0), quarter.eq(0), second.eq(0), lane.eq(size.lane),
                    start.eq(start + size.beats), code_at.eq(start + size.beats),
                    pair_at.eq(start + size.beats + size.pairs)]
        m.d.comb += [store.read_addr.eq(code_at), pairs.read_addr.eq(pair_at)]

        # 1: the memories answer.
        read = Signal(data.StructLayout(
            {"valid": 1, "quarter": 2, "lane": range(LANES), "last": 1}))
        m.d.sync += [read.valid.eq(self.taken), read.quarter.eq(quarter), read.lane.eq(lane),
                     read.last.eq(last)]
        # 2: select.
        beat = data.View(self._shape, store.read_data)
        pair = data.View(self._shape, pairs.read_data)
        slot = Signal(self._shape, reset_less=True)
        m.d.sync += [
            self.valid.eq(read.valid), slot.eq(beat), slot.beat_last.eq(read.last),
            slot.lost.eq(beat.lost | pair.lost),
            self.codes.eq(beat.data.word_select(read.quarter, 8 * LANES)),
            Cat(self.scale, self.bias).eq(pair.data.bit_select(read.lane << 5, 32 * _PAIR)),
            self.here.eq(Mux(read.last, size.here, -1)),
        ]
        m.d.comb += [self.slot.eq(slot), self.slot.data.eq(0)]
        return m

    def _sizes(self, m: Module):
        """Return what follows from ``count`` and ``row``, in registers.

        beats: of a vector; last: its last beat of float32. pairs: its first beat with pairs, and
        ``lane``, the lane of the first pair. here: values of its last beat.
        """
        beats = self._beats
        codes, groups = Signal(range(LANES * beats // _CODES + 1)), Signal(
            range(LANES * beats // _GROUP + 2))
        fits = Signal()
        size = Signal(data.StructLayout({
            "beats": range(self.PLACES), "last": range(max(2, beats)), "pairs": range(self.PLACES),
            "lane": range(LANES), "here": LANES}))
        m.d.sync += [
            # Each stage settles long before the first vector.
            codes.eq((self.count + (_CODES - 1)) >> 2),
            groups.eq(Mux(self.row, 1, (self.count + (_GROUP - 1)) >> 5)),
            fits.eq(codes + (groups << 1) <= LANES),
            size.last.eq((self.count - 1) >> 4),
            size.here.eq(Cat((self.count - 1)[:4] >= k for k in range(LANES))),
            size.lane.eq(Mux(fits, codes, 0)),
            size.pairs.eq(Mux(fits, 0, (codes + (LANES - 1)) >> 4)),
            size.beats.eq(Mux(fits, 1, size.pairs + ((groups + 7) >> 3))),
        ]
        return size

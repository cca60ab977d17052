"""Slice loader: recodes the vectors of a slice and stores them for the dot units."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.config import LANES, NicConfig
from rtl.float import RECODED_SLICE, RECODER_LATENCY, Recoder
from rtl.interaction.pairs import pair_count
from rtl.interaction.transpose import SliceBeat
from rtl.shared import Shared
from rtl.stream import StreamFIFO

__all__ = ["Slice", "SliceLoader", "ring_depth"]


def ring_depth(config: NicConfig) -> int:
    """Return the places of the ring of vectors.

    The ring has at least two slices: one is loaded while another is multiplied. The places added by
    the rounding to a power of two take the beginning of a third slice.
    """
    return 1 << ceil_log2(2 * config.interaction_vectors)


def Slice(config: NicConfig) -> data.StructLayout:
    """Layout of the description of a loaded slice: its numbers of vectors and pairs; ``first`` and
    ``final`` slice of its sample."""
    most = config.interaction_vectors
    return data.StructLayout({
        "vectors": range(most + 1), "pairs": range(pair_count(most, itself=True) + 1), "first": 1,
        "final": 1})


class SliceLoader(wiring.Component):
    """Recode each lane once, before it enters the ring of vectors that the dot units read.

    The places of a slice are consecutive, modulo :func:`ring_depth`. They become free when the
    whole slice is released, in the order of arrival.

    Ports
    -----
    i: stream of :data:`~rtl.interaction.transpose.SliceBeat`.
    itself: pair vectors with themselves too; may change while idle.
    write_en, write_addr, write_data: write into the ring; ``write_data`` follows one cycle later,
        so each copy of the ring may have registers for its address. It is a
        :data:`~rtl.float.RECODED_SLICE`.
    slices: stream of :func:`Slice`, loaded and in order.
    released: number of vectors of a finished slice, for one cycle.
    idle: inactive until an input changes. An unfinished slice that waits for its next vector does
        not clear it.
    """

    LATENCY = {("last vector of a slice", "its announcement"): 4}
    RATE = "1 vector per cycle"

    def __init__(self, config: NicConfig):
        self._depth, self._slice = ring_depth(config), Slice(config)
        super().__init__({
            "i": In(stream.Signature(SliceBeat)), "itself": In(1), "write_en": Out(1),
            "write_addr": Out(range(self._depth)), "write_data": Out(RECODED_SLICE.size),
            "slices": Out(stream.Signature(self._slice)),
            "released": In(self._slice["vectors"].shape), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        # A slice has at least one vector, so there is always room to announce it.
        m.submodules.fifo = fifo = StreamFIFO(self._slice, self._depth)
        wiring.connect(m, fifo.o, wiring.flipped(self.slices))

        taken, full, come = Signal(range(self._depth + 1)), Signal(), Signal()
        item = self.i.payload
        m.d.comb += [
            self.i.ready.eq(~full),
            come.eq(self.i.valid & self.i.ready & ~item.void),
        ]
        # ``come`` is late.
        level = Signal.like(taken)
        m.d.comb += level.eq(taken - self.released)
        m.d.sync += [
            taken.eq(level + come),
            full.eq(Mux(come, level == self._depth - 1, level == self._depth)),
        ]

        recoded = []
        for lane in range(LANES):
            m.submodules[f"lane{lane}"] = unit = Shared(Recoder(), "recoder")
            m.d.comb += unit.i.eq(item.data.word_select(lane, 32))
            recoded.append(unit.o)
        flags = data.StructLayout({"come": 1, "last": 1, "first": 1, "final": 1})
        now = Signal(flags)
        m.d.comb += [
            now.come.eq(come), now.last.eq(self.i.valid & self.i.ready & item.last),
            now.first.eq(item.first), now.final.eq(item.final),
        ]
        stages = [now, *(Signal(flags, name=f"stage{k}") for k in range(RECODER_LATENCY))]
        m.d.sync += [after.eq(before) for before, after in pairwise(stages)]

        # Each vector adds its row of pairs.
        done, place = stages[-1], Signal(range(self._depth))
        vectors, pairs = Signal(self._slice["vectors"].shape), Signal(self._slice["pairs"].shape)
        whole = Signal(self._slice)
        m.d.comb += [
            whole.vectors.eq(vectors + done.come), whole.first.eq(done.first),
            whole.pairs.eq(pairs), whole.final.eq(done.final),
            self.write_en.eq(stages[-2].come), self.write_addr.eq(place),
            self.write_data.eq(Cat(*recoded)),
            fifo.i.valid.eq(done.last), fifo.i.payload.eq(whole),
        ]
        with m.If(done.come):
            m.d.comb += whole.pairs.eq(pairs + vectors + self.itself)
        with m.If(self.write_en):
            m.d.sync += place.eq(place + 1)
        m.d.sync += [vectors.eq(whole.vectors), pairs.eq(whole.pairs)]
        with m.If(done.last):
            m.d.sync += [vectors.eq(0), pairs.eq(0)]

        moving = Cat(*(Cat(s.come, s.last) for s in stages)).any()
        m.d.comb += self.idle.eq(~moving & fifo.idle)
        return m

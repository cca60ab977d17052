"""Lookup receiver: buffers lookups from requesters and reads them record by record."""

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from rtl.config import NicConfig
from rtl.formats import RECORD_BITS, LookupRecord, RecordBeat
from rtl.memory import Ram, sweep
from rtl.monitor.counters import CounterLayout, count
from rtl.network.layouts import FreedBeats, LookupItem
from rtl.network.sums import carry_saved
from rtl.stream import SkidBuffer, StreamFIFO

__all__ = ["LOOKUP_RECEIVER_COUNTERS", "LookupReceiver"]

LOOKUP_RECEIVER_COUNTERS = CounterLayout("beats", "records", "over_credit")


class LookupReceiver(wiring.Component):
    """Store lookups that requesters send against credits; output them one by one.

    The FIFO keeps the order of beats. A beat is dropped and counted if its requester already has
    ``share`` beats in the FIFO, or if the FIFO is full. Both mean that the requester has exceeded
    its window.

    Parameters: ``config``; ``lookup_beats`` is the depth of the FIFO, ``nodes`` the number of
    requesters.

    Ports
    -----
    i: stream of :data:`rtl.formats.RecordBeat`. Always ready after the sweep of the counters,
        ``nodes`` cycles after reset.
    o: stream of :data:`rtl.network.layouts.LookupItem`.
    kept: event :data:`rtl.network.layouts.FreedBeats`: the number of records accepted from
        ``node``.
    share: beats that one requester may have in the FIFO; a change applies from the next cycle on.
    counters: ``beats`` and ``records`` taken, beats ``over_credit``.
    idle: inactive until an input changes.
    """

    LATENCY = {("beat of records", "first request"): 5}
    RATE = "1 record per cycle"

    def __init__(self, config: NicConfig):
        self._set(config.nodes, config.lookup_beats, RecordBeat, LookupItem)

    def _set(self, nodes: int, depth: int, entry: data.StructLayout, item: data.StructLayout):
        """Set the number of requesters, the depth and entries of the FIFO, and the output."""
        self._nodes, self._depth, self._entry, self._item = nodes, depth, entry, item
        super().__init__({
            "i": In(stream.Signature(RecordBeat)), "o": Out(stream.Signature(item)),
            "kept": Out(FreedBeats), "share": In(16),
            "counters": Out(LOOKUP_RECEIVER_COUNTERS), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.fifo = fifo = StreamFIFO(
            self._entry, self._depth, style="uram" if self._depth >= 2048 else None)
        m.submodules.output = output = SkidBuffer(self._item)
        wiring.connect(m, output.o, wiring.flipped(self.o))

        # Beats in and out per source. Only the difference matters, so the counters cover the FIFO,
        # its output register and events counted a cycle late. Both ends read the memories, and both
        # read "out", hence three memories.
        bits = bits_for(self._depth + 4) + 1
        beats_in, beats_out, out_copy = (Ram(bits, self._nodes, latency=0) for _ in range(3))
        m.submodules.beats_in, m.submodules.beats_out = beats_in, beats_out
        m.submodules.beats_out_copy = out_copy
        address, swept = sweep(m, self._nodes)
        beat, come = Signal(RecordBeat, reset_less=True), Signal()
        keep = Signal()
        # The share of the requester is checked on arrival. A beat of the same requester in the
        # previous cycle is included.
        source, within, more = self.i.payload.source, Signal(), Signal()
        came, most = Signal(bits, reset_less=True), 1 << bits - 1
        limit, but_one = Signal(bits), Signal(bits)
        share = Mux(self.share < most, self.share, most)
        m.d.sync += [limit.eq(share), but_one.eq(share - 1)]
        m.d.comb += more.eq(keep & (source == beat.source))
        with m.If(self.i.valid & swept):
            m.d.sync += [
                beat.eq(self.i.payload),
                came.eq(Mux(more, came + 1, beats_in.read_data)),
                # Two carry chains in parallel, because the select signal is as late as they are.
                within.eq(
                    (more & _fewer(beats_in.read_data, out_copy.read_data, but_one))
                    | (~more & _fewer(beats_in.read_data, out_copy.read_data, limit))),
            ]
        m.d.sync += come.eq(self.i.valid & swept)
        current, left = Signal(RecordBeat, reset_less=True), Signal(4)
        gone, went = Signal(), Signal()  # a beat leaves the FIFO; it is counted one cycle later
        m.d.sync += went.eq(gone)
        m.d.comb += [
            self.i.ready.eq(swept),
            keep.eq(come & within & fifo.i.ready), self.kept.valid.eq(keep),
            self.kept.node.eq(beat.source), self.kept.beats.eq(beat.records),
            fifo.i.valid.eq(come & within), self._enter(m, fifo.i.payload, beat, come, keep),
            gone.eq(fifo.o.valid & fifo.o.ready),
            beats_in.read_addr.eq(source), out_copy.read_addr.eq(source),
            beats_out.read_addr.eq(current.source),
            beats_in.write_en.eq(keep | ~swept),
            beats_in.write_addr.eq(Mux(swept, beat.source, address)),
            beats_in.write_data.eq(Mux(swept, came + 1, 0)),
        ]
        for ram in (beats_out, out_copy):
            m.d.comb += [
                ram.write_en.eq(went | ~swept),
                ram.write_addr.eq(Mux(swept, current.source, address)),
                ram.write_data.eq(Mux(swept, beats_out.read_data + 1, 0)),
            ]
        m.d.comb += [ram.read_en.eq(1) for ram in (beats_in, beats_out, out_copy)]

        self._split(m, fifo, output, current, left, gone, swept & ~come)
        count(m, self.counters, beats=keep, records=Mux(keep, beat.records, C(0)),
              over_credit=come & ~keep)
        return m

    def _enter(self, m: Module, entry: data.View, beat: data.View, come: Value, keep: Value):
        """Return the assignment of the FIFO's ``entry`` for a ``beat`` that has come."""
        del m, come, keep
        return entry.eq(beat)

    def _split(self, m: Module, fifo: StreamFIFO, output: SkidBuffer, current: data.View,
               left: Value, gone: Value, quiet: Value) -> None:
        """Output the beats of ``fifo``, record by record. ``current`` is the beat that has left the
        FIFO. ``quiet``: no beat arrives."""
        # A beat is shifted out from the low end; the next beat follows without a gap.
        busy, taken, final = Signal(), Signal(), Signal()
        record = data.View(LookupRecord, current.data[:RECORD_BITS])
        request = output.i.payload.request
        m.d.comb += [
            output.i.valid.eq(busy), taken.eq(busy & output.i.ready),
            request.key.row.eq(record.row), request.key.table.eq(record.table),
            request.landing.eq(record.landing), request.node.eq(current.source),
            request.step.eq(current.step), output.i.payload.beat_last.eq(final),
            fifo.o.ready.eq(~busy | (output.i.ready & final)),
            self.idle.eq(quiet & fifo.idle & ~busy & output.idle),
        ]
        # Two registers beside the number of records left: more than zero, and exactly one.
        with m.If(gone):
            m.d.sync += [
                current.eq(fifo.o.payload), left.eq(fifo.o.payload.records),
                busy.eq(fifo.o.payload.records != 0), final.eq(fifo.o.payload.records == 1)]
        with m.Elif(taken):
            m.d.sync += [current.data.eq(current.data >> RECORD_BITS), left.eq(left - 1),
                         busy.eq(~final), final.eq(left == 2)]


def _fewer(came: Value, went: Value, limit: Value):
    """Return whether ``came - went < limit`` modulo 2^n. Both operands of the comparison are at
    most 2^(n - 1), and one of them is less."""
    ones, twos = carry_saved(came, ~went, ~limit)
    # Each of the two complements needs an additional 1: one is the lowest bit of the twos, the
    # other a carry from below.
    total = Cat(C(1, 1), ones) + Cat(C(3, 2), twos)
    return total[len(came)]

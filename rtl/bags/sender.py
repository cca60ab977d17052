"""Bag sender: joins each bag that may leave with its words, and gives it the tag of its vector."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.bags.layouts import AskedBag, BagStart, OutgoingSegment, OwnedSegment, Segment
from rtl.formats import LANDING_BITS, RECORD_BITS, RECORDS_PER_BEAT, BagHead, GradientHead
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import SkidBuffer

__all__ = ["BagSender"]

_Headed = data.StructLayout({"segment": Segment, "wide": 1, "weighted": 1})
"""A segment, and two bits of its head, if it has one."""

_Sent = data.StructLayout({"outgoing": OutgoingSegment, "own": 1})


class BagSender(wiring.Component):
    """Send the bags whose places are reserved, each with the segments of its words.

    Starts and bags have the same order. A bag of another owner takes a free id of
    :class:`rtl.bags.landing.BagLanding`; its head gets the tag of the id, which the owner echoes. A
    bag of this node's own rows needs no id; its head gets its place in the hold buffer.

    The vector of a bag arrives after the bag has left, so at least two cycles after ``asked``, as
    :class:`rtl.cache.answer_check.AnswerCheck` requires.

    Parameters: ``gradients``: bags may have gradients, but no bag of the host's queries has one;
    the bit in its head is cleared.

    Ports
    -----
    starts: stream of :data:`rtl.bags.layouts.BagStart`.
    segments: stream of :data:`rtl.bags.layouts.Segment`, whole bags.
    id: stream of free ids, each as the tag of its next vector.
    asked: event :data:`rtl.bags.layouts.AskedBag`, in the cycle in which its ``id`` is taken.
    o: stream of :data:`rtl.bags.layouts.OutgoingSegment`, bags of other owners.
    own: stream of :data:`rtl.bags.layouts.OwnedSegment`, bags of this node's own rows.
    counters: ``bags`` of other owners and ``own`` bags that have started; ``stall_ids``, cycles in
        which a bag waits for an id.
    idle: no bag inside.
    """

    LATENCY = {("start and segment", "the segment, sent"): 2}
    RATE = "1 segment per cycle"

    def __init__(self, *, gradients: bool = False):
        self._gradients = gradients
        super().__init__({
            "starts": In(stream.Signature(BagStart)), "segments": In(stream.Signature(Segment)),
            "id": In(stream.Signature(LANDING_BITS)), "asked": Out(AskedBag),
            "o": Out(stream.Signature(OutgoingSegment)),
            "own": Out(stream.Signature(OwnedSegment)),
            "counters": Out(CounterLayout("bags", "own", "stall_ids")), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.buffer = buffer = SkidBuffer(_Headed)
        m.submodules.output = output = SkidBuffer(_Sent)
        # The bag whose segments pass, with the landing of its head.
        inside, bag = Signal(), Signal(BagStart, reset_less=True)
        start, room, begins, ends = self.starts.payload, Signal(), Signal(), Signal()
        coming, segment = self.segments.payload, buffer.o.payload.segment
        head = data.View(BagHead, coming.words.word_select(coming.first, RECORD_BITS))
        m.d.comb += [
            buffer.i.valid.eq(self.segments.valid), self.segments.ready.eq(buffer.i.ready),
            buffer.i.payload.segment.eq(coming), buffer.i.payload.wide.eq(head.wide),
            buffer.i.payload.weighted.eq(head.weighted),
            buffer.o.ready.eq(inside & output.i.ready), output.i.valid.eq(inside & buffer.o.valid),
            ends.eq(output.i.valid & output.i.ready & segment.tail),
            room.eq(~inside | ends),
            self.starts.ready.eq(room & (start.own | self.id.valid)),
            begins.eq(self.starts.valid & self.starts.ready),
            self.id.ready.eq(room & self.starts.valid & ~start.own),
            self.asked.valid.eq(begins & ~start.own),
            self.asked.node.eq(start.destination), self.asked.place.eq(start.landing),
            self.asked.final_beat.eq(start.final_beat),
        ]
        with m.If(room):
            m.d.sync += [inside.eq(begins), bag.eq(start)]
            with m.If(~start.own):
                m.d.sync += bag.landing.eq(self.id.payload)

        self._give(m, buffer.o.payload, bag, output)
        sent = output.o.payload
        for port, own in ((self.o, 0), (self.own, 1)):
            m.d.comb += [port.valid.eq(output.o.valid & (sent.own == own)),
                         port.payload.segment.eq(sent.outgoing.segment),
                         port.payload.step.eq(sent.outgoing.step),
                         port.payload.final_beat.eq(sent.outgoing.final_beat)]
        m.d.comb += [
            output.o.ready.eq(Mux(sent.own, self.own.ready, self.o.ready)),
            self.o.payload.destination.eq(sent.outgoing.destination),
            self.o.payload.words.eq(sent.outgoing.words),
            self.own.payload.node.eq(sent.outgoing.destination),
            self.idle.eq(~inside & buffer.idle & output.idle),
        ]
        count(m, self.counters, bags=self.asked.valid, own=begins & start.own,
              stall_ids=room & self.starts.valid & ~start.own & ~self.id.valid)
        return m

    def _give(self, m: Module, headed: data.View, bag: data.View, output: SkidBuffer) -> None:
        """Output a segment of ``bag``, with the landing in its head."""
        segment = headed.segment
        item, words = output.i.payload.outgoing, Signal(OutgoingSegment["words"].shape)
        size = Signal.like(words, reset_less=True)
        # At its head, a segment has the keys of the whole bag.
        pairs = segment.keys[1:] + segment.keys[0]
        m.d.comb += [
            words.eq(Mux(segment.head, 1 + Mux(headed.wide, segment.keys, pairs)
                         + Mux(headed.weighted, pairs, 0), size)),
            item.segment.eq(segment), item.words.eq(words), item.step.eq(bag.step),
            item.destination.eq(bag.destination), item.final_beat.eq(bag.final_beat),
            output.i.payload.own.eq(bag.own),
        ]
        for k in range(RECORDS_PER_BEAT):
            with m.If(segment.head & (segment.first == k)):
                m.d.comb += data.View(BagHead, item.segment.words.word_select(
                    k, RECORD_BITS)).landing.eq(bag.landing)
                if self._gradients:
                    word = item.segment.words.word_select(k, RECORD_BITS)
                    m.d.comb += data.View(GradientHead, word).gradient.eq(0)
        with m.If(output.i.valid & segment.head):
            m.d.sync += size.eq(words)

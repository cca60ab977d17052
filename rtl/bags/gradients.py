"""Bags with gradients: from the host towards their owners, and at the owner to its GPU."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.bags.check import BagCheck
from rtl.bags.layouts import (
    GRADIENT_WORDS,
    ArrivedBag,
    BagBeat,
    OutgoingSegment,
    OwnedSegment,
    gradient_bag_words,
)
from rtl.config import NicConfig
from rtl.formats import (
    CREDIT_BITS,
    NODE_BITS,
    RECORD_BITS,
    RECORDS_PER_BEAT,
    STEP_BITS,
    GradientHead,
    RecordBeat,
    Refused,
)
from rtl.keys.owner_split import DESCRIPTOR_WRITES
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import SkidBuffer, StreamFIFO

__all__ = ["BagGradients", "GradientLists"]

_FAULTS = 8
"""Messages about dropped bags that may wait; further dropped bags are only counted."""


class BagGradients(wiring.Component):
    """Buffer the bags of gradients of the host, check them, and send them towards their owners.

    The host sends beats against the credit of its gradients. A beat for which the buffer has no
    room was sent without credit; it is dropped, and the bags that it cuts are dropped too. Bags for
    failed owners are dropped.

    Parameters: ``config``, with training; ``gradient_beats`` is the depth of the buffer.

    Ports
    -----
    i: stream of :data:`rtl.formats.RecordBeat`, words of bags; always ready.
    o: stream of :data:`~rtl.bags.layouts.OutgoingSegment`, whole bags.
    sent: stream of :data:`~rtl.bags.layouts.ArrivedBag`: a bag for the owner ``source`` will leave.
    refused: stream of :data:`rtl.formats.Refused`, a message for each bag that the check dropped.
    consumed: beats that left the buffer or were dropped, modulo 2^16.
    gradient_step: the step whose gradients pass.
    gradient_words: words of a gradient.
    lost: bit mask of failed nodes.
    node, nodes, vector_beats, write_en, write_table, write_word, write_data, write_ready: see
        :class:`~rtl.bags.check.BagCheck`.
    counters: those of the check, and beats ``over_credit``.
    idle: no bag inside.
    """

    LATENCY = {("beat with the tail of a bag", "the bag's first segment"):
               BagCheck.LATENCY["beat with the tail of a bag", "the bag's first segment"] + 4}
    RATE = BagCheck.RATE

    def __init__(self, config: NicConfig):
        self._depth, self._nodes = config.gradient_beats, config.nodes
        self._check = BagCheck(config, outward=True)
        super().__init__({
            "i": In(stream.Signature(RecordBeat)), "o": Out(stream.Signature(OutgoingSegment)),
            "sent": Out(stream.Signature(ArrivedBag)), "refused": Out(stream.Signature(Refused)),
            "consumed": Out(CREDIT_BITS), "gradient_step": In(STEP_BITS),
            "gradient_words": In(GRADIENT_WORDS), "lost": In(config.nodes),
            "node": In(NODE_BITS), "nodes": In(NODE_BITS),
            "vector_beats": self._check.signature.members["vector_beats"], **DESCRIPTOR_WRITES,
            "write_ready": Out(1),
            "counters": Out(CounterLayout(
                *self._check.counters.shape().members, "over_credit")),
            "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.fifo = fifo = StreamFIFO(BagBeat, self._depth)
        m.submodules.check = check = self._check
        m.submodules.faults = faults = StreamFIFO(Refused, _FAULTS, style="lutram")
        wiring.connect(m, fifo.o, check.i)
        wiring.connect(m, check.arrived, wiring.flipped(self.sent))
        wiring.connect(m, faults.o, wiring.flipped(self.refused))
        fresh, beat, dropped = Signal(init=1), self.i.payload, Signal()
        m.d.comb += [
            self.i.ready.eq(1), fifo.i.valid.eq(self.i.valid), fifo.i.payload.fresh.eq(fresh),
            *(fifo.i.payload[name].eq(beat[name]) for name in RecordBeat.members),
            dropped.eq(self.i.valid & ~fifo.i.ready),
            faults.i.valid.eq(check.fault.valid), faults.i.payload.step.eq(check.fault.step),
            faults.i.payload.status.eq(check.fault.status),
            check.step.eq(self.gradient_step), check.gradient_words.eq(self.gradient_words),
            *(getattr(check, name).eq(getattr(self, name))
              for name in ("node", "nodes", "vector_beats", *DESCRIPTOR_WRITES)),
            self.write_ready.eq(check.write_ready),
        ]
        with m.If(self.i.valid):
            m.d.sync += fresh.eq(dropped | beat.last)
        gone = Signal(2)
        m.d.sync += [gone.eq(check.freed.valid + dropped), self.consumed.eq(self.consumed + gone)]
        leaving = self._leave(m, check)
        m.d.comb += self.idle.eq(fifo.idle & check.idle & faults.idle & ~check.fault.valid
                                 & ~gone.any() & ~leaving)
        own = Signal(CounterLayout("over_credit"))
        count(m, own, over_credit=dropped)
        m.d.comb += self.counters.over_credit.eq(own.over_credit)
        m.d.comb += [self.counters[name].eq(check.counters[name])
                     for name in check.counters.shape().members]
        return m

    def _leave(self, m: Module, check: BagCheck) -> Signal:
        """Send the bags that passed, or drop them for a failed owner; return whether one is inside.
        """
        m.submodules.output = output = SkidBuffer(OutgoingSegment)
        source, head = _source(m, check.o)
        wiring.connect(m, output.o, wiring.flipped(self.o))
        item, drains, gone = source.o.payload.item, Signal(), Signal()
        size = _sized(m, item.segment, head, output.i.payload, self.gradient_words,
                      output.i.valid & output.i.ready)
        m.d.comb += [
            gone.eq(Mux(item.segment.head, self.lost.bit_select(item.node, 1), drains)),
            output.i.valid.eq(source.o.valid & ~gone), source.o.ready.eq(output.i.ready | gone),
            output.i.payload.destination.eq(item.node), output.i.payload.step.eq(item.step),
            output.i.payload.words.eq(size),
        ]
        with m.If(source.o.valid & source.o.ready):
            m.d.sync += drains.eq(gone)
        return ~(source.idle & output.idle)


class GradientLists(wiring.Component):
    """Split the bags of other nodes: bags of gradients to the lists for the GPU, others onwards.

    The head of a bag of gradients gets the number of its node.

    Ports
    -----
    i: stream of :data:`~rtl.bags.layouts.OwnedSegment`, whole bags.
    bags: stream of :data:`~rtl.bags.layouts.OwnedSegment`, bags without gradients.
    o: stream of :data:`~rtl.bags.layouts.OutgoingSegment` to destination 0, bags of gradients.
    gradient_words: words of a gradient.
    counters: ``gradients``, bags of gradients.
    idle: no bag inside.
    """

    LATENCY = {("segment", "the same segment"): 2}
    RATE = "1 segment per cycle"

    def __init__(self):
        super().__init__({
            "i": In(stream.Signature(OwnedSegment)), "bags": Out(stream.Signature(OwnedSegment)),
            "o": Out(stream.Signature(OutgoingSegment)), "gradient_words": In(GRADIENT_WORDS),
            "counters": Out(CounterLayout("gradients")), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        source, head = _source(m, self.i)
        m.submodules.output = output = SkidBuffer(OutgoingSegment)
        m.submodules.onwards = onwards = SkidBuffer(OwnedSegment)
        wiring.connect(m, output.o, wiring.flipped(self.o))
        wiring.connect(m, onwards.o, wiring.flipped(self.bags))
        item, out = source.o.payload.item, output.i.payload
        segment, mine, before = item.segment, Signal(), Signal()
        size = _sized(m, segment, head, out, self.gradient_words, output.i.valid & output.i.ready)
        m.d.comb += [
            mine.eq(Mux(segment.head, head.gradient, before)),
            output.i.valid.eq(source.o.valid & mine), onwards.i.valid.eq(source.o.valid & ~mine),
            source.o.ready.eq(Mux(mine, output.i.ready, onwards.i.ready)),
            onwards.i.payload.eq(item), out.step.eq(item.step), out.words.eq(size),
        ]
        for k in range(RECORDS_PER_BEAT):
            with m.If(segment.head & (segment.first == k)):
                m.d.comb += data.View(GradientHead, out.segment.words.word_select(
                    k, RECORD_BITS)).source.eq(item.node)
        with m.If(source.o.valid & source.o.ready):
            m.d.sync += before.eq(mine)
        m.d.comb += self.idle.eq(source.idle & output.idle & onwards.idle)
        count(m, self.counters, gradients=output.i.valid & output.i.ready & segment.head)
        return m


_Headed = data.StructLayout({
    "item": OwnedSegment, "keys": GradientHead["keys"].width, "wide": 1, "gradient": 1})
"""A segment, and fields of its head, which are selected before they are stored."""


def _source(m: Module, segments) -> tuple[SkidBuffer, data.View]:
    """Return a buffer of ``segments``, and the fields of the head of its segment at the output."""
    m.submodules.source = source = SkidBuffer(_Headed)
    segment = segments.payload.segment
    head = data.View(GradientHead, segment.words.word_select(segment.first, RECORD_BITS))
    m.d.comb += [
        source.i.valid.eq(segments.valid), segments.ready.eq(source.i.ready),
        source.i.payload.item.eq(segments.payload),
        *(source.i.payload[name].eq(head[name]) for name in ("keys", "wide", "gradient"))]
    return source, source.o.payload


def _sized(m: Module, segment: data.View, head: data.View, out: data.View, gradient_words: Signal,
           moves) -> Signal:
    """Drive the segment of ``out``; return the words of its bag, kept from its head on."""
    words = Signal(out.shape()["words"].shape)
    kept = Signal.like(words, reset_less=True)
    m.d.comb += [out.segment.eq(segment),
                 words.eq(Mux(segment.head, gradient_bag_words(head, gradient_words), kept))]
    with m.If(moves & segment.head):
        m.d.sync += kept.eq(words)
    return words

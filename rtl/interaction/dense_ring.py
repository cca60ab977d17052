"""Dense ring: reserves places for dense vectors, requests them, and outputs them in order."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import NicConfig
from rtl.formats import (
    CREDIT_BITS,
    DenseRecord,
    DenseSlot,
    FrameInfo,
    Opcode,
    RawBeat,
    RecordKind,
    TaggedBeat,
)
from rtl.interaction.hold_buffer import HoldBuffer
from rtl.interaction.records import VectorInBeat
from rtl.monitor.counters import CounterLayout
from rtl.network import RecordPackager

__all__ = ["DenseRing"]

_OF_PLACES = ("reserved", "vectors_in", "beats_in", "beats_out", "bad_landings", "stall_full",
              "stall_waiting")
_OF_REQUESTS = ("packets", "stall_buffers")


class DenseRing(wiring.Component):
    """Reserve a place for the dense vector of each sample, request the vector from the host, and
    output the vectors in sample order.

    The places are a :class:`~rtl.interaction.hold_buffer.HoldBuffer` of ``config.dense_vectors``. A
    vector is dropped and counted if its place is not reserved or is already filled. A place is free
    again when its last beat leaves. Requests are gathered in DENSE_REQUESTS packets, each of one
    step. A request is made only with a reserved place.

    Ports
    -----
    reserve: stream of :data:`~rtl.formats.DenseSlot`; ready while a place is free.
    vectors: stream of :data:`~rtl.formats.TaggedBeat` from the host, always ready.
    o: stream of :data:`~rtl.interaction.records.VectorInBeat`, ``sample_last`` always 0.
    headers, payload: streams of :data:`rtl.formats.FrameInfo` and :data:`rtl.formats.RawBeat`, the
        lists of :data:`~rtl.formats.DenseRecord`.
    vector_beats: beats of a vector; may change while the ring is empty.
    batch, time, timeout, credit: see :class:`rtl.network.RecordPackager`.
    asked, landed: events: a vector was requested; a requested vector is complete.
    counters: ``reserved``, ``vectors_in``, ``beats_in``, ``beats_out``, ``bad_landings``,
        ``stall_full``, ``stall_waiting`` as those of the hold buffer; ``packets`` of requests and
        ``stall_buffers``, cycles in which a request waits for a packet buffer.
    idle: inactive until an input changes. Waiting for vectors does not clear it.

    Raises ``TypeError`` if ``config`` is not a :class:`~rtl.config.NicConfig`.
    """

    LATENCY = HoldBuffer.LATENCY | {("reservation that fills a list", "its header"): 5}
    RATE = HoldBuffer.RATE

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self._config = config
        super().__init__({
            "reserve": In(stream.Signature(DenseSlot)),
            "vectors": In(stream.Signature(TaggedBeat)), "o": Out(stream.Signature(VectorInBeat)),
            "headers": Out(stream.Signature(FrameInfo)),
            "payload": Out(stream.Signature(RawBeat)),
            "vector_beats": In(range(config.vector_beats + 1)),
            "batch": In(16), "time": In(32), "timeout": In(16), "credit": In(CREDIT_BITS),
            "asked": Out(1), "landed": Out(1),
            "counters": Out(CounterLayout(*_OF_PLACES, *_OF_REQUESTS)), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        config = self._config
        m.submodules.places = places = HoldBuffer(
            config, places=config.dense_vectors, lossy=False, bags=False, short=False)
        m.submodules.requests = requests = RecordPackager(
            1, config.net_payload_beats, Opcode.DENSE_REQUESTS, False, buffers=4)
        wiring.connect(m, wiring.flipped(self.vectors), places.remote)
        wiring.connect(m, requests.headers, wiring.flipped(self.headers))
        wiring.connect(m, requests.payload, wiring.flipped(self.payload))

        # Reserve a place and make its request in the same cycle.
        slot, place, record = self.reserve.payload, places.reserve, Signal(DenseRecord)
        m.d.comb += [
            self.reserve.ready.eq(place.ready & requests.i.ready),
            place.valid.eq(self.reserve.valid & requests.i.ready),
            place.payload.kind.eq(RecordKind.KEY_END), place.payload.sample.eq(slot.sample),
            place.payload.step.eq(slot.step), place.payload.last.eq(1),
            record.sample.eq(slot.sample), record.landing.eq(places.next_landing),
            requests.i.valid.eq(self.reserve.valid & place.ready),
            requests.i.payload.step.eq(slot.step), requests.i.payload.record.eq(record),
            self.asked.eq(self.reserve.valid & self.reserve.ready), self.landed.eq(places.landed),
        ]
        beat = places.o.payload
        m.d.comb += [
            self.o.valid.eq(places.o.valid), places.o.ready.eq(self.o.ready),
            self.o.payload.data.eq(beat.data), self.o.payload.vector_last.eq(beat.beat_last),
            self.o.payload.sample.eq(beat.sample), self.o.payload.step.eq(beat.step),
        ]
        m.d.comb += [
            places.vector_beats.eq(self.vector_beats), places.time.eq(self.time),
            requests.batch.eq(self.batch), requests.time.eq(self.time),
            requests.timeout.eq(self.timeout), requests.credit.eq(self.credit),
            self.idle.eq(places.idle & requests.idle),
        ]
        for block, names in ((places, _OF_PLACES), (requests, _OF_REQUESTS)):
            m.d.comb += [self.counters[name].eq(block.counters[name]) for name in names]
        return m

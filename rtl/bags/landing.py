"""Bag landing: the vectors of this node's bags, from their owners to their places."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.bags.layouts import AskedBag
from rtl.cache.answer_check import AnswerCheck
from rtl.cache.fills import FillWriter
from rtl.cache.free_list import FreeList
from rtl.config import NicConfig
from rtl.formats import BEAT_INDEX_BITS, LANDING_BITS, TAG_BITS, PeerBeat, TaggedBeat
from rtl.memory import Ram
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import Arbiter, SkidBuffer, StreamFIFO

__all__ = ["BagLanding"]

_DEPTH = 32
"""Beats of bags that may wait: more than the cycles of a vector of the cache that has begun, 16
beats and 7 cycles without a beat (:class:`rtl.cache.vectors.VectorStore`)."""


class BagLanding(wiring.Component):
    """Accept the vector of each bag once, from the owner that was asked, and send it to its place.

    A bag has an id while it waits for its vector. The tag of its request is the id and the lap of
    the id (:class:`~rtl.cache.answer_check.AnswerCheck`). Other vectors are dropped. A vector of
    another size than its bag's passes, and the hold buffer drops it; its bag still waits.

    The vectors of the remote cache take the same way to the hold buffer. A bag's vector waits only
    for the end of the vector of the cache that has begun. The queue of bags is therefore never
    full.

    Parameters: ``config``, with ``owner_bags``, the number of ids.

    Ports
    -----
    id: stream of free ids, each as the tag of its next vector.
    asked: event :data:`rtl.bags.layouts.AskedBag`, in the cycle in which its ``id`` is taken. The
        vector must arrive at least two cycles later.
    vectors: stream of :data:`rtl.formats.PeerBeat`, ``tag`` that of the bag; always ready after the
        sweep. The tag of a vector is the tag of its first beat.
    cached: stream of :data:`rtl.formats.TaggedBeat`, from the remote cache.
    o: stream of :data:`rtl.formats.TaggedBeat`, to the hold buffer, which is always ready.
    counters: ``vectors`` of bags that were taken; ``bad_vectors``, not expected or of a wrong size.
    landed: event: the vector of a bag was taken, and its id is free.
    idle: inactive until an input changes. Waiting for vectors does not clear it.

    Raises ``TypeError`` if ``config`` is not a :class:`~rtl.config.NicConfig`, and ``ValueError``
    if it has no ``owner_bags``.
    """

    LATENCY = {
        ("beat of a bag's vector", "the same beat"): 5,
        ("beat of the cache", "the same beat"): 1,
        ("last beat of a bag's vector", "its id, free"): 6,
    }
    RATE = "1 beat and 1 id per cycle"

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        if not config.owner_bags:
            raise ValueError(f"owner_bags must be at least 16, not {config.owner_bags!r}")
        self._ids, self._beats = config.owner_bags, config.vector_beats
        self._places = config.hold_vectors
        super().__init__({
            "id": Out(stream.Signature(LANDING_BITS)), "asked": In(AskedBag),
            "vectors": In(stream.Signature(PeerBeat)),
            "cached": In(stream.Signature(TaggedBeat)),
            "o": Out(stream.Signature(TaggedBeat)),
            "counters": Out(CounterLayout("vectors", "bad_vectors")), "landed": Out(1),
            "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.check = check = AnswerCheck(self._ids)
        self._kept = data.StructLayout({
            "place": ceil_log2(self._places), "final_beat": BEAT_INDEX_BITS})
        m.submodules.places = places = Ram(
            self._kept.size, self._ids, style="bram" if self._ids > 64 else "lutram")
        m.submodules.free = free = FreeList(self._ids)
        # The lap of an id is read behind a register.
        m.submodules.next = following = SkidBuffer(range(self._ids))
        m.submodules.queue = queue = StreamFIFO(TaggedBeat, _DEPTH)
        m.submodules.merge = merge = Arbiter(
            TaggedBeat, 2, last=lambda beat: beat.last, priority=True)
        wiring.connect(m, free.taken, following.i)
        wiring.connect(m, queue.o, merge.i[0])
        wiring.connect(m, wiring.flipped(self.cached), merge.i[1])
        wiring.connect(m, merge.o, wiring.flipped(self.o))

        swept, writing = Signal(), Signal()
        number, place = Signal.like(following.o.payload, reset_less=True), Signal(
            self._kept, reset_less=True)
        with m.If(check.idle):
            m.d.sync += swept.eq(1)
        m.d.sync += [writing.eq(self.asked.valid), number.eq(following.o.payload),
                     place.place.eq(self.asked.place), place.final_beat.eq(self.asked.final_beat)]
        m.d.comb += [
            self.id.valid.eq(following.o.valid & swept), self.id.payload.eq(check.tag),
            following.o.ready.eq(self.id.ready & swept),
            check.asked.valid.eq(self.asked.valid), check.asked.id.eq(following.o.payload),
            check.asked.node.eq(self.asked.node),
            places.write_en.eq(writing), places.write_addr.eq(number), places.write_data.eq(place),
        ]
        moving, gone = self._take(m, check, places, queue, swept)
        m.d.comb += [
            check.landed.eq(self.landed), free.given.valid.eq(self.landed),
            free.given.number.eq(gone),
            self.idle.eq(check.idle & ~moving & queue.idle & merge.idle & free.idle
                         & ~(following.i.valid & following.i.ready)),
        ]
        return m

    def _take(self, m: Module, check: AnswerCheck, places: Ram, queue: StreamFIFO,
              swept: Signal) -> tuple[Signal, Signal]:
        """Pass the vectors that are owed to ``queue``; return whether a beat is on its way, and
        the id of the vector that has ``landed``."""
        # As AnswerCheck expects: ``landed`` is three cycles behind the last beat.
        assert FillWriter.LATENCY["last beat", "write"] == 3
        id_bits, comes = ceil_log2(self._ids), Signal()
        middle, begun, tag = Signal(), Signal(TAG_BITS, reset_less=True), Signal(TAG_BITS)
        came, valid, moving = Signal(), Signal(), Signal()
        layout = data.StructLayout({"id": id_bits, "first": 1, "beat": TaggedBeat})
        asked, item = Signal(layout, reset_less=True), Signal(layout, reset_less=True)
        vector = self.vectors.payload
        m.d.comb += [
            self.vectors.ready.eq(swept), comes.eq(self.vectors.valid & swept),
            tag.eq(Mux(middle, begun, vector.tag)), check.vector.tag.eq(tag),
            check.vector.source.eq(vector.source), places.read_addr.eq(tag[:id_bits]),
        ]
        with m.If(comes):
            m.d.sync += [middle.eq(~vector.last), begun.eq(tag)]

        # Stage 1: the vector is owed, and its place is known. ``known``: it may be taken. The check
        # learns of a landed vector three cycles after its last beat; a second one may come sooner.
        known, taking, number = Signal(reset_less=True), Signal(), Signal(range(self._beats + 1))
        kept, final = data.View(self._kept, places.read_data), Signal(
            BEAT_INDEX_BITS, reset_less=True)
        take, close, landed = Signal(), Signal(), [Signal(name=f"landed{k}") for k in range(2)]
        left = [Signal(id_bits, name=f"left{k}", reset_less=True) for k in range(2)]
        again = [ends & (asked.id == id_) for ends, id_ in zip(
            (close, *landed), (item.id, *left), strict=True)]
        m.d.sync += [
            came.eq(comes), asked.id.eq(tag), asked.first.eq(~middle),
            *(asked.beat[name].eq(vector[name]) for name in ("data", "last", "lost")),
            valid.eq(came), item.eq(asked), item.beat.tag.eq(kept.place), final.eq(kept.final_beat),
            known.eq(check.owed & ~again[0] & ~again[1] & ~again[2]),
        ]

        # Stage 2: the first beat decides for the whole vector.
        beat = item.beat
        m.d.comb += [
            take.eq(Mux(item.first, known, taking)),
            close.eq(valid & beat.last & take & (number == final)),
            queue.i.valid.eq(valid & take), queue.i.payload.eq(beat),
            moving.eq(came | valid | landed[0]),
        ]
        with m.If(valid):
            m.d.sync += taking.eq(take)
            with m.If(beat.last):
                m.d.sync += number.eq(0)
            with m.Elif(number != self._beats):
                m.d.sync += number.eq(number + 1)
        m.d.sync += [landed[0].eq(close), landed[1].eq(landed[0]),
                     left[0].eq(item.id), left[1].eq(left[0])]
        m.d.comb += self.landed.eq(landed[0])
        count(m, self.counters, vectors=close, bad_vectors=valid & beat.last & ~close & ~beat.lost)
        return moving, left[0]

"""Owner places: bags that wait for the GPU of this node, and the vectors that it returns."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from rtl.bags.layouts import OutgoingSegment, OwnedSegment
from rtl.cache.fills import FillWriter
from rtl.cache.free_list import FreeList
from rtl.cache.miss_table import MissTable
from rtl.cache.vectors import BEATS_OUT, landing_style
from rtl.config import NicConfig
from rtl.formats import (
    BEAT_INDEX_BITS,
    RECORD_BITS,
    RECORDS_PER_BEAT,
    BagHead,
    ScatterTag,
    SizedBeat,
    TaggedBeat,
    words_of,
)
from rtl.memory import Ram, sweep
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import Arbiter, CreditQueue, SkidBuffer, StreamFIFO

__all__ = ["OWNER_PLACES_COUNTERS", "OwnerPlaces"]

OWNER_PLACES_COUNTERS = CounterLayout("bags", "vectors", "bad_vectors", "stall_places")

_Origin = data.StructLayout({"tag": ScatterTag, "final_beat": BEAT_INDEX_BITS})
"""Requester of a bag, and the number of the last beat of its vector."""


class OwnerPlaces(wiring.Component):
    """Give each bag a place, ask the GPU for its vector, and send the vector to its requester.

    The head of a bag takes a free place, which stores the origin of the bag: its node, landing and
    step, and the size of its vector. The place replaces the landing in the head. A vector of the
    GPU is stored in the landing row of its place. Only a vector of the size of its table is taken,
    once, for a place whose bag has left; any other vector is dropped and counted. Vectors leave in
    the order of their arrival. A place is free again when its landing row was read.

    A bag waits for a free place and for ``o``. A vector waits only for ``answers``.

    Parameters
    ----------
    config: ``owner_bags`` is the number of places, a power of two.
    own: the bags of this node come too, at the port ``own``.

    Ports
    -----
    foreign, own: streams of :data:`~rtl.bags.layouts.OwnedSegment`, whole bags.
    o: stream of :data:`~rtl.bags.layouts.OutgoingSegment` to destination 0, in the order of arrival
        at each input.
    vectors: stream of :data:`rtl.formats.TaggedBeat`; the tag is a place, and ``lost`` has no
        meaning. Always ready after the sweep of the places, ``owner_bags`` cycles after reset.
    answers: stream of :data:`rtl.formats.SizedBeat`, the beats of a vector consecutive.
    counters: ``bags`` with a place; ``vectors`` taken and ``bad_vectors`` dropped; cycles in which
        a bag waits for a place (``stall_places``).
    landed: event: a vector was taken.
    idle: inactive until an input changes.
    """

    LATENCY = {("segment", "the same segment"): 3,
               ("segment of another node, beside own bags", "the same segment"): 4,
               ("last beat of a vector", "its first beat"): 10,
               ("last beat read", "its place, free"): 3}
    RATE = "1 segment and 1 beat per cycle"

    def __init__(self, config: NicConfig, *, own: bool = False):
        self._count, self._beats = config.owner_bags, config.vector_beats
        self._bits, self._own = config.store_bits, own
        segments = In(stream.Signature(OwnedSegment))
        super().__init__({
            "foreign": segments, **({"own": segments} if own else {}),
            "o": Out(stream.Signature(OutgoingSegment)),
            "vectors": In(stream.Signature(TaggedBeat)),
            "answers": Out(stream.Signature(SizedBeat)),
            "counters": Out(OWNER_PLACES_COUNTERS), "landed": Out(1), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.free = free = FreeList(self._count)
        m.submodules.table = table = MissTable(rows=2, in_flight=self._count)
        m.submodules.origins = origins = Ram(
            _Origin.size, self._count, latency=2, style="lutram" if self._count <= 64 else "bram")
        # The answer closes a place in the same cycle; block RAM would be too late.
        m.submodules.sizes = sizes = Ram(bits_for(self._beats), self._count, style="lutram")
        address, swept = sweep(m, self._count)
        m.d.comb += [table.clear.eq(~swept), table.clear_address.eq(address)]
        entered = self._enter(m, free, table, origins, sizes, swept)
        left = self._answer(m, free, table, origins, sizes, swept)
        m.d.comb += self.idle.eq(swept & free.idle & entered & left)
        return m

    def _enter(self, m: Module, free: FreeList, table: MissTable, origins: Ram, sizes: Ram,
               swept: Signal):
        """Give each bag a place; return whether nothing moves."""
        if self._own:
            m.submodules.entry = entry = Arbiter(
                OwnedSegment, 2, last=lambda item: item.segment.tail)
            # Cut the path from own bags to the store of other nodes' bags.
            m.submodules.others = others = SkidBuffer(OwnedSegment)
            wiring.connect(m, wiring.flipped(self.foreign), others.i)
            wiring.connect(m, others.o, entry.i[0])
            wiring.connect(m, wiring.flipped(self.own), entry.i[1])
            quiet = entry.idle & others.idle
        else:
            m.submodules.entry = entry = SkidBuffer(OwnedSegment)
            wiring.connect(m, wiring.flipped(self.foreign), entry.i)
            quiet = entry.idle
        m.submodules.numbers = numbers = SkidBuffer(range(self._count))
        m.submodules.output = output = SkidBuffer(OutgoingSegment)
        wiring.connect(m, output.o, wiring.flipped(self.o))

        # A segment, and the head and the place of its bag.
        came, waits = entry.o.payload.segment, Signal()
        item, busy = Signal(OwnedSegment, reset_less=True), Signal()
        head, place = (Signal(shape, reset_less=True) for shape in (BagHead, range(self._count)))
        advance, opens = Signal(), Signal()
        m.d.comb += [
            numbers.i.payload.eq(free.taken.payload),
            numbers.i.valid.eq(free.taken.valid & swept),
            free.taken.ready.eq(numbers.i.ready & swept),
            advance.eq(~busy | output.i.ready), waits.eq(came.head & ~numbers.o.valid),
            entry.o.ready.eq(advance & ~waits),
            numbers.o.ready.eq(advance & entry.o.valid & came.head),
        ]
        with m.If(advance):
            m.d.sync += [busy.eq(entry.o.valid & ~waits), item.eq(entry.o.payload)]
            with m.If(entry.o.valid & came.head):
                m.d.sync += [head.eq(came.words.word_select(came.first, RECORD_BITS)),
                             place.eq(numbers.o.payload)]

        out, segment = output.i.payload, item.segment
        m.d.comb += [
            output.i.valid.eq(busy), opens.eq(busy & output.i.ready & segment.head),
            out.segment.eq(segment), out.step.eq(item.step),
            # The bag has the words of a packet at most, hence few keys.
            out.words.eq(1 + words_of(head.keys[:len(out.words)], head.wide, head.weighted)),
            table.id.eq(place), table.open.eq(opens),
            origins.write_en.eq(opens), origins.write_addr.eq(place),
            origins.write_data.eq(Cat(head.landing, item.node, item.step, item.final_beat)),
            sizes.write_en.eq(opens), sizes.write_addr.eq(place),
            sizes.write_data.eq(item.final_beat + 1),
        ]
        for k in range(RECORDS_PER_BEAT):
            with m.If(segment.head & (segment.first == k)):
                word = out.segment.words.word_select(k, RECORD_BITS)
                m.d.comb += word[BagHead["landing"].offset:].eq(place)
        count(m, self.counters, bags=opens, stall_places=entry.o.valid & waits)
        return quiet & ~busy & output.idle & ~(numbers.i.valid & numbers.i.ready)

    def _answer(self, m: Module, free: FreeList, table: MissTable, origins: Ram, sizes: Ram,
                swept: Signal):
        """Store the vectors and send them; return whether nothing moves."""
        m.submodules.writer = writer = FillWriter(
            rows=self._count, in_flight=self._count, vector_beats=self._beats)
        m.submodules.landing = landing = Ram(
            self._bits, self._count * self._beats, latency=2,
            style=landing_style(self._count * self._beats))
        m.submodules.complete = complete = StreamFIFO(data.StructLayout({
            "place": range(self._count), "final_beat": writer.write.beat.shape()}), self._count)
        m.submodules.queue = queue = CreditQueue(SizedBeat, BEATS_OUT)
        wiring.connect(m, queue.o, wiring.flipped(self.answers))
        vector, write = writer.fills.payload, writer.write
        m.d.comb += [
            self.vectors.ready.eq(swept), writer.fills.valid.eq(self.vectors.valid & swept),
            vector.id.eq(self.vectors.payload.tag), vector.data.eq(self.vectors.payload.data),
            vector.last.eq(self.vectors.payload.last),
            # In the cycle in which the table answers.
            sizes.read_addr.eq(writer.fill_id), writer.vector_beats.eq(sizes.read_data),
            table.fill_id.eq(writer.fill_id), table.close.eq(writer.close),
            writer.busy.eq(table.busy), self.landed.eq(writer.complete),
            # Every place has room.
            complete.i.valid.eq(writer.complete), complete.i.payload.place.eq(writer.complete_id),
            complete.i.payload.final_beat.eq(write.beat),
        ]
        # Registers at the pins of the RAM.
        pins = {name: Signal.like(getattr(landing, name), reset_less=name != "write_en", name=name)
                for name in ("write_en", "write_addr", "write_data", "read_addr")}
        m.d.comb += [getattr(landing, name).eq(pin) for name, pin in pins.items()]
        m.d.sync += [pins["write_en"].eq(write.valid), pins["write_data"].eq(write.data),
                     pins["write_addr"].eq(write.offset | write.id)]

        beat, oldest = Signal(range(max(2, self._beats))), complete.o.payload
        place = oldest.place
        origin = data.View(_Origin, origins.read_data)
        issue, final = Signal(), Signal()
        under_way, lasts = Signal(3), Signal(3, reset_less=True)
        m.d.comb += [
            issue.eq(complete.o.valid & queue.free), final.eq(beat == oldest.final_beat),
            queue.reserve.eq(issue), complete.o.ready.eq(queue.free & final),
            queue.i.valid.eq(under_way[-1]), queue.i.payload.data.eq(landing.read_data),
            queue.i.payload.tag.eq(origin.tag), queue.i.payload.final_beat.eq(origin.final_beat),
            queue.i.payload.last.eq(lasts[-1]),
        ]
        m.d.sync += [under_way.eq(Cat(issue, under_way)), lasts.eq(Cat(final, lasts)),
                     pins["read_addr"].eq(Cat(place, beat)), origins.read_addr.eq(place),
                     # A register after the wide comparison.
                     free.given.valid.eq(issue & final), free.given.number.eq(place)]
        with m.If(issue):
            m.d.sync += beat.eq(Mux(final, 0, beat + 1))
        count(m, self.counters, vectors=writer.complete, bad_vectors=writer.bad)
        return writer.idle & complete.idle & ~under_way.any() & queue.idle

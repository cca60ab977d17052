"""A small hold buffer between slots and vectors, and its invariant: the location of each slot, the
content of its place, and the location of each vector."""

from itertools import accumulate

from amaranth.hdl import Array, Cat, Mux, Signal, Value
from amaranth.lib import data
from amaranth.utils import ceil_log2

from rtl.config import preset
from rtl.formats import RecordKind
from rtl.interaction import HoldBuffer
from rtl.interaction.landing import LandingCheck
from tests.formal.bench import Bench
from tests.formal.plain import TimedFIFO
from tests.formal.shown import LOCALS, ShownRam, made_at_once
from tests.formal.wires import Wires
from tests.mutants import variant

__all__ = ["Holding"]

OUT_BEATS = 8
CONFIG = preset("tiny").with_fields(max_dimension=16)
SLOT = data.StructLayout({"kind": 2, "sample": 1, "step": 1, "last": 1})
OUT = data.StructLayout({"data": 1, "kind": 2, "sample": 1, "step": 1, "sample_last": 1,
                         "beat_last": 1, "lost": 1})
KEPT = data.StructLayout({"sample": 1, "kind": 2})
"""The tracked part of a slot."""
_SHOWN = [("HoldBuffer", "        return m\n", f"        {LOCALS.format('ring')}return m\n"),
          ("HoldBuffer", "return known.some,", f"{LOCALS.format('window')}return known.some,"),
          ("HoldBuffer", "return credit.level", f"{LOCALS.format('leave')}return credit.level"),
          ("HoldBuffer", 'name=f"place{k}"), Signal()', 'name=f"place{k}"), Signal()\n'
           '            self.ahead = [*getattr(self, "ahead", []), place]'),
          ("LandingCheck", "        return m\n", f"        {LOCALS.format('inside')}return m\n")]


class Holding:
    """The buffer, its surroundings, and statements about it.

    Each slot has a bit that its vector has too; an EMPTY slot gets no vector and has bit 0. Each
    reserved place gets its vector at any time, from the network or from this node. At the same time
    the network sends other vectors with any bit, for a place that does not wait for a vector or for
    no place at all.

    Skid buffers are wires and queues are registers (``test_streams``). The room of the output and
    of the marks is as in the hardware.

    edits: class, old text, new text.

    Members
    -------
    inside: number of slots.
    waiting: places whose vector was not sent.
    left: a beat leaves.
    """

    def __init__(self, *edits: tuple[str, str, str], places: int, window: int):
        self.bench = bench = Bench()
        self.places, self.window = places, window
        m, bits = bench.m, ceil_log2(places)
        edits += tuple(_SHOWN)
        tag = bits + 1
        beats = {"TaggedBeat": data.StructLayout({"tag": tag, "data": 1, "last": 1, "lost": 1}),
                 "VectorBeat": data.StructLayout({
                     "data": 1, "tag": data.StructLayout({"landing": tag}), "last": 1})}

        def edited(block: type, *own: tuple[str, str], **names: object) -> type:
            return variant(
                block, *own, *(edit[1:] for edit in edits if edit[0] == block.__name__),
                BEAT_BITS=1, Ram=ShownRam, **beats, **names)

        landing = made_at_once(edited(LandingCheck, TAG_BITS=tag, SkidBuffer=Wires))
        self.dut = dut = variant(
            HoldBuffer,
            ("self._bits, self._lossy = config.store_bits,", "self._bits, self._lossy = 1,"),
            ("WINDOW = 4", f"WINDOW = {window}"), ("OUT_BEATS = 8", f"OUT_BEATS = {OUT_BEATS}"),
            *(edit[1:] for edit in edits if edit[0] == "HoldBuffer"), HoldSlot=SLOT, SlotBeat=OUT,
            LANDING_BITS=tag, LandingCheck=landing, Ram=ShownRam, StreamFIFO=TimedFIFO, **beats)(
                CONFIG, places=places)
        dut._MustUse__silence = True  # elaborated here, because statements refer to its parts
        m.submodules.dut = dut.elaborate(None)
        self.parts = m.submodules.dut.submodules
        m.d.comb += dut.vector_beats.eq(1)

        empty, mark, slot = bench.free(name="empty"), bench.free(name="mark"), Signal(SLOT)
        m.d.comb += [slot.kind.eq(Mux(empty, RecordKind.EMPTY, RecordKind.KEY_END)),
                     slot.sample.eq(mark & ~empty)]
        self.entered, entering = bench.source(dut.reserve, slot), dut.reserve.payload
        out = dut.o.payload
        self.left = left = bench.sink(dut.o, "o", Cat(out.data, out.sample, out.kind))
        self.inside = bench.in_order(
            "slots", self.entered, Cat(entering.sample, entering.kind), left,
            Cat(out.sample, out.kind), places + OUT_BEATS)
        bench.always("its_vector", ~left | (out.data == out.sample))
        bench.always("one_beat", ~left | out.beat_last)

        # Places that wait for a vector, the slot of each, and the sender. A vector of this node is
        # in the skid buffer, which is left out here, for one cycle.
        self.waiting, waited = Signal(places, name="waiting"), Signal(places, name="waited")
        self.slots = Array(Signal(KEPT, name=f"slot{p}") for p in range(places))
        at, ours, sends, ours_sent = (bench.free(bits, "place"), bench.free(bits, "ours"),
                                      bench.free(name="sends"), bench.free(name="sends_ours"))
        here, junk, far = dut.next_landing[:bits], bench.free(name="junk"), bench.free(name="far")
        waits = self.waiting.bit_select(at, 1)
        right, wrong = sends & waits & ~far, sends & (
            far | (~waits & ~(self.entered & (here == at))))
        local = ours_sent & (self.waiting & waited).bit_select(ours, 1) & ~(right & (at == ours))
        m.d.comb += [
            dut.local.valid.eq(local), dut.local.payload.data.eq(self.slots[ours].sample),
            dut.local.payload.tag.landing.eq(ours), dut.local.payload.last.eq(1),
            dut.remote.valid.eq(right | wrong), dut.remote.payload.tag.eq(at | far << bits),
            dut.remote.payload.data.eq(Mux(wrong, junk, self.slots[at].sample)),
            dut.remote.payload.last.eq(1)]
        bench.always("remote_taken", dut.remote.ready)
        # The correct vector in the register behind the network.
        self.coming = Signal()
        m.d.sync += [waited.eq(self.waiting), self.coming.eq(right)]
        with m.If(right):
            m.d.sync += self.waiting.bit_select(at, 1).eq(0)
        with m.If(local & dut.local.ready):
            m.d.sync += self.waiting.bit_select(ours, 1).eq(0)
        with m.If(self.entered):
            m.d.sync += [self.waiting.bit_select(here, 1).eq(entering.kind != RecordKind.EMPTY),
                         self.slots[here].eq(Cat(entering.sample, entering.kind))]
        self.waited = waited
        bench.always("free_place", ~self.entered | ~self.waiting.bit_select(here, 1))
        bench.always("idle", ~dut.idle | ~dut.o.valid)

    def sees(self) -> None:
        """State that the window shows each vector that has filled its place."""
        dut, parts, landing = self.dut, self.parts, self.parts.landing
        head, fetch, known = dut.ring["head"], dut.window["fetch"], parts.known
        check, number = landing.made.submodules.check_bits, len(dut.window["read"])
        self.fetched, self.looked = (
            Signal(range(2 * self.places), name=name) for name in ("fetched", "looked"))
        self.bench.m.d.comb += [self.fetched.eq(fetch - head),
                                self.looked.eq(fetch - head - known.up)]
        self.ahead = []
        for k in range(self.window):
            slot = Signal(len(head), name=f"ahead{k}")
            self.bench.m.d.comb += slot.eq(head + k)
            place, there = slot[:-1], dut.window["there"][slot[:number]]
            empty = self.slots[place].kind == RecordKind.EMPTY
            full, last = Array(check.cells)[place] == slot[-1], known.up & (self.looked == k)
            self.ahead.append((slot, there, empty, full, last))
            # The bit is valid in the cycle after the slot was fetched.
            self.bench.always(f"seen_{k}", ~((k < self.fetched) & ~there) | Mux(
                last, empty | ~full | landing.looked, ~empty & ~full))

    def soon(self) -> None:
        """State bounds on the time until slots leave and enter."""
        bench, dut = self.bench, self.dut
        bench.within("leaves", 12, (self.inside != 0) & (self.waiting == 0) & dut.o.ready
                     & ~self.entered, self.left)
        bench.within("takes", 14, dut.reserve.valid & (self.inside == 0), self.entered)

    def invariant(self) -> None:
        """State the locations of slots and vectors, beside :meth:`sees`, to make all statements
        inductive."""
        self._levels()
        self._slots()
        self._places()
        self._ahead()

    def _levels(self) -> None:
        """State the meaning of the counts: places from head to tail, and the window within them."""
        bench, parts, ring = self.bench, self.parts, self.dut.ring
        leave, bits = self.dut.leave, len(ring["head"]) - 1
        head, tail = ring["head"], ring["tail"]
        self.started = started = Signal()
        bench.m.d.sync += started.eq(1)
        self.reserved = Signal(range(2 * self.places), name="reserved")
        bench.m.d.comb += self.reserved.eq(tail - head)
        free, unread, room, known, credit = (
            parts.free, parts.unread, parts.room, parts.known, parts.credit)
        bench.always("level", (ring["level"] == self.reserved) & (self.reserved <= self.places)
                     & (free.level + self.reserved == self.places))
        bench.always("unread", (self.fetched <= self.reserved) & (
            unread.level + unread.up + self.fetched == self.reserved))
        bench.always("window", (self.fetched <= self.window) & (
            room.level + self.fetched == self.window) & (
                known.level + known.up == self.fetched))
        for level in (free, unread, room, known, credit):
            bench.always(f"flags_{len(bench.broken)}", (level.some == (level.level >= 1)) & (
                level.many == (level.level >= 2)))
        output = parts.output
        self.out = [  # from the last beat that left on: valid, item, void
            output.front.held, *(place.held for place in output.places), *reversed(leave["valid"])]
        gone = sum(self.out)
        bench.always("credit", credit.level + gone == OUT_BEATS)
        bench.always("inside", self.inside == gone + self.reserved)
        bench.always("queued", Cat(
            ~after.held | before.held
            for fifo in (parts.output, parts.marks)
            for before, after in zip(fifo.places, fifo.places[1:])).all())
        bench.always("beats", (~started | leave["last_beat"]) & (leave["beat"] == 0) & (
            started | (self.reserved == 0)) & (leave["address"] == head[:bits]) & (
                leave["following"] == (head + 1)[:bits]))
        inside = parts.landing.inside
        bench.always("one_beat_in", Cat(
            inside["middle"], inside["beat"], inside["spoiled"]) == 0)

    def _slots(self) -> None:
        """State that each slot is stored in its place, and that the picked slot has its counted
        position."""
        bench, parts, dut = self.bench, self.parts, self.dut
        ring, window, leave, bits = dut.ring, dut.window, dut.leave, len(dut.ring["head"]) - 1
        head, fetch, unread = ring["head"], window["fetch"], parts.unread

        def is_of(record: Value, place: Value) -> Value:
            view = data.View(SLOT, record)
            return Cat(view.sample, view.kind) == Value.cast(self.slots[place])

        slot = dut.reserve.payload
        bench.always("entering", ~dut.reserve.valid | (slot.kind != RecordKind.EMPTY) | (
            slot.sample == 0))
        bench.always("record", ~unread.up | (
            (ring["place"] == (ring["tail"] - 1)[:bits + 1])
            & is_of(ring["record"], ring["place"][:bits])))
        bench.always("read", ~parts.known.up | (
            (window["read"] == (fetch - 1)[:len(window["read"])])
            & is_of(window["slot"], (fetch - 1)[:bits])))
        for k in range(self.places):
            at = Signal(len(head), name=f"at{k}")
            bench.m.d.comb += at.eq(head + k)
            place = at[:bits]
            written = k < self.reserved - unread.up
            bench.always(f"slot_{k}", ~written | is_of(
                Array(parts.slots.cells)[place], place))
            if k < self.window:
                bench.always(f"record_{k}", ~(k < self.looked) | is_of(
                    Array(parts.records.cells)[at[:len(window["read"])]], place))
        # Items on their way out, first item first.
        reading, out = leave["reading"], parts.output
        empty = RecordKind.EMPTY
        items = [(item, item.data) for item in (
            out.front.item, *(place.item for place in out.places))]
        items += [(reading[1].slot, Mux(reading[1].void, 0, parts.store.read_data)),
                  (reading[0].slot, Mux(reading[0].void, 0, parts.store.word))]
        picked, kept, ahead = bench.picked["slots"]
        before = [0, *accumulate(self.out)]
        for k, (there, (item, value)) in enumerate(zip(self.out, items, strict=True)):
            bench.always(f"out_{k}", ~there | (value == item.sample))
            bench.always(f"picked_{k}", ~(there & picked & (ahead == before[k])) | (
                kept == Cat(item.sample, item.kind)))
        for stage in range(2):
            bench.always(f"void_{stage}", ~leave["valid"][stage] | (
                reading[stage].last & (reading[stage].void == (reading[stage].slot.kind == empty))))
        bench.always("last_out", Cat(
            ~there | item.beat_last
            for there, (item, _) in zip(self.out, items[:-2], strict=False)).all())
        for k in range(self.places):
            bench.always(f"picked_slot_{k}", ~(
                (k < self.reserved) & picked & (ahead == before[-1] + k)) | (
                    kept == Value.cast(self.slots[(head + k)[:bits]])))
        bench.always("picked", ~picked | (ahead < self.inside))

    def _places(self) -> None:
        """State the values of each place's bit and words, and the location of its vector or its
        mark."""
        bench, parts, dut = self.bench, self.parts, self.dut
        ring, bits = dut.ring, len(dut.ring["head"]) - 1
        head, unread, landing = ring["head"], parts.unread, parts.landing
        inside, check, look = (landing.inside, landing.made.submodules.check_bits,
                               landing.made.submodules.look_bits)
        sweep, stage, remote = inside["sweep"], inside["stage"], inside["remote"]
        filled_valid, filled, lap_in = landing.filled_valid, landing.filled, inside["filled_lap"]
        behind, marks = ring["behind"], [
            (parts.marks.front.held, parts.marks.front.item), *(
                (place.held, place.item) for place in parts.marks.places),
            (parts.marks.i.valid, ring["place"])]
        bench.always("swept", (sweep <= self.places) & (landing.swept | (
            (self.reserved == 0) & (head == 0) & ~filled_valid & ~inside["fill"])))
        bench.always("remote", (
            inside["no_remote"] != (inside["remote_valid"] | ~self.started)) & (
                ~inside["remote_valid"] | remote.last))
        for p in range(self.places):
            slot, lap, ahead = self.slots[p], Signal(name=f"lap{p}"), Signal(bits)
            reserved, empty = Signal(name=f"reserved{p}"), Signal(name=f"empty{p}")
            bench.m.d.comb += [
                lap.eq(head[bits] ^ (p < head[:bits])), ahead.eq(p - head[:bits]),
                reserved.eq(ahead < self.reserved), empty.eq(slot.kind == RecordKind.EMPTY)]
            full, new = check.cells[p] == lap, unread.up & (ring["place"][:bits] == p)
            marked = bench.any_of(held & (at[:bits] == p) for held, at in marks)
            coming = self.coming & (remote.tag[:bits] == p)
            stays = inside["stage_valid"] & inside["fill"] & (stage.place == p)
            writes = filled_valid & (filled == p)
            right = writes & (lap_in == lap) & inside["write_en"] & (
                landing.write_addr == p) & (landing.write_data == slot.sample)
            needs = reserved & ~empty
            bench.always(f"same_{p}", ~(p < sweep) | (check.cells[p] == look.cells[p]))
            bench.always(f"unused_{p}", ~((p < sweep) & ~landing.swept) | check.cells[p])
            bench.always(f"free_{p}", reserved | ~landing.swept | (~full | marked))
            bench.always(f"waiting_{p}", ~self.waiting[p] | needs)
            bench.always(f"waited_{p}", ~(self.waiting & self.waited)[p] | ~writes)
            # A vector has exactly one location.
            here = stays & (stage.lap == lap) & (inside["stage_data"] == slot.sample)
            bench.always(f"vector_{p}", ~needs | (
                self.waiting[p] + coming + here + right + full == 1))
            bench.always(f"coming_{p}", ~coming | (
                needs & inside["remote_valid"] & ~remote.tag[bits:].any()
                & (remote.data == slot.sample) & remote.last & ~writes))
            bench.always(f"junk_{p}", ~(
                inside["remote_valid"] & ~self.coming & (remote.tag == p)) | ~self.waiting[p])
            bench.always(f"stays_{p}", ~stays | Mux(
                reserved, (stage.lap == lap) & (empty | here) & ~new, stage.lap != lap))
            bench.always(f"writes_{p}", ~writes | Mux(
                reserved, ((lap_in == lap) & (empty | right)) | (new & (lap_in != lap)),
                lap_in != lap))
            bench.always(f"stored_{p}", ~(needs & full) | (
                parts.store.cells[p] == slot.sample))
            bench.always(f"filled_{p}", ~(needs & full) | ~(stays | writes | marked | new))
            bench.always(f"empty_{p}", ~empty | ~slot.sample)
            bench.always(f"marked_{p}", ~(reserved & empty) | full | marked)
        bench.always("stage", ~inside["stage_valid"] | (
            (stage.address == stage.place) & stage.ends & stage.last & stage.may & ~stage.both))
        bench.always("write", landing.write_en == filled_valid)
        bench.always("written", ~filled_valid | (landing.write_addr == filled))
        # Marks belong to EMPTY slots that are not read yet. A delayed mark, while no slot is
        # reserved, may belong to a slot that has left.
        front, *others, _ = marks
        late = behind & front[0]
        number = sum(held for held, _ in others)
        bench.always("marks", late | (number <= 1))
        bench.always("marks_have_room", number + unread.up < len(others))
        for k, (held, at) in enumerate(marks):
            age = Signal(len(head), name=f"age{k}")
            bench.m.d.comb += age.eq(at - head)
            young = ((self.fetched if k else self.looked) <= age) & (age < self.reserved)
            gone = age[bits] & (age[:bits] >= self.reserved)
            may = young if k == len(marks) - 1 else Mux(late, (age < self.reserved) | gone, young)
            bench.always(f"mark_{k}", ~held | (
                may & (gone | (self.slots[at[:bits]].kind == RecordKind.EMPTY))))

    def _ahead(self) -> None:
        """State the content of the window for the fetched slots."""
        bench, dut, landing = self.bench, self.dut, self.parts.landing
        for k, (slot, there, empty, full, last) in enumerate(self.ahead):
            index = slot[:len(dut.window["read"])]
            bench.always(f"there_{k}", ~((k < self.fetched) & there) | empty | full)
            bench.always(f"looks_{k}", ~last | (
                (empty | ~landing.looked | full) & (landing.inside["look_lap"] == slot[-1])))
            bench.always(f"ahead_{k}", ~(k < self.fetched) | (
                Array(dut.ahead)[index] == slot[:-1]))

"""Result grouper: decides which results share a packet, and forms their tag beats."""

from amaranth.hdl import Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS
from rtl.formats import SAMPLE_BITS, SAMPLES_PER_BEAT, STEP_BITS
from rtl.stream import StreamFIFO

__all__ = ["ResultGroup", "ResultGrouper", "ResultSize", "tag_beats"]


def tag_beats(most: int) -> int:
    """Return the most tag beats of a packet of ``most`` payload beats."""
    return -(-most // (SAMPLES_PER_BEAT + 1))


def ResultSize(most: int) -> data.StructLayout:
    """Layout of the size of a whole result or of a ``part`` of a result.

    beats: number of beats.
    first_beat, last: number of its first beat in the result; the result ends with it.
    same_length: it is whole, and as long as the previous size.
    same_step: it has the step of the previous size.
    lost: a part that ends a lost result.
    """
    return data.StructLayout({
        "beats": range(most), "sample": SAMPLE_BITS, "step": STEP_BITS, "part": 1,
        "first_beat": 16, "last": 1, "same_length": 1, "same_step": 1, "lost": 1})


def ResultGroup(most: int) -> data.StructLayout:
    """Layout of a packet that may leave: the next ``tags`` tag beats, then the next ``beats`` of
    the results. For a ``part``, the tag beat consists of the fields of this layout."""
    return data.StructLayout({
        "count": range(most), "beats": range(most), "tags": range(tag_beats(most) + 1),
        "sample": SAMPLE_BITS, "step": STEP_BITS, "part": 1, "first_beat": 16, "last": 1,
        "lost": 1})


class ResultGrouper(wiring.Component):
    """Gather whole results of one length and one step into packets; a part is a separate packet.

    A packet closes if another result of its length would not fit, if a result of another length or
    step or a part arrives, or on timeout.

    Parameters: ``most``, payload beats of the largest packet, at least 2.

    Ports
    -----
    i: stream of :func:`ResultSize`, in the order of the results.
    groups: stream of :func:`ResultGroup`.
    tags: stream of tag beats, packets in the order of ``groups``, never later than the packet.
    time, timeout: a packet closes when its first result is ``timeout`` cycles old.
    full, expired, changed: events: a packet closes in this cycle, by reason.
    idle: no packet is open or waits.
    """

    LATENCY = {("result that fills a packet", "packet on groups"): 3}
    RATE = "1 result per cycle; a part that closes a packet takes a cycle more"
    GROUPS = 16
    """Packets that may wait to leave."""

    def __init__(self, most: int):
        self._most = most
        super().__init__({
            "i": In(stream.Signature(ResultSize(most))),
            "groups": Out(stream.Signature(ResultGroup(most))),
            "tags": Out(stream.Signature(BEAT_BITS)),
            "time": In(32), "timeout": In(16),
            "full": Out(1), "expired": Out(1), "changed": Out(1), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        most, item = self._most, self.i.payload
        m.submodules.groups = groups = StreamFIFO(ResultGroup(most), self.GROUPS)
        # Room for the tags of an open packet, in addition to waiting tags.
        m.submodules.tags = tags = StreamFIFO(BEAT_BITS, max(self.GROUPS, 2 * tag_beats(most)))
        wiring.connect(m, groups.o, wiring.flipped(self.groups))
        wiring.connect(m, tags.o, wiring.flipped(self.tags))
        # The open packet: length and step of its results, their number and beats.
        is_open, old = Signal(), Signal()
        length, step, results, beats, tag_count, tag, opened = (
            Signal(shape, reset_less=True, name=name) for name, shape in {
                "length": range(most), "step": STEP_BITS, "results": range(most),
                "beats": range(most), "tag_count": range(tag_beats(most) + 1), "tag": BEAT_BITS,
                "opened": 32}.items())
        # State for the next result, computed before its arrival: whether its sample begins a tag
        # beat, and the number of beats, of results and tags, that would be left.
        fresh = Signal(reset_less=True)
        room = Signal(signed(len(Const(2 * most)) + 1), reset_less=True)

        closing, close, opens, joins, parts = (
            Signal(name=n) for n in ("closing", "close", "opens", "joins", "parts"))
        lane, fits, same = results[:4], ~room[-1], item.same_length & item.same_step
        m.d.comb += [
            # The previous size belongs to the packet's last result.
            closing.eq(is_open & (~fits | old | (self.i.valid & ~same))),
            close.eq(closing & groups.i.ready & tags.i.ready),
            opens.eq(self.i.valid & ~item.part & (~is_open | close)),
            joins.eq(self.i.valid & is_open & ~closing & (tags.i.ready | ~fresh)),
            parts.eq(self.i.valid & item.part & ~is_open & groups.i.ready),
            # Without ``valid``, which is as late as the rest: opens, joins or parts.
            self.i.ready.eq(Mux(
                is_open, Mux(~fits | old | ~same, ~item.part & groups.i.ready & tags.i.ready,
                             tags.i.ready | ~fresh),
                ~item.part | groups.i.ready)),
            self.full.eq(close & ~fits), self.expired.eq(close & fits & old),
            self.changed.eq(close & fits & ~old),
            self.idle.eq(~is_open & ~self.i.valid & groups.idle & tags.idle),
        ]
        group = groups.i.payload
        m.d.comb += [
            groups.i.valid.eq((closing & tags.i.ready)
                                 | (self.i.valid & item.part & ~is_open)),
            group.part.eq(~is_open), group.count.eq(Mux(is_open, results, item.beats)),
            group.beats.eq(Mux(is_open, beats, item.beats)), group.tags.eq(tag_count),
            group.sample.eq(item.sample), group.first_beat.eq(item.first_beat),
            group.last.eq(item.last), group.step.eq(Mux(is_open, step, item.step)),
            group.lost.eq(item.lost),
            # A tag beat leaves when the next one begins, or with its packet.
            tags.i.valid.eq((closing & groups.i.ready)
                               | (self.i.valid & is_open & ~closing & fresh)),
            tags.i.payload.eq(tag),
        ]
        m.d.sync += old.eq(is_open & ~close & ((self.time - opened)[:32] >= self.timeout))
        with m.If(opens):
            m.d.sync += [
                is_open.eq(1), length.eq(item.beats), step.eq(item.step), results.eq(1),
                beats.eq(item.beats), tag_count.eq(1), tag.eq(item.sample), opened.eq(self.time),
                room.eq(most - 1 - 2 * item.beats), fresh.eq(0),
            ]
        with m.Elif(close):
            m.d.sync += is_open.eq(0)
        with m.Elif(joins):
            m.d.sync += [
                results.eq(results + 1), beats.eq(beats + length), tag_count.eq(tag_count + fresh),
                room.eq(room - length - lane.all()), fresh.eq(lane.all()),
            ]
            with m.If(fresh):
                m.d.sync += tag.eq(item.sample)
            with m.Else():
                m.d.sync += tag.word_select(lane, SAMPLE_BITS).eq(item.sample)
        return m

"""Frame pool: linked payload beats of unacknowledged packets, and the list of free beats."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import BEAT_BITS, LINK_POOL_SPARE
from rtl.memory import Ram
from rtl.network.link.packets import Chain

__all__ = ["FramePool"]


class FramePool(wiring.Component):
    """Store beats of packets, each linked to the next one.

    The free beats form such a list. A packet takes beats from its head, already linked, and returns
    all its beats at the tail at once. After reset the list is 0, 1, 2 and so on. The links of this
    first lap are written as the beats are taken, so no initial fill is necessary.

    Parameters: ``beats``, a power of two, at least 8.

    Ports
    -----
    take: take the free beat ``beat`` and write ``data`` into it. :data:`FramePool.SPARE` more beats
        must be free, because the link of the last free beat is not known yet.
    give: stream of :func:`rtl.network.link.packets.Chain`, beats to free.
    read: read the beat ``first`` or, with ``follow``, the beat linked to the last one read.
    read_data: content of that beat.
    """

    LATENCY = {("read", "its data"): 2, ("beat taken", "it may be read"): 2}
    RATE = "1 beat taken and 1 read per cycle, 1 chain given back"
    SPARE = LINK_POOL_SPARE

    def __init__(self, beats: int):
        if isinstance(beats, bool) or not isinstance(beats, int):
            raise TypeError(f"beats must be an integer, not {beats!r}")
        if beats < 8 or beats & (beats - 1):
            raise ValueError(f"beats must be a power of two of at least 8, not {beats!r}")
        self._beats = beats
        super().__init__({
            "take": In(1), "beat": Out(range(beats)), "data": In(BEAT_BITS),
            "give": In(stream.Signature(Chain(beats))),
            "read": In(1), "follow": In(1), "first": In(range(beats)),
            "read_data": Out(BEAT_BITS)})

    def elaborate(self, platform) -> Module:
        m = Module()
        numbers, last = range(self._beats), self._beats - 1
        m.submodules.beats = beats = Ram(
            BEAT_BITS, self._beats, style="uram" if self._beats >= 1024 else "auto", latency=2)
        # Two copies: one for the head of the free list, one for the packet being read.
        m.submodules.links = links = Ram(len(self.beat), self._beats)
        m.submodules.links_read = walked = Ram(len(self.beat), self._beats)
        head, tail, fresh = Signal(numbers), Signal(numbers, init=last), Signal(init=1)
        following, address = Signal(numbers), Signal(numbers)
        # A beat is written one cycle after it is taken, together with its link in the first lap.
        taken, linked = Signal(), Signal()
        written, linked_to = (Signal(numbers, reset_less=True, name=name)
                              for name in ("written", "linked_to"))
        contents = Signal(BEAT_BITS, reset_less=True)
        m.d.sync += [taken.eq(self.take), linked.eq(self.take & fresh), written.eq(head),
                     linked_to.eq(head + 1), contents.eq(self.data)]
        m.d.comb += [
            following.eq(Mux(fresh, head + 1, links.read_data)),
            self.beat.eq(head), self.give.ready.eq(~linked),
            links.read_en.eq(self.take), links.read_addr.eq(following),
            address.eq(Mux(self.follow, walked.read_data, self.first)),
            walked.read_en.eq(self.read), walked.read_addr.eq(address),
            beats.write_en.eq(taken), beats.write_addr.eq(written),
            beats.write_data.eq(contents), beats.read_en.eq(self.read),
            beats.read_addr.eq(address), self.read_data.eq(beats.read_data),
        ]
        for ram in (links, walked):
            m.d.comb += [
                ram.write_en.eq(self.give.valid | linked),
                ram.write_addr.eq(Mux(linked, written, tail)),
                ram.write_data.eq(Mux(linked, linked_to, self.give.payload.first)),
            ]
        with m.If(self.take):
            m.d.sync += [head.eq(following), fresh.eq(fresh & (head != last - 1))]
        with m.If(self.give.valid & self.give.ready):
            m.d.sync += tail.eq(self.give.payload.last)
        return m

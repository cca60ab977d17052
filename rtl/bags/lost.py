"""Lost bags: zero vectors in place of the vectors of bags that failed owners owe."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.bags.layouts import OutgoingSegment
from rtl.cache.lost_misses import LOST_MISSES_COUNTERS, LostMisses
from rtl.config import NicConfig
from rtl.formats import RECORD_BITS, BagHead, PeerBeat
from rtl.stream import SkidBuffer

__all__ = ["BufferedLostBags", "LostBags"]


class LostBags(wiring.Component):
    """Answer bags to failed owners with ``lost`` vectors of zeros, as :class:`LostMisses` answers
    misses.

    A bag whose owner has failed before its head arrives is drained, and is answered at once. A bag
    whose head has passed leaves whole. :class:`rtl.bags.landing.BagLanding` takes a single vector
    for each bag: the owner's or the zeros.

    Parameters: ``config``, with ``owner_bags``, the number of ids.

    Ports
    -----
    bags, o: streams of :data:`rtl.bags.layouts.OutgoingSegment`, whole bags, from the bag sender
        and to the packager of bags.
    vectors, fills: streams of :data:`rtl.formats.PeerBeat`, from the network and to the landing of
        bags.
    lost: bit mask of failed nodes.
    counters: bags not sent (``kept``); ``vectors`` of zeros; ``walks``.
    idle: no vector of zeros is pending, and no walk runs.

    Raises ``TypeError`` if ``config`` is not a :class:`~rtl.config.NicConfig`, and ``ValueError``
    if it has no ``owner_bags``.
    """

    LATENCY = {("segment of another node", "the same segment"): 0,
               ("vector", "the same vector"): 0,
               ("head of a lost node", "its vector, if no other comes"):
                   LostMisses.LATENCY["miss of a lost node", "its vector, if no other comes"]}
    RATE = "1 segment and 1 beat per cycle; of lost nodes as in LostMisses"

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        if not config.owner_bags:
            raise ValueError(f"owner_bags must be at least 16, not {config.owner_bags!r}")
        self._heads = LostMisses(config, ids=config.owner_bags, sized=True)
        segments = stream.Signature(OutgoingSegment)
        super().__init__({
            "bags": In(segments), "o": Out(segments),
            "vectors": In(stream.Signature(PeerBeat)), "fills": Out(stream.Signature(PeerBeat)),
            "lost": In(config.nodes), "counters": Out(LOST_MISSES_COUNTERS), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.heads = heads = self._heads
        wiring.connect(m, wiring.flipped(self.vectors), heads.vectors)
        wiring.connect(m, heads.fills, wiring.flipped(self.fills))
        bag, segment, drains = self.bags.payload, self.bags.payload.segment, Signal()
        question = heads.misses.payload
        head = data.View(BagHead, segment.words.word_select(segment.first, RECORD_BITS))
        m.d.comb += [
            heads.lost.eq(self.lost), heads.final_beat.eq(bag.final_beat),
            self.counters.eq(heads.counters), self.idle.eq(heads.idle),
            # The head decides for the bag.
            heads.misses.valid.eq(self.bags.valid & segment.head),
            question.record.eq(head), question.destination.eq(bag.destination),
            heads.o.ready.eq(self.o.ready), self.o.payload.eq(bag),
            self.o.valid.eq(Mux(segment.head, heads.o.valid, self.bags.valid & ~drains)),
            self.bags.ready.eq(Mux(segment.head, heads.misses.ready, self.o.ready | drains)),
        ]
        with m.If(heads.misses.valid & heads.misses.ready):
            m.d.sync += drains.eq(~heads.o.valid)
        return m


class BufferedLostBags(wiring.Component):
    """:class:`LostBags` with a buffer for bags in front and a buffer for vectors behind.

    They cut the paths from the bag sender, and to the check of the landing of bags.

    Parameters, ports and exceptions are those of :class:`LostBags`, except:

    settled: no vector of zeros is pending, and no walk runs.
    idle: inactive until an input changes.
    """

    LATENCY = {("segment of another node", "the same segment"): 1,
               ("vector", "the same vector"): 1,
               ("head of a lost node", "its vector, if no other comes"):
                   LostBags.LATENCY["head of a lost node", "its vector, if no other comes"] + 2}
    RATE = LostBags.RATE

    def __init__(self, config: NicConfig):
        self._bags = LostBags(config)
        super().__init__({**self._bags.signature.members, "settled": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.bags = bags = self._bags
        # A head is read from registers.
        m.submodules.entry = entry = SkidBuffer(OutgoingSegment, lutram=False)
        m.submodules.output = output = SkidBuffer(PeerBeat)
        for source, sink in ((wiring.flipped(self.bags), entry.i), (entry.o, bags.bags),
                             (bags.o, wiring.flipped(self.o)),
                             (wiring.flipped(self.vectors), bags.vectors), (bags.fills, output.i),
                             (output.o, wiring.flipped(self.fills))):
            wiring.connect(m, source, sink)
        m.d.comb += [
            bags.lost.eq(self.lost),
            self.counters.eq(bags.counters), self.settled.eq(bags.idle),
            self.idle.eq(bags.idle & entry.idle & output.idle),
        ]
        return m

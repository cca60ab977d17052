"""Designs of the blocks that owner-pooled bags pass, at their requester and at their owner."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.bags import BagCheck, BagLanding, BagPackager, BagSender, OwnerPlaces
from rtl.bags.layouts import BagBeat
from rtl.config import NicConfig
from rtl.formats import (
    CREDIT_BITS,
    Opcode,
    PeerBeat,
    RecordBeat,
    SizedBeat,
    TaggedBeat,
)
from rtl.keys.owner_split import DESCRIPTOR_WRITES
from rtl.query import BagRepeats, Dispatcher, QueryChecker

__all__ = ["OwnerPath", "RequesterPath"]

_TIMEOUT, _BATCH = 64, 64


class _BagPath(wiring.Component):
    """Base of both paths, with table descriptors and packets of bags.

    Parameters: ``config``; ``packager`` of the bags; ``ports`` of the subclass.
    """

    def __init__(self, config: NicConfig, packager: BagPackager, **ports: wiring.Member):
        self._config, self._packager = config, packager
        packets = packager.signature.members
        super().__init__({
            **ports, "headers": packets["headers"], "payload": packets["payload"],
            **DESCRIPTOR_WRITES, "write_ready": Out(1), "time": In(32), "idle": Out(1)})

    def _join(self, check: wiring.Component, *blocks: wiring.Component) -> Module:
        """Return a module of the packager, of ``check``, which has the descriptors, and of
        ``blocks``."""
        m, packager = Module(), self._packager
        m.submodules += [packager, check, *blocks]
        for name in ("headers", "payload"):
            wiring.connect(m, getattr(packager, name), wiring.flipped(getattr(self, name)))
        m.d.comb += [
            *(getattr(check, name).eq(getattr(self, name)) for name in DESCRIPTOR_WRITES),
            self.write_ready.eq(check.write_ready), check.nodes.eq(self._config.nodes),
            packager.time.eq(self.time), packager.timeout.eq(_TIMEOUT),
            self.idle.eq(Cat(block.idle for block in (packager, check, *blocks)).all()),
        ]
        return m


class RequesterPath(_BagPath):
    """Query checker, dispatcher, bag sender, bag packager and bag landing: from queries to packets
    of bags, and from vectors to places. With ``config.repeat_words``, bags are compared behind the
    checker.

    Places are given in order without a hold buffer, and the packager always has credit. This node
    is node 0. Ports are those of the blocks; ``o`` is that of the landing.
    """

    def __init__(self, config: NicConfig):
        super().__init__(
            config, BagPackager(config.nodes, config.net_payload_beats, Opcode.BAGS, False),
            i=In(stream.Signature(RecordBeat)), vectors=In(stream.Signature(PeerBeat)),
            o=Out(stream.Signature(TaggedBeat)), consumed=Out(CREDIT_BITS))

    def elaborate(self, platform) -> Module:
        positions = self._config.repeat_positions
        check, dispatcher, sender, landing = (
            QueryChecker(self._config), Dispatcher(bags=True, positions=positions), BagSender(),
            BagLanding(self._config))
        repeats = BagRepeats(self._config) if positions else None
        m = self._join(check, dispatcher, sender, landing, *([repeats] if repeats else []))
        slots, segments = check.o, check.segments
        if repeats:
            wiring.connect(m, check.o, repeats.slots)
            wiring.connect(m, check.segments, repeats.segments)
            m.d.comb += repeats.enable.eq(1)
            slots, segments = repeats.o, repeats.bags
        for source, sink in (
                (wiring.flipped(self.i), check.i), (slots, dispatcher.i),
                (segments, sender.segments), (dispatcher.bags, sender.starts),
                (landing.id, sender.id), (sender.o, self._packager.i),
                (wiring.flipped(self.vectors), landing.vectors),
                (landing.o, wiring.flipped(self.o))):
            wiring.connect(m, source, sink)
        place = Signal(range(self._config.hold_vectors))
        with m.If(dispatcher.reserve.valid):
            m.d.sync += place.eq(place + 1)
        m.d.comb += [
            dispatcher.reserve.ready.eq(1), dispatcher.next_landing.eq(place),
            landing.asked.eq(sender.asked),
            check.errors.ready.eq(1), self.consumed.eq(check.consumed),
        ]
        return m


class OwnerPath(_BagPath):
    """Bag check, owner places and the packager of lists to the GPU: from beats of bags to lists,
    and from vectors to answers.

    This node is node 0. Ports are those of the blocks; ``i`` is that of the check.
    """

    def __init__(self, config: NicConfig):
        super().__init__(
            config, BagPackager(1, config.net_payload_beats, Opcode.BAG_LISTS, False, buffers=4,
                                most_bags=True),
            i=In(stream.Signature(BagBeat)), vectors=In(stream.Signature(TaggedBeat)),
            o=Out(stream.Signature(SizedBeat)))

    def elaborate(self, platform) -> Module:
        check, places = BagCheck(self._config), OwnerPlaces(self._config)
        m = self._join(check, places)
        for source, sink in (
                (wiring.flipped(self.i), check.i), (check.o, places.foreign),
                (places.o, self._packager.i), (wiring.flipped(self.vectors), places.vectors),
                (places.answers, wiring.flipped(self.o))):
            wiring.connect(m, source, sink)
        m.d.comb += self._packager.batch.eq(_BATCH)
        return m

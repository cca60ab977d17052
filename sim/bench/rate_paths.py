"""Designs of several blocks whose rates are measured together."""

from collections.abc import Container

from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.cache import LocalCache, RemoteCache
from rtl.config import NicConfig
from rtl.dedupe import DedupeTable
from rtl.formats import Beat, VectorBeat
from rtl.interaction import HoldBuffer
from rtl.network import (
    FrameAssembler,
    FrameReceiver,
    PacketParser,
    VectorPackager,
    VectorRouter,
)

__all__ = ["LandingPath", "LookupBlocks", "PacketPath", "SideBySide", "StorePath"]

_ADDRESSES = {"mac_base": (48, 0x02454D420000), "ip_base": (32, 0x0A450000),
              "udp_port": (16, 0x4853)}


class SideBySide(wiring.Component):
    """Unconnected blocks in one design, to be compiled together.

    Parameters: ``blocks``, by name; ``inner``, names of ports that a subclass connects.

    Ports: those of the ``blocks``, as ``name__port``; ``idle``, when all are idle.
    """

    def __init__(self, blocks: dict[str, wiring.Component], inner: Container[str] = ()):
        self.blocks, self._inner = blocks, inner
        super().__init__({"idle": Out(1)} | {
            f"{name}__{port}": member for name, block in self.blocks.items()
            for port, member in block.signature.members.items()
            if port != "idle" and port not in inner})

    def elaborate(self, platform) -> Module:
        m = Module()
        for name, block in self.blocks.items():
            m.submodules[name] = block
            for port, member in block.signature.members.items():
                if port == "idle" or port in self._inner:
                    continue
                mine, its = getattr(self, f"{name}__{port}"), getattr(block, port)
                if member.is_signature and member.flow == In:
                    wiring.connect(m, wiring.flipped(mine), its)
                elif member.is_signature:
                    wiring.connect(m, its, wiring.flipped(mine))
                elif member.flow == In:
                    m.d.comb += its.eq(mine)
                else:
                    m.d.comb += mine.eq(its)
        m.d.comb += self.idle.eq(Cat(block.idle for block in self.blocks.values()).all())
        return m


class LookupBlocks(SideBySide):
    """Dedupe table, local and remote cache."""

    def __init__(self, config: NicConfig):
        super().__init__({"dedupe": DedupeTable(config), "local": LocalCache(config),
                          "remote": RemoteCache(config)})


class StorePath(wiring.Component):
    """Dedupe table, vector router, vector packager and frame assembler: stored vector to frame.

    Ports are those of its blocks; ``node`` is the owner, whose own vectors are discarded.
    """

    def __init__(self, config: NicConfig):
        self._config = config
        self._dedupe = DedupeTable(config)
        ports = self._dedupe.signature.members
        super().__init__({
            **{name: ports[name] for name in ("requests", "misses", "fills")},
            "o": Out(stream.Signature(Beat)),
            "vector_beats": In(5), "time": In(32), "node": In(8), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.dedupe = dedupe = self._dedupe
        m.submodules.router = router = VectorRouter()
        m.submodules.packager = packager = VectorPackager(self._config)
        m.submodules.assembler = assembler = FrameAssembler(self._config)
        for name in ("requests", "fills"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(dedupe, name))
        wiring.connect(m, dedupe.misses, wiring.flipped(self.misses))
        wiring.connect(m, dedupe.vectors, router.i)
        wiring.connect(m, router.remote, packager.i)
        wiring.connect(m, packager.headers, assembler.headers)
        wiring.connect(m, packager.payload, assembler.payload)
        wiring.connect(m, assembler.o, wiring.flipped(self.o))
        m.d.comb += [
            dedupe.enable.eq(1), dedupe.vector_beats.eq(self.vector_beats),
            packager.vector_beats.eq(self.vector_beats), packager.time.eq(self.time),
            packager.timeout.eq(64), router.node.eq(self.node), router.local.ready.eq(1),
            assembler.node.eq(self.node),
            *(getattr(assembler, name).eq(value) for name, (_, value) in _ADDRESSES.items()),
            self.idle.eq(dedupe.idle & router.idle & packager.idle & assembler.idle),
        ]
        return m


class PacketPath(wiring.Component):
    """Vector packager and frame assembler: vectors of any requester to frames.

    Ports: ``i``, stream of :data:`rtl.formats.VectorBeat`; ``o``, stream of
    :data:`rtl.formats.Beat`; ``vector_beats``, ``timeout``, ``time``, ``idle`` as in its blocks.
    """

    def __init__(self, config: NicConfig):
        self._config = config
        super().__init__({
            "i": In(stream.Signature(VectorBeat)), "o": Out(stream.Signature(Beat)),
            "vector_beats": In(5), "timeout": In(16), "time": In(32), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.packager = packager = VectorPackager(self._config)
        m.submodules.assembler = assembler = FrameAssembler(self._config)
        wiring.connect(m, wiring.flipped(self.i), packager.i)
        wiring.connect(m, packager.headers, assembler.headers)
        wiring.connect(m, packager.payload, assembler.payload)
        wiring.connect(m, assembler.o, wiring.flipped(self.o))
        m.d.comb += [
            packager.vector_beats.eq(self.vector_beats), packager.time.eq(self.time),
            packager.timeout.eq(self.timeout),
            *(getattr(assembler, name).eq(value) for name, (_, value) in _ADDRESSES.items()),
            self.idle.eq(packager.idle & assembler.idle),
        ]
        return m


class LandingPath(wiring.Component):
    """Frame receiver, packet parser and hold buffer: frame to vectors in slot order. Ports are
    those of its blocks."""

    def __init__(self, config: NicConfig):
        self._config = config
        self._hold = HoldBuffer(config)
        ports = self._hold.signature.members
        super().__init__({
            "i": In(stream.Signature(Beat)), "reserve": ports["reserve"], "o": ports["o"],
            "vector_beats": In(5), "time": In(32), "node": In(8), "nodes": In(8),
            "bad_landings": Out(32), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.receiver = receiver = FrameReceiver(self._config)
        m.submodules.parser = parser = PacketParser(self._config)
        m.submodules.hold = hold = self._hold
        wiring.connect(m, wiring.flipped(self.i), receiver.i)
        wiring.connect(m, receiver.o, parser.i)
        wiring.connect(m, wiring.flipped(self.reserve), hold.reserve)
        wiring.connect(m, hold.o, wiring.flipped(self.o))
        vectors, place = parser.vectors, hold.remote
        m.d.comb += [
            place.valid.eq(vectors.valid), vectors.ready.eq(place.ready),
            *(place.payload[name].eq(vectors.payload[name]) for name, _ in place.payload.shape()),
            receiver.node.eq(self.node), receiver.nodes.eq(self.nodes),
            *(block.vector_beats.eq(self.vector_beats) for block in (receiver, parser, hold)),
            *(getattr(receiver, name).eq(value) for name, (_, value) in _ADDRESSES.items()),
            parser.records.ready.eq(1), hold.time.eq(self.time),
            self.bad_landings.eq(hold.counters.bad_landings),
            self.idle.eq(receiver.idle & parser.idle & hold.idle),
        ]
        return m

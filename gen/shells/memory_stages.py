"""Register stages of an AXI4 master, for crossings between the dies of a card."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from gen.shells.register_stages import RegisterStages
from rtl.memory.axi4 import Address, axi4_master

__all__ = ["MemoryStages"]


class MemoryStages(wiring.Component):
    """:class:`RegisterStages` on each channel.

    Latency: ``stages`` cycles in each direction. Throughput: 1 beat per cycle on each channel.

    Parameters: ``width``, data bits; ``address``, layout of ``aw`` and ``ar``; ``stages``.

    Ports: ``i``, :func:`rtl.memory.axi4.axi4_master`, from the master; ``o``, to the memory.
    """

    def __init__(self, width: int, address=Address, stages: int = 2):
        self._stages = stages
        bus = axi4_master(width, address)
        super().__init__({"i": In(bus), "o": Out(bus)})

    def elaborate(self, platform) -> Module:
        m = Module()
        for name in self.i.signature.members:
            here, there = getattr(self.i, name), getattr(self.o, name)
            stages = RegisterStages(here.payload.shape(), self._stages)
            m.submodules[name] = stages
            # The master's channels are inputs of this block, the answers are outputs.
            source, target = (here, there) if name in ("aw", "w", "ar") else (there, here)
            wiring.connect(m, wiring.flipped(source), stages.i)
            wiring.connect(m, stages.o, wiring.flipped(target))
        return m

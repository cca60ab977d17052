"""Memories as they are at power-up: full of anything."""

import random

from amaranth.hdl import Fragment, Module
from amaranth.lib import memory

__all__ = ["powered_up"]


class _RandomContents:
    """A platform whose memories begin with random contents."""

    def __init__(self, seed: int):
        self._rng = random.Random(seed)

    def ram_instance(self, ram) -> Module:
        m = Module()
        m.submodules.memory = mem = memory.Memory(
            shape=ram.width, depth=ram.depth,
            init=[self._rng.getrandbits(ram.width) for _ in range(ram.depth)])
        write = mem.write_port()
        read = mem.read_port(domain="sync" if ram.latency else "comb")
        m.d.comb += [
            write.addr.eq(ram.write_addr), write.data.eq(ram.write_data),
            write.en.eq(ram.write_en), read.addr.eq(ram.read_addr), ram.read_data.eq(read.data)]
        if ram.latency:
            m.d.comb += read.en.eq(ram.read_en)
        return m


def powered_up(dut, seed: int = 0) -> Fragment:
    """Return ``dut`` for the simulator, every ``rtl.memory.Ram`` in it filled at random."""
    return Fragment.get(dut, _RandomContents(seed))

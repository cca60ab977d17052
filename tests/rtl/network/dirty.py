"""Simulation with random memory contents at the start, as a card has them."""

import random

from amaranth.hdl import Elaboratable, Fragment, Module
from amaranth.lib import memory

from tests.support import simulate as simulate_clean

__all__ = ["simulate"]


class _RandomMemories:
    """A platform whose memories wake up with anything in them."""

    def __init__(self, seed: int):
        self._rng = random.Random(seed)

    def ram_instance(self, ram) -> Module:
        m = Module()
        init = [self._rng.getrandbits(ram.width) for _ in range(ram.depth)]
        m.submodules.memory = mem = memory.Memory(shape=ram.width, depth=ram.depth, init=init)
        write = mem.write_port()
        read = mem.read_port(domain="sync" if ram.latency else "comb")
        m.d.comb += [
            write.addr.eq(ram.write_addr), write.data.eq(ram.write_data),
            write.en.eq(ram.write_en), read.addr.eq(ram.read_addr), ram.read_data.eq(read.data)]
        if ram.latency:
            m.d.comb += read.en.eq(ram.read_en)
        return m


class _Dirty(Elaboratable):
    def __init__(self, dut):
        self._dut = dut

    def elaborate(self, platform):
        return Fragment.get(self._dut, _RandomMemories(1))


def simulate(dut, *benches, **options) -> int:
    """As :func:`tests.support.simulate`, with random memory contents."""
    return simulate_clean(_Dirty(dut), *benches, **options)

"""Memories with random contents at power-up."""

import functools

from amaranth.hdl import Elaboratable, Fragment

from sim.engines import RandomMemories
from tests.support import KEPT

__all__ = ["powered_up"]


class _PoweredUp(Elaboratable):
    """Elaborates again for each simulator: a fragment works in one simulator only."""

    def __init__(self, dut, seed: int):
        self._dut, self._seed = dut, seed

    def elaborate(self, platform) -> Fragment:
        return Fragment.get(self._dut, RandomMemories(self._seed))


@functools.lru_cache(maxsize=KEPT)
def powered_up(dut, seed: int = 0) -> Elaboratable:
    """Return ``dut`` for the simulator, with every ``rtl.memory.Ram`` in it filled at random.

    As in ``tests.support.made``, the last results are kept.
    """
    return _PoweredUp(dut, seed)

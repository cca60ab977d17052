"""Memories as they are at power-up: full of anything."""

from amaranth.hdl import Fragment

from sim.engines import RandomMemories

__all__ = ["powered_up"]


def powered_up(dut, seed: int = 0) -> Fragment:
    """Return ``dut`` for the simulator, every ``rtl.memory.Ram`` in it filled at random."""
    return Fragment.get(dut, RandomMemories(seed))

"""Simulation with random initial memory contents, as on a card."""

from tests.rtl.power_up import powered_up
from tests.support import simulate as simulate_clean

__all__ = ["simulate"]


def simulate(dut, *benches, **options) -> int:
    """Simulate as :func:`tests.support.simulate`, with random memory contents."""
    return simulate_clean(powered_up(dut, 1), *benches, **options)

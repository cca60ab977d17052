"""Time base of the host models: cycles of the NIC's clock, and resources with a rate."""

__all__ = ["CYCLE_NS", "Link", "cycles_of_us"]

CYCLE_NS = 4.0
"""One cycle of the NIC at 250 MHz."""


def cycles_of_us(microseconds: float) -> float:
    """Return ``microseconds`` in cycles."""
    return microseconds * 1000.0 / CYCLE_NS


class Link:
    """A resource that moves bytes in sequence.

    Parameters: ``gb_s``, its rate in 10^9 bytes per second, above 0.
    """

    def __init__(self, gb_s: float):
        if not gb_s > 0:
            raise ValueError(f"gb_s must be above 0, not {gb_s!r}")
        self.cycles_per_byte = 1.0 / (gb_s * CYCLE_NS)
        self.free = 0.0
        self.busy = 0.0

    def send(self, time: float, size: int) -> tuple[float, float]:
        """Move ``size`` bytes available at ``time``; return when they start and end."""
        start = max(time, self.free)
        self.free = start + size * self.cycles_per_byte
        self.busy += self.free - start
        return start, self.free

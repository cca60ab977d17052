"""The delay that a silence causes at least, from its length and a run without it."""

from host.timing.clock import cycles_of_us

__all__ = ["least_delay"]


def least_delay(calm: dict, start_us: float, length_us: float, in_flight: int) -> float:
    """Return the cycles by which a silence delays a run at least; 0 or less if it may be hidden.

    Each mini-batch requires the silent part: no mini-batch is completed until the silence ends.
    Meanwhile the cluster works on the mini-batches in flight. It makes at most the progress of
    ``calm``, the same run without a silence, up to their completion.

    start_us, length_us: start and length of the silence, which begins before any mini-batch ends.
    """
    hidden = max(calm["latencies_us"][:in_flight]) - start_us
    assert min(calm["latencies_us"]) > start_us
    return cycles_of_us(length_us - hidden)

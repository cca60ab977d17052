"""Runs that measure the interval of NICs: mini-batches in flight, and their trace."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from sim.evaluation.trace import Trace, trace_of, without_small

__all__ = ["busy_trace", "deeper", "first_depth", "of_length"]

SATURATED = 16
"""Most mini-batches in flight of a run that measures the interval of NICs."""

_FILLED, _FILLED_KEYS = 512, 400_000
"""Samples of a share that are in flight first, and keys of all shares that are in flight at most;
at least two mini-batches. With more in flight, NICs may be slower: two_towers varies for hundreds
of mini-batches, and terabyte with 2,048 samples takes 1.3 times as long with 4 as with 2."""

_SETTLED = 2, 8
"""Mini-batches of the warm-up per mini-batch in flight: at least, and at most where there are as
many keys as above. All nodes begin at once, and NICs keep this rhythm for up to about 90
mini-batches of 128 samples."""

_COUNTED = 5
"""Times `_FILLED_KEYS`: keys of measured mini-batches from which on no more are measured, but at
least two mini-batches for each in flight."""

_WAITS = 0.5
"""Least latency of a mini-batch alone, relative to its latency among others, with which more in
flight may be faster: below, mini-batches wait for each other."""

_LONG_US, _SHORT_US = 100.0, 4.0
"""Intervals for which no more mini-batches are in flight: latencies of about 10 us are hidden, and
other parts of a system take longer."""


def first_depth(trace: Trace, share: int) -> int:
    """Return the mini-batches that are in flight first in runs that measure the interval of NICs.

    ``share``: samples of a NIC's share.
    """
    wanted = max(2, min(SATURATED, -(-_FILLED // share), _with_keys(trace)))
    return 1 << (wanted - 1).bit_length()


def _with_keys(trace: Trace, times: int = 1) -> int:
    """Return the number of mini-batches that have ``times`` as many keys as `_FILLED_KEYS`."""
    keys = sum(len(batch.samples.rows) for batch in trace.batches) // len(trace.batches)
    return times * _FILLED_KEYS // max(1, keys)


def deeper(trace: Trace, depth: int, us: Sequence[float], alone_us: Callable[[], float],
           enough: float = 0.0) -> bool:
    """Return whether twice ``depth`` mini-batches in flight may make NICs faster.

    us: intervals with fewer mini-batches in flight and, at the end, with ``depth``.
    alone_us: returns the latency of a mini-batch alone. By Little's law, it is ``depth`` intervals
        among others.
    enough: interval that needs not be shorter.
    """
    return (2 * depth <= min(SATURATED, _with_keys(trace))
            and max(_SHORT_US, enough) < us[-1] < _LONG_US
            and (len(us) < 2 or us[-1] < us[-2])
            and alone_us() >= _WAITS * depth * us[-1])


def busy_trace(trace: Trace, depth: int) -> tuple[Trace, int]:
    """Return the trace of a run that measures the interval of NICs, and its mini-batches in flight.

    It is a longer trace of the same source: in the warm-up, the nodes' common start fades, and as
    many mini-batches as are in flight follow the measured ones, because NICs that drain are faster.
    Files may have fewer. A trace that is too short for several mini-batches in flight is returned
    itself, with 1.

    ``depth``: mini-batches in flight, unless files have too few.
    """
    measured = max(2 * depth, min(4 * depth, SATURATED, _with_keys(trace, _COUNTED)))
    least, most = (depth * each for each in _SETTLED)
    warmup = max(trace.warmup, least, min(most, _with_keys(trace)))
    found = of_length(trace, warmup, measured + depth)
    depth = min(depth, len(found.measured) // 3)
    return (found, depth) if depth > 1 else (trace, 1)


def of_length(trace: Trace, warmup: int, measured: int) -> Trace:
    """Return a trace of the same source with other numbers of mini-batches; ``trace`` itself if it
    has no further samples. Files may have fewer."""
    if trace.only:
        return trace
    found = trace_of(replace(trace.of, warmup=warmup, measured=measured))
    return found if trace.least_rows is None else without_small(found, trace.least_rows)

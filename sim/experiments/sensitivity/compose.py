"""Composition of a draw's points. The only module of this package that knows how.

A point's NICs are run, or their times are given. Everything else, from the constants to the time
per mini-batch, is computed as in :func:`sim.evaluation.measure.measure`.
"""

from collections.abc import Sequence
from functools import lru_cache

from host.data.contents import contents
from host.systems import NicTimes, Tuning
from host.toml.provenance import constants
from sim.evaluation.fields import devices_of
from sim.evaluation.nic import NicPart, serving
from sim.evaluation.point import Point
from sim.evaluation.search import Site
from sim.evaluation.store import Store
from sim.evaluation.trace import trace_of

__all__ = ["GATHER", "interval_of", "nic_constants", "run_nics", "served_ways", "settled",
           "source_of", "tuning_of"]

GATHER = "gpu.launch_us + gpu.kernel_us"
"""A gather without its rows."""


def nic_constants(point: Point) -> dict[str, float]:
    """Return every constant that a point's NICs see, by name: constants of the GPU that serves
    them, of PCIe and of the network. Points of one trace with equal constants share runs.

    The launch of a gather is counted together with the least time of its kernel, as `GATHER`,
    because a request list mostly waits for their sum. Open options of EN are on. The time of a
    short PCIe write is part of the poll time.
    """
    seen_point, nics, devices = point.kind.as_seen(point, devices_of(point.cluster))
    seen = {"gpu": serving(seen_point, nics, devices)[0], "pcie": devices.pcie,
            "network": devices.network}
    found = {f"{name}.{constant.name}": float(constant.value)
             for name, profile in seen.items() for constant in constants(profile)
             if constant.name != "write_us"}
    return {GATHER: found.pop("gpu.launch_us") + found["gpu.kernel_us"]} | found


def served_ways(point: Point) -> list[Point]:
    """Return a point for each way in which its NICs may read rows. EN has several if its option is
    open."""
    return point.kind.served_ways(point)


def run_nics(point: Point, runs: Store | None) -> NicPart | None:
    """Run a point's NICs, or read their runs from ``runs``; None for a system without NICs."""
    return point.kind.run_nics(Site.of(point, runs))


def settled(point: Point, runs: Store | None) -> Point:
    """Return a point with the mini-batches in flight and per graph, and all options of EN, fixed to
    their best values."""
    return _settled(point, runs, contents(point.workload.data))


@lru_cache(maxsize=16)
def _settled(point: Point, runs: Store | None, _: tuple[str, ...]) -> Point:
    system = point.kind
    return system.settled(point, system.at(Site.of(point, runs))[0])


def tuning_of(point: Point) -> Tuning | None:
    """Return the options of bl-tuned at a point, None for other baselines."""
    return point.kind.at(Site.of(point))[0].tuning


def interval_of(point: Point, nic: NicPart | None = None,
                times: Sequence[NicTimes] | None = None, near: Tuning | None = None) -> float:
    """Return a point's time from one mini-batch to the next.

    ``nic``: its NICs, None for a baseline; ``times``: replaces the times of ``nic``. ``near``:
    start of the search of bl-tuned's options.
    """
    return point.kind.timed(
        Site.of(point), nic, None if times is None else list(times), near).interval_us


def source_of(point: Point) -> str:
    """Return the source of a point's samples, in words."""
    return trace_of(point.workload).source

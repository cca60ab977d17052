"""Times of steps, latencies of requests, and speedups."""

from collections.abc import Sequence
from math import ceil

import numpy as np

from host.systems import PHASES, Step, breakdown, in_graphs, schedule
from sim.evaluation.trace import Trace, arrivals_of

__all__ = ["JUDGED", "LOAD", "alone", "busy_us", "interval_us", "request_us", "speedup"]

def alone(steps: Sequence[Step]) -> tuple[float, dict[str, float]]:
    """Return the mean time of a step that runs alone, and the means of its phases."""
    total, phases = 0.0, dict.fromkeys(PHASES, 0.0)
    for step in steps:
        times = schedule([step])
        total += float(times.finished[0])
        for name, us in breakdown(step, times, 0).phases.items():
            phases[name] += us
    return total / len(steps), {name: us / len(steps) for name, us in phases.items()}


def interval_us(steps: Sequence[Step], in_flight: int, per_graph: int = 1) -> float:
    """Return the mean time from one step's end to the next, in steady state.

    ``per_graph``: steps that the host's thread launches as one graph and waits for at once; as many
    graphs are in flight as ``in_flight`` steps fill. Few graphs are many steps, whose resources
    take longer to settle, so that there are more of them.

    The steps are scheduled several times in a row. What counts is the time between two ends of one
    step, so that neither filling the pipeline counts nor emptying it; the mean for as many steps as
    are in flight, which may end in bursts. With one in flight no step meets another, and each is
    scheduled by itself.
    """
    if per_graph > 1:
        graphs = in_graphs(steps, per_graph)
        graphs *= ceil((2 * in_flight + 2) / len(graphs))
        return interval_us(graphs, in_flight // per_graph) / per_graph
    if in_flight == 1:
        each = {id(step): float(schedule([step]).finished[0]) for step in steps}
        return sum(each[id(step)] for step in steps) / len(steps)
    steps = [*steps] * ceil((in_flight + 2) / len(steps))  # at least one burst
    count = len(steps)
    turns = ceil((3 * in_flight + count) / count)
    ends = schedule(steps * turns, in_flight).finished[:-in_flight]
    return float((ends[-in_flight:] - ends[-in_flight - count:-count]).mean()) / count


def busy_us(steps: Sequence[Step], per_graph: int = 1) -> dict[str, float]:
    """Return how long each resource of the busiest node serves a step, the mean of all; a stage
    that holds a share of one counts with that share. ``per_graph``: as of :func:`interval_us`."""
    busy: dict[str, float] = {}
    graphs = in_graphs(steps, per_graph)
    for step in graphs:
        for stage in step.stages:
            for name, share in stage.uses:
                busy[str(name)] = busy.get(str(name), 0.0) + share * stage.us
    count = len(graphs) * per_graph
    return {name: us / count for name, us in sorted(busy.items())}


LOAD = 0.7
"""Arrival rate of requests, as a share of bl-paper's capacity."""


def request_us(trace: Trace, steps: Sequence[Step], in_flight: int, capacity: float,
               seed: int) -> dict[str, float]:
    """Return median and 99th percentile over the samples of the measured mini-batches.

    Samples arrive as a Poisson process at `LOAD` of ``capacity``, samples a microsecond. A
    mini-batch is ready when the last sample of its window has arrived; in file order, when its own
    last sample has.
    """
    arrived = arrivals_of(trace, LOAD * capacity, seed)
    ready = np.maximum.accumulate([arrived[trace.ready(batch)] for batch in trace.measured])
    done = schedule(steps, in_flight, ready.tolist()).finished
    waits = np.concatenate([end - arrived[batch.numbers]
                            for end, batch in zip(done, trace.measured)])
    return {"p50": float(np.percentile(waits, 50)), "p99": float(np.percentile(waits, 99))}


JUDGED = {"inference": "interval_us", "training": "samples_per_second"}
"""Metric by workload: time per mini-batch in steady state, and a rate."""


def speedup(metric: str, own: float | None, base: float | None) -> float | None:
    """Return how many times faster ``own`` is than ``base``, None where either is missing or 0.

    ``metric``: of both; all but ``samples_per_second`` are times.
    """
    if not own or not base:
        return None
    return own / base if metric.endswith("samples_per_second") else base / own

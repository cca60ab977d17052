"""Path ends by class: launching cell, capturing cell, and function of the pin."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gen.timing.cells import KINDS
from gen.timing.propagate import Arrivals

__all__ = ["EndClass", "end_classes", "end_delays"]


class EndClass(NamedTuple):
    """Path ends of one class.

    It has the kinds of the first and last cell, the function of the pin (one of ``KINDS``, or
    ``inner`` for paths inside a cell), and the delay of the latest path to each end.
    """

    start: str
    end: str
    pin: str
    delays: NDArray[np.float64]


def end_delays(arrived: Arrivals) -> NDArray[np.float64]:
    """Return the delay in ps of the latest path to each end, and of the paths inside cells."""
    delays = np.concatenate([arrived.ends, arrived.inner])
    return delays[delays > -np.inf]


def end_classes(arrived: Arrivals) -> list[EndClass]:
    """Return the classes of path ends, the class with the worst path first."""
    graph = arrived.graph
    reached = np.flatnonzero(arrived.ends > -np.inf)
    captures = arrived.captures[reached]
    insides = graph.kinds_of(graph.inner.cells[arrived.insides])
    starts = np.concatenate([
        graph.kinds_of(graph.launches.cells[arrived.end_starts[reached]]), insides])
    ends = np.concatenate([graph.kinds_of(graph.captures.cells[captures]), insides])
    pins = np.concatenate([np.array(KINDS)[graph.captures.kinds[captures]],
                           np.full(len(insides), "inner")])
    delays = np.concatenate([arrived.ends[reached], arrived.inner])
    keys = np.array([starts, ends, pins])
    if not len(delays):
        return []
    classes, numbers = np.unique(keys, axis=1, return_inverse=True)
    numbers = numbers.ravel()
    found = [EndClass(*map(str, classes[:, k]), delays[numbers == k])
             for k in range(classes.shape[1])]
    return sorted(found, key=lambda one: -one.delays.max())

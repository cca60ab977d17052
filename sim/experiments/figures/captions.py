"""Captions below a picture's title: the setting that its values share."""

from collections.abc import Iterable, Sequence

from sim.evaluation.point import Point
from sim.evaluation.setting import Setting

__all__ = ["mini_batches", "of_points", "of_samples", "titled"]


def mini_batches(setting: Setting) -> str:
    """Return the samples of a mini-batch of each data set, in words."""
    return ", ".join(f"{setting.mini_batch(name):,} ({name})" for name in setting.datasets)


def of_samples(setting: Setting) -> str:
    """Return the sources of the data sets' samples, in words."""
    of = {dataset: "a file" if setting.source(dataset).data else "generated"
          for dataset in setting.datasets}
    if len(set(of.values())) == 1:
        return f"samples {next(iter(of.values()))}"
    return "samples " + ", ".join(f"{source} ({dataset})" for dataset, source in of.items())


def of_points(points: Sequence[Point]) -> str:
    """Return the common values of points: nodes, mini-batches, fidelity, source of samples."""
    sizes: dict[str, set[int]] = {}
    for point in points:
        sizes.setdefault(point.workload.name, set()).add(point.workload.samples)
    same = {frozenset(each) for each in sizes.values()}
    batch = _span(next(iter(sizes.values()))) if len(same) == 1 else ", ".join(
        f"{_span(each)} ({dataset})" for dataset, each in sizes.items())
    nodes = _span({point.cluster.nodes for point in points})
    fidelity = " and ".join(sorted({point.system.fidelity for point in points}))
    source = {"a file" if point.workload.data else "generated" for point in points}
    return (f"{nodes} node{'' if nodes == '1' else 's'}, mini-batch {batch}, NIC fidelity "
            f"{fidelity}, {points[0].cluster.gpu}, samples {' and '.join(sorted(source))}")


def titled(dataset: str, name: str) -> str:
    """Return the title of a panel."""
    return " \N{MIDDLE DOT} ".join(filter(None, (dataset, name)))


def _span(values: Iterable[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"

"""A figure: which points, which metric of them, against which baseline, and how it is drawn."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from host.systems import PHASES
from sim.experiments.points.point import Point
from sim.experiments.points.setting import Setting
from sim.experiments.points.systems import BASELINES

__all__ = ["PHASES_OF", "Bar", "Entry", "Figure", "Metric", "cases", "speedups"]


@dataclass(frozen=True)
class Metric:
    """What is taken of a point.

    Members
    -------
    name: in the CSV file. path: in the metrics of a point, such as ``local_cache.hit_rate``.
    unit: of the value. ratio: ``None`` for the value itself; ``less`` for a speedup of a time, base
        over point; ``more`` for one of a rate, point over base.
    base: system whose point is divided by, or into.
    """

    name: str
    path: str
    unit: str
    ratio: str | None = None
    base: str | None = None


@dataclass(frozen=True)
class Entry:
    """A point of a figure, and where it stands.

    Members
    -------
    panel: column of the picture, a data set. series: line, or group of bars. x: place in it.
    system: name in the CSV file, the size of a cache included.
    point: measured. bases: the points of baselines by system, for metrics that are ratios.
    drawn: whether it is in the picture; it is in the CSV file anyway.
    """

    panel: str
    series: str
    x: float | str
    system: str
    point: Point
    bases: tuple[tuple[str, Point], ...] = ()
    drawn: bool = True


@dataclass(frozen=True)
class Figure:
    """One figure.

    Members
    -------
    name: ``figNN``. title: what it shows. about: of how, for the page.
    entries: its points in a setting. metrics: of each of them; the first is drawn.
    kind: ``lines``, ``bars`` or ``stacked`` (phases). x_label, y_label: of the axes.
    x_scale: ``share`` (percent), ``log2`` or ``names``.
    claims: identifiers of the claims that it bears on.
    """

    name: str
    title: str
    entries: Callable[[Setting], list[Entry]]
    metrics: tuple[Metric, ...]
    kind: str
    x_label: str
    y_label: str
    x_scale: str = "names"
    about: str = ""
    claims: tuple[str, ...] = field(default=())

    def marked(self, setting: Setting) -> list[Entry]:
        """Return the entries whose NICs are run in ``rtl`` besides: at most two, at the reference
        setting, the full system or caches alone where the figure has them."""
        if not setting.markers or setting.fidelity == "rtl" or "kaggle" not in setting.datasets:
            return []
        near = [entry for entry in self.entries(setting) if entry.drawn and _common(
            entry.point, setting) and entry.point.software == setting.softwares[0]]
        near.sort(key=lambda entry: _FIRST.index(entry.point.label)
                  if entry.point.label in _FIRST else len(_FIRST))
        return [replace(entry, point=replace(entry.point, fidelity="rtl"),
                        bases=entry.bases) for entry in near[:2]]

    def points(self, setting: Setting) -> list[Point]:
        """Return every point that the figure needs, baselines included."""
        return [point for entry in (*self.entries(setting), *self.marked(setting))
                for point in (entry.point, *(base for _, base in entry.bases))]


_FIRST = ("FS", "LC", "RC")


def _common(point: Point, setting: Setting) -> bool:
    """Return whether a point has a NIC, on the Kaggle shape, at the reference setting."""
    return (point.dataset == "kaggle" and point.system not in (*BASELINES, "all-on-nic")
            and point.nodes == setting.nodes and point.samples == setting.mini_batch("kaggle")
            and {point.local_cache, point.remote_cache} <= {0.0, 0.1})


Bar = tuple[str, str]
"""Name of a bar, and the system that it stands for."""


def cases(setting: Setting) -> Iterator[tuple[str, str]]:
    """Yield every data set with every software profile."""
    for dataset in setting.datasets:
        for software in setting.softwares:
            yield dataset, software


def speedups(workload: str) -> tuple[Metric, ...]:
    """Return the metrics of a speedup: that which is judged against the paper's kind of baseline
    comes first, then against the tuned one, then times alone or rates."""
    if workload == "training":
        return (Metric("throughput_speedup_vs_bl-paper", "samples_per_second", "x", "more",
                       "bl-paper"),
                Metric("throughput_speedup_vs_bl-tuned", "samples_per_second", "x", "more",
                       "bl-tuned"),
                Metric("throughput_speedup_without_all_reduce_vs_bl-paper",
                       "without_all_reduce.samples_per_second", "x", "more", "bl-paper"),
                Metric("samples_per_second", "samples_per_second", "samples/s"))
    return (Metric("interval_speedup_vs_bl-paper", "interval_us", "x", "less", "bl-paper"),
            Metric("interval_speedup_vs_bl-tuned", "interval_us", "x", "less", "bl-tuned"),
            Metric("service_speedup_vs_bl-paper", "service_us", "x", "less", "bl-paper"),
            Metric("service_speedup_vs_bl-tuned", "service_us", "x", "less", "bl-tuned"),
            Metric("interval_us", "interval_us", "us"), Metric("service_us", "service_us", "us"))


PHASES_OF = PHASES
"""The phases of a breakdown, in the order in which they are drawn."""

"""Rows of the results page: workload, cluster and mini-batch, and the points that each needs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from host.model import Model, load_model
from host.timing.cluster import load_cluster
from sim.evaluation.compared import Counts, Request, row_of
from sim.evaluation.fields import DATASETS, Workload, model_of
from sim.evaluation.placing import counted
from sim.evaluation.point import Point, Task, in_words
from sim.evaluation.store import Store
from sim.experiments.results.changes import CHANGES, FAIR, Change
from sim.experiments.sensitivity.constants import uncertain
from sim.experiments.sensitivity.kinds import width_of
from sim.experiments.sensitivity.spread import Drawn, Spread

__all__ = ["BASE", "CLUSTERS", "COMPARED", "FULL", "MOST_KEYS", "OWN", "WORKLOADS", "Case",
           "Measured", "cases_of", "sizes_of", "values_of"]

WORKLOADS = {
    "kaggle": (128, 2048),
    "avazu": (128, 2048),
    "terabyte": (2048, 16384),
    "multi_hot": (512, 4096),
    "dcnv2": (),
    "dcnv2_independent": (),
    "production": (512, 2048, 16384, 65536),
    "two_towers": (),
    "ranking": (),
}
"""Models of the page with the samples of their mini-batches; empty for the model file's
``mini_batches``."""

CLUSTERS = ("h100", "h100x8")
"""Clusters of the page."""

BASE, FULL, OWN = "bl-tuned", "fs", "en"
"""The baseline, the paper's full system, and EmberNIC."""
COMPARED = (BASE, FULL, OWN)
"""Systems of each row."""

MOST_KEYS = 60_000_000
"""Keys of a mini-batch at most, about: a trace of two takes up to 5 GB of memory."""


@dataclass(frozen=True)
class Measured(Task):
    """A system at a point, with its best options.

    Members: ``system``, as requested; ``point``; ``memory``, bytes of a GPU's memory; ``like``,
    point whose best placement and options of NICs stay, None to search all options.
    """

    system: str
    point: Point
    memory: int
    like: Point | None = None

    @property
    def workload(self) -> Workload:
        """Workload of the point."""
        return self.point.workload

    @property
    def effort(self) -> float:
        """Work, in values of vectors that NICs look up; the search of the baseline has the work of
        a tenth of them."""
        if not self.point.kind.has_nics:
            return 0.1 * values_of(self.workload)
        return values_of(self.workload) * (self.point.system.sampled or self.workload.samples) \
            / self.workload.samples

    def measured(self, runs: Store | None) -> dict:
        """Return the row of the system, see :func:`sim.evaluation.compared.row_of`, with ``counts``
        of the workload, ``source`` of the samples and ``notes``."""
        site = counted(self.point.changed(batching="file", window=None), runs)
        counts = Counts.of(site.work.plain).to_json(site.trace.mini_batch)
        return row_of(self.system, self._kept(runs), self.memory, runs) | {
            "counts": counts, "source": site.trace.source, "notes": list(site.trace.notes)}

    def in_words(self) -> str:
        """Return a description."""
        return in_words(self.point)

    def _kept(self, runs: Store | None) -> Point:
        """Return the point with the placement and the options of NICs of ``like``."""
        own = self.like and Drawn.of(self.like, runs, self.memory, self.system)
        if not own:
            return self.point
        return self.point.changed(placement=own.point.cluster.placement, fixed=tuple(
            dict.fromkeys((*self.point.system.fixed, *own.point.system.fixed))))


@dataclass(frozen=True)
class Case:
    """A row.

    Members
    -------
    workload: name of the model. cluster: name of the cluster. nodes: its nodes.
    mini_batch: samples over all nodes. software: software profile. fidelity: of the NICs.
    measured, warmup: mini-batches that are measured, and mini-batches before them.
    sampled: samples of the mini-batches that NICs run; None for all.
    systems: measurement of each system of `COMPARED`.
    changed: for each change, measurements of the baseline and of EN. Only the first row of a
        workload has the changes that are not fair.
    spread: measurement of the ratios over uncertain constants.
    why: reason why the row is not measured, or None.
    first: whether it is the first row of its workload.
    """

    workload: str
    cluster: str
    nodes: int
    mini_batch: int
    software: str
    fidelity: str
    measured: int
    warmup: int
    sampled: int | None
    systems: tuple[Measured, ...]
    changed: tuple[tuple[Change, Measured, Measured], ...]
    spread: Spread
    why: str | None = None
    first: bool = False

    def tasks(self) -> Iterator[Measured | Spread]:
        """Yield all measurements, those of the row before its changes, the spread last."""
        if self.why is None:
            yield from self.systems
            for _, *both in self.changed:
                yield from both
            yield self.spread


def values_of(workload: Workload) -> float:
    """Return the values of the vectors that a workload's trace looks up, about."""
    model = model_of(workload.dataset)
    return (workload.samples * (workload.warmup + workload.measured) * model.keys
            * model.width)


def sizes_of(name: str, model: Model) -> tuple[int, ...]:
    """Return the mini-batches of a workload."""
    return WORKLOADS.get(name) or model.mini_batches or (2048,)


def cases_of(workloads: Sequence[str] = (), clusters: Sequence[str] = CLUSTERS,
             data: tuple[str, ...] = (), format: str | None = None, fidelity: str = "model",
             seed: int = 1) -> list[Case]:
    """Return the rows of the page.

    Parameters
    ----------
    workloads: names or files of models; empty for `WORKLOADS`. clusters: names of clusters.
    data, format: files of samples and their format; empty for the generator.
    fidelity: fidelity of the NICs. seed: seed of all draws.

    Raises ``ValueError`` for an unknown name.
    """
    found = []
    for name in workloads or WORKLOADS:
        model = load_model(name)
        rows = [(size, cluster) for size in sizes_of(name, model) for cluster in clusters]
        found += [_case(name, model, cluster, size, data, format, fidelity, seed, not place)
                  for place, (size, cluster) in enumerate(rows)]
    return found


def _case(name: str, model: Model, cluster: str, size: int, data: tuple[str, ...],
          format: str | None, fidelity: str, seed: int, first: bool) -> Case:
    of = load_cluster(cluster)
    request = Request(name, of, of.nodes, size, data, format, None, False, COMPARED, None, seed)
    points = [point.changed(fidelity=fidelity) if point.kind.has_nics else point
              for point in request.points(model)]
    systems = tuple(Measured(system, point, of.gpu_memory_bytes)
                    for system, point in zip(COMPARED, points))
    by = {each.system: each for each in systems}
    changed = tuple((change, *(_changed(change, by[system]) for system in (BASE, OWN)))
                    for change in CHANGES if (first or change.kind == FAIR)
                    and change.applies(by[BASE].point))
    base = by[BASE].point
    spread = Spread(base, tuple((name, by[name].point) for name in COMPARED if name != BASE),
                    tuple((each, width_of(each)) for each in uncertain(base.cluster)), seed=seed,
                    memory=of.gpu_memory_bytes)
    keys = size * model.keys
    why = None if keys <= MOST_KEYS or data else (
        f"a mini-batch has {keys / 1e6:,.0f} million keys; at most {MOST_KEYS / 1e6:,.0f} million "
        "keys are measured")
    return Case(model.name if name not in DATASETS else name, cluster, of.nodes, size, of.software,
                fidelity, points[0].workload.measured, points[0].workload.warmup,
                by[OWN].point.system.sampled, systems, changed, spread, why, first)


def _changed(change: Change, nominal: Measured) -> Measured:
    """Return the measurement of a system with a change."""
    kept = change.kept and nominal.point.kind.chooses_nics
    return replace(nominal, point=change.of(nominal.point), like=nominal.point if kept else None)

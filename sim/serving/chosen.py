"""Placement and options of a served system, from the search that ``sim compare`` makes."""

from dataclasses import dataclass

from host.systems import named_of
from sim.evaluation.compared import formed_best, options_of
from sim.evaluation.fields import Workload
from sim.evaluation.point import Point, Task
from sim.evaluation.store import Store
from sim.evaluation.trace import FewSamplesError
from sim.experiments.results.cases import values_of

__all__ = ["Chosen", "chosen"]


@dataclass(frozen=True)
class Chosen(Task):
    """Search of a system's placement and options.

    Members
    -------
    system: name, as requested. points: its mini-batches, the largest first. memory: bytes of each
        GPU's memory, None for no limit.
    """

    system: str
    points: tuple[Point, ...]
    memory: int | None

    @property
    def workload(self) -> Workload:
        """Workload of the largest mini-batch."""
        return self.points[0].workload

    @property
    def effort(self) -> float:
        """Work, in values of vectors that NICs look up, about."""
        return values_of(self.workload)

    def measured(self, runs: Store | None) -> dict:
        """Return the result of :func:`chosen`, with ``source`` and ``notes``."""
        return chosen(self, runs) | {"source": "", "notes": []}

    def in_words(self) -> str:
        """Return a description."""
        return f"options of {self.system}"


def chosen(search: Chosen, runs: Store | None = None) -> dict:
    """Search the placement and the options at the largest mini-batch that the samples fill.

    All mini-batches of the system then have this placement and the same copies of tables. The
    other options of the other mini-batches are searched again, because each size has its graph.

    ``runs``: store of NIC runs that points share, or None.

    Returns
    -------
    ``system``; ``mini_batch``, samples; ``options`` and ``why`` as of
    :func:`sim.evaluation.compared.row_of`; ``fields``, the chosen fields of a point, None if the
    system cannot be built.
    """
    row = {"system": search.system, "mini_batch": None, "options": None, "fields": None,
           "why": "too few samples for each of the mini-batches"}
    for point in search.points:
        try:
            own = formed_best(search.system, point, search.memory, runs)
        except FewSamplesError:
            continue
        row |= {"mini_batch": point.workload.samples, "why": own.why}
        if own.built is None or own.why:
            return row
        tuning = own.built.tuning
        return row | {"options": options_of(search.system, own), "fields": {
            "placement": own.point.cluster.placement,
            "fixed": own.point.system.fixed if tuning is None else named_of(tuning)}}
    return row

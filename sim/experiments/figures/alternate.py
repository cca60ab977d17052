"""The alternate design of the paper's section 4.3: everything on the SmartNIC, without a GPU."""

from dataclasses import dataclass

from host.model import MODELS
from host.placement.shard import ShardPlan
from host.systems.all_on_nic import CARD_BYTES
from sim.evaluation.fields import MINI_BATCH
from sim.evaluation.measure import speedup
from sim.evaluation.point import Point
from sim.evaluation.setting import Setting
from sim.evaluation.store import Results
from sim.experiments.figures.estimate import combined, estimated
from sim.experiments.figures.exhibit import Table
from sim.experiments.figures.plots.series import cases
from sim.experiments.figures.row import Row

__all__ = ["CARD", "EXHIBIT", "GPU", "alternate_fields", "batches"]

CARD, GPU = "all-on-nic", "lc+rc+sc"
"""Without a GPU, and with one; the NIC has caches and computes in both. In file order."""

_FACTOR = max(MINI_BATCH.values()) // min(MINI_BATCH.values())
_LARGE = 8
"""Mini-batches of the larger size that are measured, after as many of warm-up."""


def batches(setting: Setting, dataset: str) -> tuple[int, int]:
    """Return the samples of a mini-batch at which the two are compared: a small and a large one,
    one of them the reference setting's."""
    size = setting.mini_batch(dataset)
    large = MINI_BATCH[dataset] == max(MINI_BATCH.values())
    return (max(1, size // _FACTOR), size) if large else (size, _FACTOR * size)


def alternate_fields(setting: Setting, dataset: str, size: int) -> dict:
    """Return the fields of a point with mini-batches of ``size`` samples.

    Where a node's tables do not fit in the card's memory, rows are hashed over the fewest nodes on
    whose cards they do, with and without a GPU alike.
    """
    few = {} if size == batches(setting, dataset)[0] else {
        name: min(_LARGE, getattr(setting, name)) for name in ("warmup", "measured")}
    return {"mini_batch": size} | few | _placed(setting, dataset)


def _placed(setting: Setting, dataset: str) -> dict:
    model = MODELS[dataset]

    def fits(nodes: int, placement: str) -> bool:
        held = max(ShardPlan.deal(model, nodes, placement).rows_held())
        return 4 * model.dimension * held <= CARD_BYTES

    if fits(setting.nodes, setting.placement):
        return {}
    more = [nodes for nodes in sorted({setting.nodes, *setting.scale_nodes})
            if nodes >= setting.nodes and fits(nodes, "row")]
    return {"nodes": more[0], "placement": "row"} if more else {}


@dataclass(frozen=True)
class _Alternate(Table):
    """Each data set with a small and a large mini-batch, without a GPU and with one."""

    def points(self, setting: Setting) -> list[Point]:
        """Return the points with everything on the NIC, and those with a GPU."""
        return [point for dataset, software in cases(setting)
                for size in batches(setting, dataset)
                for point in _both(setting, dataset, software, size)]

    def rows(self, setting: Setting, results: Results) -> list[Row]:
        """Return times per mini-batch, and how many times faster it is without a GPU."""
        rows = []
        for dataset, software in cases(setting):
            for size in batches(setting, dataset):
                card, gpu = _both(setting, dataset, software, size)
                for metric in ("interval_us", "service_us"):
                    found = [estimated(results, point, metric, ()) for point in (card, gpu)]
                    rows += [Row.of(point, point.label, metric, value, "us")
                             for point, value in zip((card, gpu), found)]
                    rows.append(Row.of(
                        card, card.label, metric.replace("_us", "_speedup_vs_with_gpu"),
                        combined(lambda own, other, metric=metric: speedup(metric, own, other),
                                 *found), "x"))
        return rows

    def notes(self) -> list[tuple[str, str]]:
        """Return what is compared."""
        return [("all on the NIC", "analytical: rows in the card's memory, MLPs on the multipliers "
                 "that the NIC leaves; compared with a GPU behind a NIC with both caches and "
                 "computation, in file order; where tables exceed the card, rows are hashed over "
                 "more nodes in both")]


def _both(setting: Setting, dataset: str, software: str, size: int) -> tuple[Point, Point]:
    fields = alternate_fields(setting, dataset, size)
    card, gpu = (setting.point(dataset, system, "inference", software, **fields)
                 for system in (CARD, GPU))
    return card, gpu


EXHIBIT = _Alternate("alternate", "Everything on the NIC")

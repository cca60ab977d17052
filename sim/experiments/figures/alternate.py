"""Alternate design of the paper's section 4.3: everything on the SmartNIC, without a GPU."""

from dataclasses import dataclass

from host.placement.shard import ShardPlan
from host.systems.all_on_nic import CARD_BYTES
from sim.evaluation.fields import MINI_BATCH, mini_batch_of, model_of
from sim.evaluation.measure import speedup
from sim.evaluation.point import Point
from sim.evaluation.setting import Setting
from sim.evaluation.store import Results
from sim.experiments.figures.estimate import combined, estimated
from sim.experiments.figures.exhibit import Table
from sim.experiments.figures.plots.series import cases
from sim.experiments.figures.row import row_of
from sim.page.rows import Row

__all__ = ["CARD", "EXHIBIT", "GPU", "alternate_fields", "batches"]

CARD, GPU = "all-on-nic", "lc+rc+sc"
"""Without a GPU, and with one; both NICs have caches and compute. In file order."""

_FACTOR = max(MINI_BATCH.values()) // min(MINI_BATCH.values())
_LARGE = 8
"""Measured mini-batches of the larger size, after equally many of warm-up."""


def batches(setting: Setting, dataset: str) -> tuple[int, int]:
    """Return a small and a large mini-batch, in samples; one of them is the reference setting's."""
    size = setting.mini_batch(dataset)
    large = mini_batch_of(dataset) >= max(MINI_BATCH.values())
    return (max(1, size // _FACTOR), size) if large else (size, _FACTOR * size)


def alternate_fields(setting: Setting, dataset: str, size: int) -> dict:
    """Return the fields of a point with mini-batches of ``size`` samples.

    If a node's tables exceed the card's memory, rows are hashed over the fewest nodes whose cards
    hold them, with and without a GPU.
    """
    few = {} if size == batches(setting, dataset)[0] else {
        name: min(_LARGE, getattr(setting, name)) for name in ("warmup", "measured")}
    return {"mini_batch": size} | few | _placed(setting, dataset)


def _placed(setting: Setting, dataset: str) -> dict:
    model = model_of(dataset)

    def fits(nodes: int, placement: str) -> bool:
        held = max(ShardPlan.deal(model, nodes, placement).rows_held())
        return 4 * model.width * held <= CARD_BYTES

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
        """Return times per mini-batch, and the speedup without a GPU."""
        rows = []
        for dataset, software in cases(setting):
            for size in batches(setting, dataset):
                card, gpu = _both(setting, dataset, software, size)
                for metric in ("interval_us", "service_us"):
                    found = [estimated(results, point, metric, ()) for point in (card, gpu)]
                    rows += [row_of(point, point.label, metric, value, "us")
                             for point, value in zip((card, gpu), found)]
                    rows.append(row_of(
                        card, card.label, metric.replace("_us", "_speedup_vs_with_gpu"),
                        combined(lambda own, other, metric=metric: speedup(metric, own, other),
                                 *found), "x"))
        return rows

    def notes(self) -> list[tuple[str, str]]:
        """Return a description of the comparison."""
        return [("all on the NIC", "analytical: rows in the card's memory, MLPs on the multipliers "
                 "that the NIC leaves free; compared with a GPU behind a NIC with both caches and "
                 "computation, in file order; if tables exceed the card, both hash rows over "
                 "more nodes")]


def _both(setting: Setting, dataset: str, software: str, size: int) -> tuple[Point, Point]:
    fields = alternate_fields(setting, dataset, size)
    card, gpu = (setting.point(dataset, system, "inference", software, **fields)
                 for system in (CARD, GPU))
    return card, gpu


EXHIBIT = _Alternate("alternate", "Everything on the NIC")

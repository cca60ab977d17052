"""Figure 27: phases of a mini-batch."""

from sim.evaluation.setting import Setting
from sim.experiments.figures.plots.entry import Entry
from sim.experiments.figures.plots.plot import Plot
from sim.experiments.figures.plots.series import FULL, cases
from sim.experiments.figures.plots.stacked import PHASE_METRICS, Stacked

__all__ = ["EXHIBIT"]

_BARS = tuple(
    (workload, label, system)
    for workload, bars in (
        ("inference", (("BL", "bl-paper"), ("NIC", "nic"), ("LC", "lc"), ("RC", "rc"),
                       ("SC", "sc"), *FULL)),
        ("training", (("BL", "bl-paper"), ("NIC", "nic"), ("LC", "lc"), ("SC", "sc"), *FULL)))
    for label, system in bars)


def _entries(setting: Setting) -> list[Entry]:
    return [Entry(dataset, software, f"{label}\n{workload[0].upper()}", f"{label} {workload}",
                  setting.point(dataset, system, workload, software))
            for dataset, software in cases(setting) for workload, label, system in _BARS]


EXHIBIT = Plot(
    "fig27", "Phases of a mini-batch", _entries, PHASE_METRICS,
    Stacked("time of a mini-batch that runs alone (us)", "I: inference, T: training"), demo=True,
    about="Each microsecond of the critical path belongs to one phase.")

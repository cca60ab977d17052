"""Figures 17, 22, 25 and 27: systems side by side at the reference setting."""

from sim.experiments.figures.figure import PHASES_OF, Bar, Entry, Figure, Metric, cases, speedups
from sim.experiments.points.setting import BASES, Setting

__all__ = ["FIG17", "FIG22", "FIG25", "FIG27", "INFERENCE", "TRAINING"]

INFERENCE: tuple[Bar, ...] = (
    ("BL-tuned", "bl-tuned"), ("GA", "ga"), ("NIC", "nic"), ("LC", "lc"), ("RC", "rc"),
    ("SC", "sc"), ("FS", "fs"), ("GA+BL-tuned", "bl-tuned+ga"), ("all on NIC", "all-on-nic"))
TRAINING: tuple[Bar, ...] = (
    ("BL-tuned", "bl-tuned"), ("GA", "ga"), ("NIC", "nic"), ("LC", "lc"), ("SC", "sc"),
    ("FS", "fs"), ("GA+BL-tuned", "bl-tuned+ga"))

_TABLE_ONLY = ("all-on-nic",)
"""An analytical bound, far from what is simulated: beside it nothing else can be seen."""


def _bars(bars: tuple[Bar, ...], workload: str):
    def entries(setting: Setting) -> list[Entry]:
        return [Entry(dataset, software, label, label,
                      setting.point(dataset, system, workload, software),
                      tuple((base, setting.point(dataset, base, workload, software))
                            for base in BASES), drawn=system not in _TABLE_ONLY)
                for dataset, software in cases(setting) for label, system in bars]
    return entries


FIG17 = Figure(
    "fig17", "Inference: speedup by SmartNIC computation",
    _bars((("NIC", "nic"), ("SC", "sc"), ("GA+SC", "ga+sc")), "inference"),
    speedups("inference"), "bars", "system", "speedup over BL, time per mini-batch",
    about="NIC is the SmartNIC as transport alone: dedupe, no cache, no computation.",
    claims=("C6",))

FIG22 = Figure(
    "fig22", "Inference: speedup by technique", _bars(INFERENCE, "inference"),
    speedups("inference"), "bars", "system", "speedup over BL, time per mini-batch",
    about="Time per mini-batch in steady state; the CSV has mini-batches served alone too, and the "
          "analytical figure of everything on the NIC (C17).",
    claims=("C1", "C7", "C8", "C17", "C19", "C23", "C24"))

FIG25 = Figure(
    "fig25", "Training: speedup by technique", _bars(TRAINING, "training"),
    speedups("training"), "bars", "system", "speedup over BL, samples per second",
    about="The all-reduce of the MLPs is charged to all; the CSV has speedups without it too.",
    claims=("C9", "C11", "C21"))

_STACKS = tuple(
    (workload, label, system)
    for workload, bars in (
        ("inference", (("BL", "bl-paper"), ("LC", "lc"), ("RC", "rc"), ("SC", "sc"), ("FS", "fs"))),
        ("training", (("BL", "bl-paper"), ("LC", "lc"), ("SC", "sc"), ("FS", "fs"))))
    for label, system in bars)


def _stacks(setting: Setting) -> list[Entry]:
    return [Entry(dataset, software, f"{label}\n{workload[0].upper()}", f"{label} {workload}",
                  setting.point(dataset, system, workload, software))
            for dataset, software in cases(setting) for workload, label, system in _STACKS]


FIG27 = Figure(
    "fig27", "Where the time of a mini-batch goes", _stacks,
    tuple(Metric(f"phase_{phase}", f"phases_us.{phase}", "us") for phase in PHASES_OF),
    "stacked", "I: inference, T: training", "time of a mini-batch served alone (us)",
    about="Each microsecond of the critical path belongs to one phase.", claims=("C15",))

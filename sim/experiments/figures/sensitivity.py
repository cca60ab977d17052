"""Sensitivity of the full system's speedup to every constant that is not verified."""

from dataclasses import dataclass

from host.systems.devices import profiles_of
from host.toml.profile import load_profile
from host.toml.provenance import Constant, uncertain
from sim.experiments.figures.row import Row
from sim.experiments.points.point import Point
from sim.experiments.points.setting import Setting
from sim.experiments.points.speedup import JUDGED, speedup
from sim.experiments.sweep.sweep import Results

__all__ = ["BASE_OF", "FACTORS", "Swing", "doubtful", "pairs", "sensitivity_points",
           "sensitivity_rows", "swings", "width"]

FACTORS = (0.5, 2.0)

BASE_OF = {"eager": "bl-paper", "tuned": "bl-tuned"}
"""The baseline that is written for a software profile."""

_UNUSED = {"eager": ("cpu_", "nccl_"), "tuned": ("cpu_", "mpi_")}
"""Beginnings of the names of profiles that neither the full system nor its baseline is charged:
their collectives are the other library's, and no CPU computes."""

_MINI_BATCHES = 16
"""Measured at most, after as many of warm-up: a few are enough to tell differences."""


@dataclass(frozen=True)
class Swing:
    """What a constant does to a speedup.

    Members
    -------
    name: ``profile.constant``. status, source: how far it is to be trusted.
    low, high: the speedup with the constant halved and doubled; None where it was not measured.
    """

    name: str
    status: str
    source: str
    low: float | None
    high: float | None


def doubtful(setting: Setting, software: str) -> dict[str, Constant]:
    """Return every unverified or second-hand constant that the full system or its baseline is
    charged, by ``profile.constant``."""
    return {f"{name}.{constant.name}": constant
            for name, kind in profiles_of(software, setting.gpu).items()
            if not name.startswith(_UNUSED[software])
            for constant in uncertain(load_profile(name, kind))}


def pairs(setting: Setting) -> list[tuple[str, str]]:
    """Return the cases that are swept: software profile and workload."""
    return [(software, workload) for software in setting.softwares for workload in JUDGED]


def sensitivity_points(setting: Setting) -> list[Point]:
    """Return the points of the sweep, on the first data set of the setting."""
    return [point for software, workload in pairs(setting)
            for scaled in ((), *(((name, factor),) for name in doubtful(setting, software)
                                 for factor in FACTORS))
            for point in _both(setting, software, workload, scaled)]


def swings(setting: Setting, results: Results, software: str,
           workload: str) -> tuple[float | None, list[Swing]]:
    """Return the speedup of FS as it is and with each constant changed, the strongest first."""
    as_is = _speedup(setting, results, software, workload, ())
    found = []
    for name, constant in doubtful(setting, software).items():
        low, high = (_speedup(setting, results, software, workload, ((name, factor),))
                     for factor in FACTORS)
        found.append(Swing(name, constant.status, constant.source, low, high))
    return as_is, sorted(found, key=lambda swing: (-width(swing, as_is), swing.name))


def sensitivity_rows(setting: Setting, results: Results) -> list[Row]:
    """Return the values of the sweep as rows of a table."""
    rows = []
    for software, workload in pairs(setting):
        fs, base = _both(setting, software, workload, ())
        as_is, changed = swings(setting, results, software, workload)
        for name, value in (("as it is", as_is),
                            *((f"{swing.name} x{factor:g}", value) for swing in changed
                              for factor, value in zip(FACTORS, (swing.low, swing.high)))):
            rows.append(Row(fs.dataset, fs.nodes, fs.samples, software, fs.fidelity, "FS",
                            f"{workload}_speedup_vs_{base.system} [{name}]", value, "x"))
    return rows


def _both(setting: Setting, software: str, workload: str,
          scaled: tuple[tuple[str, float], ...]) -> tuple[Point, Point]:
    """Return the points of the full system and of its baseline."""
    few = {name: min(_MINI_BATCHES, getattr(setting, name)) for name in ("warmup", "measured")}
    fs, base = (
        setting.point(setting.datasets[0], system, workload, software, scaled=scaled, **few)
        for system in ("fs", BASE_OF[software]))
    return fs, base


def _speedup(setting: Setting, results: Results, software: str, workload: str,
             scaled: tuple[tuple[str, float], ...]) -> float | None:
    metric = JUDGED[workload]
    return speedup(metric, *(results.value(point, metric)
                             for point in _both(setting, software, workload, scaled)))


def width(swing: Swing, as_is: float | None) -> float:
    """Return how far a constant moves the speedup at most."""
    return max((abs(value - as_is) for value in (swing.low, swing.high)
                if value is not None and as_is is not None), default=0.0)
